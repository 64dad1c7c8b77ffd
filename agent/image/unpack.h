/* An image from its source into a directory. */
#pragma once
#include "agent/image/parts.h"

struct unpack_wish {
	bool by_digest;    /* into the directory of its digest in dest */
	int64_t bytes_max; /* of its files */
	bool tells;        /* which image it is, before it is unpacked */
	const char *name;  /* by which it was asked for (names.h); NULL: by none */
};
/* Into dest. 0, IMAGE_REFUSED, or another negative errno; with err. Says on standard output how
 * far it is, and last the digest. */
int unpack(const struct source *from, const char *architecture, const char *dest,
	   const struct unpack_wish *wish, struct mo_error *err);
