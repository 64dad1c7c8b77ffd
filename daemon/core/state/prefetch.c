/* See prefetch.h. */
#include "daemon/core/state/prefetch.h"

const char *const prefetch_state_names[_PREFETCH_STATE_N] = { "waiting", "bringing", "ready",
							      "failed" };

static const struct mo_field prefetch_node_fields[] = {
	MO_D(prefetch_node, node, MO_STR, "name of the node"),
	MO_D_ENUM(prefetch_node, state, prefetch_state_names,
		  "waiting: not asked yet; bringing, ready or failed"),
	MO_D(prefetch_node, unpacking, MO_BOOL, "it is being unpacked: `done` counts what is read",
	     .omit = true),
	MO_D(prefetch_node, done, MO_INT, "bytes so far"),
	MO_D(prefetch_node, size, MO_INT, "bytes of all"),
	MO_D(prefetch_node, error, MO_STR, "why it failed, or the last try did"),
};
static const struct mo_desc prefetch_node_desc = MO_DESC(prefetch_node, prefetch_node_fields);

static const struct mo_field prefetch_fields[] = {
	MO_D(prefetch, id, MO_INT, "number of the order"),
	MO_D(prefetch, user, MO_STR, "who asked"),
	MO_DP(prefetch, order, image, "image", MO_STR, "the image, as it was asked for"),
	MO_DP(prefetch, order, digest, "digest", MO_STR, "which one it is: the first node says it"),
	MO_DP(prefetch, order, user, "for", MO_STR,
	      "for whom alone it is fetched; null: for everybody"),
	MO_D_VEC(prefetch, nodes, &prefetch_node_desc, "the nodes, and how far each is"),
	MO_D(prefetch, until, MO_TIME, "what is not there then has failed"),
	MO_D(prefetch, ended_at, MO_TIME,
	     "when the last node had it or had failed; null: it goes on"),
};
const struct mo_desc prefetch_desc = MO_DESC(prefetch, prefetch_fields);

/* What documents do not show is freed by hand. */
struct prefetch *prefetch_free(struct prefetch *p)
{
	if (!p)
		return NULL;
	free(p->order.auth_file);
	mo_desc_free(&prefetch_desc, p);
	return NULL;
}

bool prefetch_node_over(const struct prefetch_node *n)
{
	return n->state == PREFETCH_READY || n->state == PREFETCH_FAILED;
}
