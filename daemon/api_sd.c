/* See api_sd.h. HTTP service discovery of Prometheus: a list of groups, one for each agent that has
 * a port for its metrics. The series of an agent have the name of its node, so that the labels here
 * are there to choose by (relabel_configs) and need not be kept. */
#include "daemon/api_sd.h"

#include <string.h>

#include "daemon/api.h"
#include "lib/wire/encode.h"

struct sd_labels {
	char *node;
	int state;
};
struct sd_target {
	char **targets;
	size_t n_targets;
	struct sd_labels labels;
};
static const struct mo_field sd_labels_fields[] = {
	MO_DN(sd_labels, node, "__meta_moe_node", MO_STR, "name of the node"),
	MO_DN(sd_labels, state, "__meta_moe_state", MO_ENUM, "its state", .names = node_state_names,
	      .n_names = _NODE_STATE_N),
};
static const struct mo_desc sd_labels_desc = MO_DESC(sd_labels, sd_labels_fields);
static const struct mo_field sd_target_fields[] = {
	MO_D_LIST(sd_target, targets, MO_STRS, "ADDRESS:PORT of its metrics, one"),
	MO_D_SUB(sd_target, labels, MO_STRUCT, &sd_labels_desc, "what it may be chosen by"),
};
const struct mo_desc sd_target_desc = MO_DESC(sd_target, sd_target_fields);

static void add(const struct state *s, const struct node *n, struct mo_buf *b)
{
	bool v6 = strchr(n->agent.address, ':') != NULL;
	_cleanup_(mo_freep) char *target = mo_printf(v6 ? "[%s]:%lld" : "%s:%lld", n->agent.address,
						     (long long)n->agent.metrics_port);
	const struct sd_target t = { .targets = &target,
				     .n_targets = 1,
				     .labels = { .node = n->name, .state = node_shown_state(n) } };

	mo_buf_str(b, b->len ? "," : "[");
	wire_encode(&sd_target_desc, &t, b);
}

void api_sd(void *arg, struct http_request *r)
{
	const struct state *s = manager_state(arg);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i]->agent.metrics_port != MO_NONE && s->nodes[i]->agent.address)
			add(s, s->nodes[i], &b);
	mo_buf_str(&b, b.len ? "]" : "[]");
	api_send(r, 200, &b);
}
