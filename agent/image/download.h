/* One blob of a registry into a layout: with what is there of it already, and again and again while
 * it comes nearer to its end. */
#pragma once
#include "agent/core/image/oci.h"
#include "agent/image/registry.h"

struct progress {
	int64_t done, all; /* bytes of the image */
	int64_t said_us;   /* when it was last told */
};
/* dir: of the layout. 0 when the file has the descriptor's digest and is on the disk, or an error
 * with err. */
int download(struct registry *from, int dir, const struct oci_descriptor *d, struct progress *p,
	     struct mo_error *err);
