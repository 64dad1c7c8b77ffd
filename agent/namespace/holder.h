/* A container of the site's runtime, whose only process is moe-hold: its mount namespace becomes
 * that of the step. It is found among all processes of the node; what the runtime would say of it
 * is not asked for. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/runtime_image.h"
#include "agent/namespace/image.h"

struct holder {
	int mnt; /* its mount namespace */
};

/* A moe-hold of this node, in a mount namespace of its own in which NAMESPACE_MARKER holds the
 * step's id, and with the node's users; without one within two seconds the maker ends. Its root is
 * ret's; its pidfd is at BOX_HOLDER_FD until this process ends. */
void holder_find(const struct box *b, struct image *ret, struct holder *holder);
/* This process is in it, its root and working directory are the container's; nothing that is
 * mounted there gives rights or is a device. */
void holder_enter(struct holder *holder);
