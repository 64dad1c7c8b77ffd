/* The document of a node (see view.h): what it is, its checks and findings. Pure. */
#include "daemon/core/view/view_node.h"

#include <string.h>

#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/token.h"
#include "daemon/core/state/lemon.h"
#include "daemon/core/view/view.h"

static const struct mo_field node_check_fields[] = {
	MO_D(node_check, check, MO_STR, "id of the check, or heartbeat, reconciled, token, steps"),
	MO_D(node_check, object, MO_STR,
	     "what was probed: PCI address of a GPU, name of a NIC, host", .omit = true),
	MO_D(node_check, state, MO_STR,
	     "ok, warn, crit, unknown or skipped; failed or waiting of what the controller checks"),
	MO_D(node_check, text, MO_STR, "what was found, in words"),
	MO_D(node_check, next, MO_STR, "what to do about it", .omit = true),
	MO_D(node_check, known, MO_BOOL, "somebody acknowledged it", .omit = true),
	MO_D(node_check, held, MO_BOOL, "it would keep jobs away, but the node is new",
	     .omit = true),
	MO_D(node_check, since, MO_TIME, "in this state since", .omit = true),
	MO_D_LIST(node_check, evidence, MO_STRS,
		  "readings and lines of the kernel's log that it rests on", .omit = true),
};

static const struct mo_desc node_check_desc = MO_DESC(node_check, node_check_fields);
static const struct mo_field node_view_fields[] = {
	MO_D(node_view, name, MO_STR, "name of the node"),
	MO_D_ENUM(node_view, state, node_state_names, "state of the node"),
	MO_D(node_view, reason, MO_STR, "why it is in its state"),
	MO_D(node_view, refuses, MO_STR, "why jobs get nothing of it; null: it takes work"),
	MO_D(node_view, next, MO_STR, "what ends that"),
	MO_D(node_view, gpus, MO_INT, "GPUs that it has"),
	MO_D(node_view, cpus, MO_INT, "logical CPUs that its agent may use"),
	MO_D(node_view, numa_nodes, MO_INT, "NUMA nodes that it has"),
	MO_D_LIST(node_view, jobs, MO_STRS, "ids of the jobs that have a place on it"),
	MO_D(node_view, heartbeat_age_ms, MO_INT, "milliseconds since its agent was heard"),
	MO_D_VEC(node_view, checks, &node_check_desc,
		 "what was probed; what agents found only in the document of one node"),
	MO_D(node_view, lemon_score, MO_REAL,
	     "how often jobs fail because of it; failures count half after seven days"),
	MO_D(node_view, boot_id, MO_STR, "which boot of the node this is"),
	MO_D(node_view, version, MO_STR, "version of its agent"),
	MO_D(node_view, address, MO_STR, "where it was heard from"),
	MO_D_ID(node_view, spare_of, job_prefix, "the job that it is kept for as a spare",
		.omit = true),
	MO_D(node_view, gpu_model, MO_STR, "model of its GPUs"),
	MO_D(node_view, gpus_free, MO_INT, "GPUs that a job could get now"),
	MO_D_ENUM(node_view, health, check_state_names,
		  "worst of what its agent found; null: it reported nothing"),
	MO_D(node_view, findings, MO_INT, "checks that are not ok, nor skipped"),
	MO_D(node_view, checks_ok, MO_INT, "checks that are"),
	MO_D(node_view, cordoned, MO_BOOL, "it is drained because of a finding"),
	MO_D(node_view, learn_until, MO_TIME,
	     "it is new until then, and no finding of an unproven check drains it", .omit = true),
	MO_D(node_view, would_cordon, MO_STR, "finding that would drain it if it were not new",
	     .omit = true),
	MO_D(node_view, would_next, MO_STR, "what to do about that finding", .omit = true),
	MO_D_LIST(node_view, unknown_steps, MO_STRS,
		  "steps that it holds and this controller never stored, such as j-9.a1",
		  .omit = true),
	MO_D_SUB(node_view, info, MO_OPT, &nodeinfo_desc,
		 "what it consists of; only in the document of one node", .omit = true),
	MO_D(node_view, preflight_done, MO_BOOL,
	     "every check that jobs wait for was made in this boot", .omit = true),
	MO_D_VEC(node_view, stack, &stack_item_desc, "versions of its software and firmware",
		 .omit = true),
	MO_D_VEC(node_view, sensors, &gpu_sensors_desc, "newest readings of its GPUs",
		 .omit = true),
	MO_D_VEC(node_view, nic_sensors, &nic_sensors_desc, "newest readings of its RDMA cards",
		 .omit = true),
	MO_D_VEC(node_view, failures, &node_failure_desc,
		 "newest failures that lemon_score is made of, oldest first", .omit = true),
};

const struct mo_desc node_view_desc = MO_DESC(node_view, node_view_fields);

