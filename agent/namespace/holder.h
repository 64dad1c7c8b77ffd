/* A container of the site's runtime, whose only process is moe-hold: its mount namespace becomes
 * that of the step. What the runtime says of it is looked at before anything is believed. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/runtime_image.h"
#include "agent/namespace/image.h"

struct holder {
	int mnt; /* its mount namespace */
};

/* Ends the maker unless the process is a moe-hold of this node, in a mount namespace of its own in
 * which NAMESPACE_MARKER holds the step's id. Its root is ret's; its pidfd is at BOX_HOLDER_FD
 * until this process ends. */
void holder_find(const struct box *b, const struct runtime_image *stored, struct image *ret,
		 struct holder *holder);
/* This process is in it, its root and working directory are the container's; nothing that is
 * mounted there gives rights or is a device. */
void holder_enter(struct holder *holder);
