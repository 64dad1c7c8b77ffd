/* The tree that an image becomes: what an entry of a layer asks for is done in it. No name leads
 * out of it, and what the layer at hand has made its whiteouts do not take away. */
#pragma once
#include <time.h>

#include "agent/core/image/entry.h"

struct archive;
struct mark;
struct tree {
	int root;
	struct mark *made; /* by this layer */
};
/* data: where the bytes of a file are read from, changed: its time. 0, IMAGE_REFUSED for what the
 * image lacks, or a negative errno of the node; with err. */
int tree_apply(struct tree *t, const struct entry *e, struct archive *data, int64_t bytes,
	       time_t changed, struct mo_error *err);
/* What comes now is of the next layer, or nothing comes any more. */
void tree_next_layer(struct tree *t);
