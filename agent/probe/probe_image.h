/* Whether an image fits this node (`moe-probe image`). Parts of moe-probe. */
#pragma once
#include "agent/core/image/fit.h"
#include "agent/probe/probe_pass.h"
#include "lib/base/identity.h"

struct image_options {
	const char *image, *user; /* user NULL: this process' own */
	const char *layers;       /* NULL: unknown */
	const char *images;       /* likewise */
	struct mo_identity_rule rule;
	bool cgroup; /* steps get a control group */
};
/* Looks, becoming the user for all that is his, and judges. The text gets the answer as JSON;
 * negative with err: it could not be asked for. */
int probe_image(const char *root, const struct image_options *o, struct mo_buf *ret,
		struct mo_error *err);

/* What only the agent's user sees of the node; then, as the user, which devices are open to him. */
void fit_read_node(struct probe_pass *l, const struct image_options *o, struct fit_node *ret);
void fit_read_devices(struct probe_pass *l, struct fit_node *ret);
/* As the user. path: of its directory. own: e_machine of this node. */
void fit_read_image(const char *path, struct fit_image *ret);
/* First bytes of a file; how many, 0: it cannot be read, or is no regular file. */
size_t fit_read_head(int root, const char *path, char ret[PROGRAM_HEAD_BYTES]);
