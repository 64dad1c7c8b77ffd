/* Images that nodes have in their directories (`moectl image list`, `rm`). The controller asks
 * agents, moe-image looks and writes one line of JSON for each image, and the controller adds what
 * only it knows. Plain values; described for the way back. */
#pragma once
#include "lib/base/desc.h"

/* command.what of such questions; of the second, command.dir is the digest or the name */
#define IMAGES_WHAT "images"
#define IMAGES_REMOVE_WHAT "images_remove"

struct image_stored {
	char *node; /* of the controller */
	char *digest;
	char **names; /* by which it was asked for, the newest last */
	size_t n_names;
	int64_t bytes, used_at; /* when it was last asked for, us */
	char *user;             /* whose it is alone; NULL: everybody's */
	bool in_use;            /* a step holds its lock, or is about to */
	char **jobs;            /* that have it there; of the controller */
	size_t n_jobs;
	bool removed;
	char *error; /* why it was not removed */
};
extern const struct mo_desc image_stored_desc;
