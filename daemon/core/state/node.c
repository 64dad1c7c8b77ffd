/* Descriptions of node.h. */
#include "daemon/core/state/node.h"

#include "lib/model/limits.h"
#include "lib/model/recipe.h"

const char *const power_step_names[_POWER_N] = { "asked", "failed", "held", "off" };

static const struct mo_field node_fields[] = {
	MO_D(node, name, MO_STR, "by which it is known"),
	MO_DP(node, boot, id, "boot_id", MO_STR, "which boot of its machine this is"),
	MO_DP(node, agent, instance, "instance", MO_STR, "random, of this start of its agent"),
	MO_DP(node, agent, version, "version", MO_STR, "of its agent"),
	MO_DP(node, agent, address, "address", MO_STR,
	      "host name or IP address for MASTER_ADDR of ranks"),
	MO_DP(node, agent, protocol, "protocol", MO_INT,
	      "version of the protocol that its agent speaks"),
	MO_D_SUB(node, info, MO_STRUCT, &nodeinfo_desc, "what it consists of"),
	MO_D_ENUM(node, state, node_state_names, "up, suspect or down; a drain is not in it"),
	MO_D(node, reason, MO_STR, "of its state, for a person"),
	MO_DP(node, drain, asked, "drain", MO_BOOL, "it is to get no new work"),
	MO_DP(node, drain, when, "drain_when", MO_STR,
	      "how running jobs end: idle, checkpoint or now"),
	MO_DP(node, strays, any, "strange_steps", MO_BOOL,
	      "it holds steps that moed never stored: it gets no work"),
	MO_D(node, registered_at, MO_INT, "when its agent first said hello, us"),
	MO_DP(node, findings, learn_until, "learn_until", MO_INT,
	      "until when findings of unproven checks are only reported, us; MO_NONE: over",
	      .omit = true),
	MO_DP(node, agent, reconciled, "reconciled", MO_BOOL,
	      "its agent said hello since this controller started"),
	MO_DP_LIST(node, boot, past, "past_boots", MO_STRS,
		   "boots that were replaced, newest last: they cannot come back"),
	MO_DP_LIST(node, agent, past, "past_instances", MO_STRS,
		   "starts of its agent that were replaced"),
	MO_DP(node, drain, at, "drain_at", MO_INT, "when the drain was asked for, us"),
	MO_DP(node, drain, done, "drained", MO_BOOL, "no rank is left there"),
	MO_DP(node, drain, reason, "drain_reason", MO_STR, "as whoever drained it says",
	      .omit = true),
	MO_DP(node, agent, tells_health, "tells_health", MO_BOOL, "its agent tells of its health",
	      .omit = true),
	MO_DP_ENUM(node, power, step, "power", power_step_names,
		   "what fence_command was asked about its silence, and said", .omit = true),
	MO_DP(node, power, tries, "power_tries", MO_INT, "how often it was asked", .omit = true),
	MO_DP(node, power, at, "power_at", MO_TIME, "when that was", .omit = true),
	MO_DP(node, power, text, "power_text", MO_STR, "what it said", .omit = true),
	MO_DP(node, spare, job, "spare_of", MO_INT,
	      "number of the job that it is kept for as a spare; MO_NONE: none", .omit = true),
	MO_DP(node, spare, gpus, "spare_gpus", MO_INT, "its GPUs that are charged to that job",
	      .omit = true),
	MO_DP(node, spare, since, "spare_since", MO_INT, "since when they are, us", .omit = true),
	MO_DP(node, spare, asked, "spare_asked", MO_INT, "id of the order of its checks",
	      .omit = true),
	MO_DP(node, spare, passed, "spare_passed", MO_BOOL, "they were made, and it serves",
	      .omit = true),
	MO_D_SUB(node, health, MO_OPT, &node_health_desc,
		 "newest word of its agent in this boot; null: none yet", .omit = true),
	MO_DP(node, drain, cordon, "cordon", MO_STR,
	      "finding that drained it; null: an operator did", .omit = true),
	MO_DP_LIST(node, findings, waived, "waived", MO_STRS,
		   "findings in spite of which an operator gave it back", .omit = true),
	MO_DP_LIST(node, findings, waived_counts, "waived_counts", MO_INTS,
		   "where the counter of each stood then; MO_NONE: it has none", .omit = true),
	MO_DP_LIST(node, findings, acked, "acked", MO_STRS,
		   "findings that an operator knows of: they keep no job away until the next boot",
		   .omit = true),
	MO_DP_LIST(node, findings, acked_counts, "acked_counts", MO_INTS,
		   "where the counter of each stood then; MO_NONE: it has none", .omit = true),
	MO_DP(node, drain, hardware, "cordon_hardware", MO_BOOL,
	      "that finding proves broken hardware", .omit = true),
	MO_DP(node, drain, back, "drain_back", MO_INT,
	      "it comes back when its GPUs were tried: id of that order; MO_NONE: it is not tried",
	      .omit = true),
	MO_DP(node, drain, back_until, "drain_back_until", MO_TIME, "how long that is waited for",
	      .omit = true),
	MO_DP(node, drain, held, "drain_held", MO_STR, "why it did not come back then",
	      .omit = true),
	MO_DP(node, drain, forgiven_at, "forgiven_at", MO_TIME,
	      "when it was given back after failures cordoned it: those before count no more",
	      .omit = true),
	MO_DP(node, boot, leaving, "leaving", MO_BOOL, "its machine is going down in order",
	      .omit = true),
	MO_DP(node, agent, token_expired, "token_expired", MO_BOOL,
	      "its agent's token has expired: it gets no new work", .omit = true),
	MO_DP(node, agent, min_uid, "min_uid", MO_INT,
	      "its agent runs no ranks of accounts below; 0: of any; MO_NONE: it did not say",
	      .omit = true),
	MO_DP(node, agent, metrics_port, "metrics_port", MO_INT,
	      "TCP port of its agent's metrics; MO_NONE: it has none", .omit = true),
	MO_D(node, events_gone, MO_INT,
	     "how many events about it are no longer kept; MO_NONE: none", .omit = true),
	MO_DP_LIST(node, strays, steps, "strange", MO_STRS,
		   "names of steps there that moed never stored, as j-7.a3", .omit = true),
	MO_DP_LIST(node, strays, discard, "discard", MO_STRS,
		   "those of them that an operator wants ended", .omit = true),
	MO_DP(node, agent, obeys, "obeys", MO_INT,
	      "higher epoch than this controller's that its agent obeyed; MO_NONE: none",
	      .omit = true),
	MO_D(node, unseen, MO_BOOL,
	     "not heard since the state was restored: it may hold unknown steps", .omit = true),
};
const struct mo_desc node_desc = MO_DESC(node, node_fields);

int node_shown_state(const struct node *n)
{
	if (n->state != NODE_UP || !n->drain.asked)
		return n->state;
	return n->drain.done ? NODE_DRAINED : NODE_DRAINING;
}

/* Its agent lets that runtime start containers, and knows how the ranks enter one. */
static bool holds(const struct node *n, const char *runtime)
{
	for (size_t i = 0; i < n->info.n_holders; i++)
		if (mo_streq(n->info.holders[i], runtime))
			return true;
	return false;
}

bool node_runs_image(const struct node *n, const struct recipe *r)
{
	const struct recipe_container *c = r->engine.container;

	return !c || (n->info.images && (c->user != CONTAINER_ROOT || n->info.image_root) &&
		      (!c->runtime || holds(n, c->runtime)));
}
