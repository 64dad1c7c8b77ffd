/* Devices of the box: a /dev of its own in an image, walls before directories of the node's. Device
 * files are the node's, each by a mount of it alone: none is made, so none of the image opens. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/namespace/mounts.h"

struct devices {
	struct mounts wanted;     /* of the box, and those that every program expects */
	struct mount shm, queues; /* copy -1: none */
};
/* While the node's /dev is there. */
void devices_copy(const struct box *b, struct devices *ret);
/* /dev of the image: nothing of the image's own, nothing of the node's but what was copied, links,
 * terminals of its own, shm of box's size or the node's. */
void devices_place(struct devices *d, const struct box *b);

/* Each of box's walled directories, where the node has it: empty but for devices of the box. */
void walls_make(const struct box *b);
