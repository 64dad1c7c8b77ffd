/* An image from its source into a directory. */
#pragma once
#include "agent/image/parts.h"

/* Into dest, by_digest: into the directory of its digest in dest. 0, IMAGE_REFUSED, or another
 * negative errno; with err. Says on standard output how far it is. */
int unpack(const struct source *from, const char *architecture, const char *dest, bool by_digest,
	   int64_t bytes_max, struct mo_error *err);
