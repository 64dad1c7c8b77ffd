/* What a step in an image (launch.container) is asked to have: the image as its root, and what of
 * the node is seen in it. Pure; called by agent/stepd/box.c. */
#pragma once
#include "agent/core/stepd/box.h"
#include "agent/core/stepd/spool.h"

/* What only the node says. All borrowed. */
struct box_terms {
	/* of the step, on the node: the ranks find their sockets there */
	const char *step_dir;
	int64_t uid, gid;
	const int64_t *groups; /* the other ones */
	size_t n_groups;
	const char *user, *home; /* name and home of that account */
	/* this process has rights over that account only, which is its own */
	bool unprivileged;
	/* paths that exist on the node; up to a NULL */
	const char *const *there;
};

/* Files of the node that programs need for names of hosts; up to a NULL. */
#define BOX_NODE_FILES_MAX 2
extern const char *const box_node_files[BOX_NODE_FILES_MAX + 1];

/* Fills all but the devices of ret, which is initialised and empty. -EINVAL with err: this node
 * makes no namespace for it, or its image is of a kind that it does not know. */
int box_image(const struct spool *s, const struct box_terms *t, struct box *ret,
	      struct mo_error *err);
