/* An image from a registry into an OCI image layout, which the next steps of its life read. */
#pragma once
#include "lib/model/reference.h"

struct fetch_wish {
	const char *auth_file; /* NULL: nobody's */
	int64_t silence_s;     /* without a byte, and a try has failed */
	/* directory of images by their digests: what lies there is not fetched; NULL: none */
	const char *cache, *name; /* with cache: by which it was asked for (names.h) */
	bool tells;               /* which image it is, before it is fetched */
};
/* dir is made where it is missing, and may hold other images. What is in it already is not asked
 * for again, and a blob that was cut goes on where it ended. Its index names the image when all of
 * it is there: by the tag, or by none. 0, IMAGE_REFUSED, or another negative errno; with err. Says
 * on standard output how far it is, and last the digest. 1: it lies in the cache. */
int fetch(const struct reference *from, const char *dir, const char *architecture,
	  const struct fetch_wish *wish, struct mo_error *err);
