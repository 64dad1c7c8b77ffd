/* One layer: an archive (tar, as it is or compressed by gzip or zstd) into the tree. */
#pragma once
#include "agent/image/blob.h"
#include "agent/image/tree.h"

/* digest: of the unpacked bytes, compared; NULL: not known. 0, or IMAGE_REFUSED or another errno
 * with err. The blob's own bytes are not compared yet: blob_end(). */
int layer_unpack(struct blob *b, const char *digest, struct tree *t, struct entry_sum *sum,
		 struct mo_error *err);
