/* What of the node is seen in the image: copied while the node's files are there, placed when the
 * image is the root. So no name of the image is ever looked up on the node. */
#pragma once
#include "lib/model/container.h"

struct mount {
	const char *source, *target; /* of the box */
	int copy;
	bool directory;
	unsigned flags; /* of enum FLAG_* (kernel.h) */
};
/* With all that is mounted below the source. who: whose rights count, in words. */
void mount_copy(const char *source, const char *target, unsigned flags, bool deep, const char *who,
		struct mount *ret);
void mount_place(struct mount *m);

/* Those of the box, outer ones first; as the user. */
struct mounts {
	struct mount *items;
	size_t n_items;
};
void mounts_copy(const struct container_mount *mounts, size_t n, const char *who,
		 struct mounts *ret);
void mounts_place(struct mounts *m);