static void findings(const struct node *n, struct node_view *ret)
{
	for (size_t i = 0; i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];
		struct node_check *c = MO_ADD(ret, checks, &node_check_desc);

		c->check = mo_strdup(r->check);
		c->object = mo_strdup(r->object);
		c->state = mo_strdup(finding_skipped(r) ? CHECK_SKIPPED
							: mo_enum_name(check_state_names,
								       _CHECK_STATE_N, r->state));
		c->text = mo_strdup(finding_skipped(r) ? r->text + strlen(CHECK_SKIPPED ": ")
						       : r->text);
		c->next = mo_strdup(r->next);
		c->known = finding_acked(n, r);
		c->held = r->state == CHECK_CRIT && finding_held(n, r);
		c->since = r->since;
		for (size_t k = 0; k < r->n_evidence; k++)
			mo_strs_add(&c->evidence, &c->n_evidence, r->evidence[k]);
	}
	ret->preflight_done = n->health->preflight_done;
	for (size_t i = 0; i < n->health->n_stack; i++)
		mo_desc_copy(&stack_item_desc, MO_ADD(ret, stack, &stack_item_desc),
			     &n->health->stack[i]);
}

static void check(struct node_view *ret, const char *name, const char *state, const char *text)
{
	struct node_check *c = MO_ADD(ret, checks, &node_check_desc);

	c->check = mo_strdup(name);
	c->state = mo_strdup(state);
	c->text = mo_strdup(text);
}

static void check_unknown(const struct node *n, struct node_view *ret)
{
	_cleanup_(mo_freep) char *names = strange_text(n);
	_cleanup_(mo_freep) char *text =
		mo_printf("it holds a step that this controller never stored%s%s",
			  names ? ": " : "", names ? names : "");

	check(ret, "steps", "failed", text);
	for (size_t i = 0; i < n->strays.n_steps; i++)
		mo_strs_add(&ret->unknown_steps, &ret->n_unknown_steps, n->strays.steps[i]);
	ret->checks[ret->n_checks - 1].next =
		mo_printf("let it end, or `moectl resolve %s --kill`",
			  n->strays.n_steps ? n->strays.steps[0] : "STEP");
}

static void node_checks(const struct state *s, const struct node *n, struct node_view *ret)
{
	const char *uncertain = NULL;

	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);

		for (const struct step *st = j ? step_next(j, n->name, -1) : NULL; st;
		     st = step_next(j, n->name, st->attempt))
			if (step_uncertain(s, st))
				uncertain = step_uncertain(s, st);
	}
	check(ret, "heartbeat", n->state == NODE_UP ? "ok" : "failed",
	      n->state == NODE_UP ? NULL : n->reason);
	check(ret, "reconciled", n->agent.reconciled ? "ok" : "waiting",
	      n->agent.reconciled ? NULL
				  : "the agent did not say hello since the controller started");
	const char *token = n->state != NODE_UP && token_shut_out(s, n->name)
				    ? "its token was revoked: its agent is refused"
			    : n->agent.token_expired
				    ? "its token has expired: it gets no new work; see `moectl "
				      "doctor`"
				    : NULL;
	check(ret, "token", token ? "failed" : "ok", token);
	if (n->strays.any)
		check_unknown(n, ret);
	else
		check(ret, "steps", uncertain ? "failed" : "ok", uncertain);
}

void node_view(const struct state *s, const struct node *n, int64_t now, bool with_info,
	       struct node_view *ret)
{
	ret->name = mo_strdup(n->name);
	ret->state = node_shown_state(n);
	struct refusal refusal;

	ret->reason = node_reason(s, n);
	node_refuses(s, n, &refusal);
	ret->refuses = refusal.text;
	ret->next = refusal.next;
	ret->gpus = (int64_t)n->info.n_gpus;
	ret->cpus = n->info.cpus;
	ret->numa_nodes = (int64_t)n->info.n_numa;
	ret->gpus_free = ret->gpus;
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);
		const struct place *p = j ? place_of(j, n->name) : NULL;
		_cleanup_(mo_freep) char *id = p ? mo_printf("j-%lld", (long long)j->id) : NULL;

		if (!p)
			continue;
		mo_strs_add(&ret->jobs, &ret->n_jobs, id);
		ret->gpus_free -= (int64_t)p->n_gpus;
	}
	/* a job may hold slots that the node's newest hello does not have any more */
	ret->spare_of = job_find(s, n->spare.job) ? n->spare.job : MO_NONE;
	if (ret->refuses || ret->gpus_free < 0 || ret->spare_of != MO_NONE)
		ret->gpus_free = 0;
	ret->heartbeat_age_ms = MO_MAX(0, now - node_heard_at(s, n)) / 1000;
	node_checks(s, n, ret);
	ret->health = health_worst(n);
	ret->findings = (int64_t)health_findings(n);
	ret->checks_ok = n->health ? n->health->ok : MO_NONE;
	ret->cordoned = n->drain.asked && n->drain.cordon;
	ret->learn_until = n->findings.learn_until;
	ret->would_cordon = health_held_text(n);
	ret->would_next = ret->would_cordon ? health_held_next(n) : NULL;
	if (with_info && n->health)
		findings(n, ret);
	ret->boot_id = mo_strdup(n->boot.id);
	ret->version = mo_strdup(n->agent.version);
	ret->address = mo_strdup(n->agent.address);
	ret->gpu_model = mo_strdup(n->info.n_gpus ? n->info.gpus[0].model : NULL);
	ret->info = with_info ? mo_desc_dup(&nodeinfo_desc, &n->info) : NULL;
}
