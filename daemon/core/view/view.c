/* Documents of the REST interface made from state: jobs, nodes, cluster. Pure getters: no event,
 * no record. The ones that explain are in why.c and report.c. */
#include "daemon/core/view/view.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/refusal.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/health.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/lemon.h"
#include "daemon/core/view/unsaved.h"

static const struct mo_field view_checkpoint_fields[] = {
	MO_F(view_checkpoint, iteration, MO_INT),
	MO_F(view_checkpoint, path, MO_STR),
	MO_F(view_checkpoint, verified, MO_BOOL),
};
static const struct mo_desc view_checkpoint_desc = MO_DESC(view_checkpoint, view_checkpoint_fields);
static const struct mo_field job_view_fields[] = {
	MO_F_ID(job_view, id, job_prefix),
	MO_F(job_view, name, MO_STR),
	MO_F_ENUM(job_view, state, job_state_names),
	MO_F(job_view, attempt, MO_INT),
	MO_F(job_view, restarts, MO_INT),
	MO_F(job_view, iteration, MO_INT),
	MO_F(job_view, steps, MO_INT),
	MO_F(job_view, loss, MO_REAL),
	MO_F(job_view, tokens_per_s_per_gpu, MO_REAL),
	MO_F(job_view, tflops_per_gpu, MO_REAL),
	MO_F(job_view, mfu, MO_REAL),
	MO_F(job_view, ranks, MO_INT),
	MO_F_LIST(job_view, nodes, MO_STRS),
	MO_F(job_view, created_at, MO_TIME),
	MO_F(job_view, started_at, MO_TIME),
	MO_F(job_view, ended_at, MO_TIME),
	MO_F(job_view, eta_s, MO_REAL),
	MO_F(job_view, reason, MO_STR),
	MO_F_SUB(job_view, checkpoint, MO_OPT, &view_checkpoint_desc),
	MO_F(job_view, user, MO_STR),
	MO_F(job_view, priority, MO_INT),
	MO_F_ENUM(job_view, phase, phase_names),
	MO_F(job_view, resume, MO_INT),
	MO_F(job_view, samples_left_out, MO_INT, .omit = true),
	MO_F_SUB(job_view, checkpoint_every, MO_OPT, &interval_desc, .omit = true),
	MO_F_SUB(job_view, plan, MO_OPT, &actual_desc, .omit = true),
	MO_F_SUB(job_view, prepare, MO_OPT, &prepare_view_desc, .omit = true),
	MO_F(job_view, checkpoint_late, MO_STR, .omit = true),
	MO_F(job_view, resumes_at, MO_INT, .omit = true),
	MO_F_SUB(job_view, waiting, MO_OPT, &waiting_desc, .omit = true),
};
const struct mo_desc job_view_desc = MO_DESC(job_view, job_view_fields);

static const struct mo_field node_check_fields[] = {
	MO_F(node_check, check, MO_STR),
	MO_F(node_check, object, MO_STR, .omit = true),
	MO_F(node_check, state, MO_STR),
	MO_F(node_check, text, MO_STR),
	MO_F(node_check, next, MO_STR, .omit = true),
	MO_F(node_check, known, MO_BOOL, .omit = true),
	MO_F(node_check, held, MO_BOOL, .omit = true),
	MO_F(node_check, since, MO_TIME, .omit = true),
	MO_F_LIST(node_check, evidence, MO_STRS, .omit = true),
};
static const struct mo_desc node_check_desc = MO_DESC(node_check, node_check_fields);
static const struct mo_field node_view_fields[] = {
	MO_F(node_view, name, MO_STR),
	MO_F_ENUM(node_view, state, node_state_names),
	MO_F(node_view, reason, MO_STR),
	MO_F(node_view, refuses, MO_STR),
	MO_F(node_view, next, MO_STR),
	MO_F(node_view, gpus, MO_INT),
	MO_F(node_view, cpus, MO_INT),
	MO_F(node_view, numa_nodes, MO_INT),
	MO_F_LIST(node_view, jobs, MO_STRS),
	MO_F(node_view, heartbeat_age_ms, MO_INT),
	MO_F_VEC(node_view, checks, &node_check_desc),
	MO_F(node_view, lemon_score, MO_REAL),
	MO_F(node_view, boot_id, MO_STR),
	MO_F(node_view, version, MO_STR),
	MO_F(node_view, address, MO_STR),
	MO_F(node_view, gpu_model, MO_STR),
	MO_F(node_view, gpus_free, MO_INT),
	MO_F_ENUM(node_view, health, check_state_names),
	MO_F(node_view, findings, MO_INT),
	MO_F(node_view, checks_ok, MO_INT),
	MO_F(node_view, cordoned, MO_BOOL),
	MO_F(node_view, learn_until, MO_TIME, .omit = true),
	MO_F(node_view, would_cordon, MO_STR, .omit = true),
	MO_F(node_view, would_next, MO_STR, .omit = true),
	MO_F_LIST(node_view, unknown_steps, MO_STRS, .omit = true),
	MO_F_SUB(node_view, info, MO_OPT, &nodeinfo_desc, .omit = true),
	MO_F(node_view, preflight_done, MO_BOOL, .omit = true),
	MO_F_VEC(node_view, stack, &stack_item_desc, .omit = true),
	MO_F_VEC(node_view, sensors, &gpu_sensors_desc, .omit = true),
	MO_F_VEC(node_view, nic_sensors, &nic_sensors_desc, .omit = true),
	MO_F_VEC(node_view, failures, &node_failure_desc, .omit = true),
};
const struct mo_desc node_view_desc = MO_DESC(node_view, node_view_fields);

/* Same layouts as the unnamed members of struct cluster_view. */
struct cluster_nodes {
	int64_t up, suspect, down, draining, drained;
};
struct cluster_gpus {
	int64_t total, free;
};
struct cluster_jobs {
	int64_t queued, starting, running, recovering, stopping, paused, completed, failed,
		cancelled;
};
static_assert(sizeof(struct cluster_nodes) == sizeof(((struct cluster_view *)0)->nodes), "nodes");
static_assert(sizeof(struct cluster_gpus) == sizeof(((struct cluster_view *)0)->gpus), "gpus");
static_assert(sizeof(struct cluster_jobs) == sizeof(((struct cluster_view *)0)->jobs),
	      "one count per job state");
static const struct mo_field cluster_nodes_fields[] = {
	MO_F(cluster_nodes, up, MO_INT),      MO_F(cluster_nodes, suspect, MO_INT),
	MO_F(cluster_nodes, down, MO_INT),    MO_F(cluster_nodes, draining, MO_INT),
	MO_F(cluster_nodes, drained, MO_INT),
};
static const struct mo_field cluster_gpus_fields[] = { MO_F(cluster_gpus, total, MO_INT),
						       MO_F(cluster_gpus, free, MO_INT) };
static const struct mo_field cluster_jobs_fields[] = {
	MO_F(cluster_jobs, queued, MO_INT),    MO_F(cluster_jobs, starting, MO_INT),
	MO_F(cluster_jobs, running, MO_INT),   MO_F(cluster_jobs, recovering, MO_INT),
	MO_F(cluster_jobs, stopping, MO_INT),  MO_F(cluster_jobs, paused, MO_INT),
	MO_F(cluster_jobs, completed, MO_INT), MO_F(cluster_jobs, failed, MO_INT),
	MO_F(cluster_jobs, cancelled, MO_INT),
};
static const struct mo_desc cluster_nodes_desc = MO_DESC(cluster_nodes, cluster_nodes_fields),
			    cluster_gpus_desc = MO_DESC(cluster_gpus, cluster_gpus_fields),
			    cluster_jobs_desc = MO_DESC(cluster_jobs, cluster_jobs_fields);
static const struct mo_field cluster_view_fields[] = {
	MO_F_SUB(cluster_view, nodes, MO_STRUCT, &cluster_nodes_desc),
	MO_F_SUB(cluster_view, gpus, MO_STRUCT, &cluster_gpus_desc),
	MO_F_SUB(cluster_view, jobs, MO_STRUCT, &cluster_jobs_desc),
	MO_F(cluster_view, epoch, MO_INT),
	MO_F(cluster_view, version, MO_STR),
	MO_F(cluster_view, loopback, MO_BOOL),
};
const struct mo_desc cluster_view_desc = MO_DESC(cluster_view, cluster_view_fields);

static int64_t shown_iteration(const struct job *j)
{
	if (j->iteration != MO_NONE)
		return j->iteration;
	return j->resume >= 0 ? j->resume : MO_NONE;
}

static double eta(const struct job *j, int64_t iteration)
{
	int64_t step = samples_step_us(j);

	if (job_state_final(j->state) || j->spec.recipe.steps == MO_NONE || iteration == MO_NONE ||
	    step <= 0)
		return MO_NONE_F;
	return (double)MO_MAX(0, j->spec.recipe.steps - iteration) * (double)step / 1e6;
}

/* Nodes of the current attempt, else of the last one's ranks. */
static void job_nodes(const struct job *j, struct job_view *ret)
{
	for (size_t i = 0; i < j->n_places; i++)
		mo_strs_add(&ret->nodes, &ret->n_nodes, j->places[i].node);
	for (size_t i = 0; j->n_places == 0 && i < j->n_ranks; i++)
		if (i == 0 || !mo_streq(j->ranks[i].node, j->ranks[i - 1].node))
			mo_strs_add(&ret->nodes, &ret->n_nodes, j->ranks[i].node);
}

/* Its reason, and what it waits for. */
static void job_waits(const struct state *s, const struct job *j, int64_t now, struct job_view *ret)
{
	struct waiting w;

	if (!waiting_of(s, j, now, &w)) {
		ret->reason = mo_strdup(j->reason);
		return;
	}
	ret->reason = waiting_reason(&w, j);
	char *text = waiting_text(&w);

	free(w.text);
	w.text = text;
	ret->waiting = mo_alloc(sizeof(*ret->waiting));
	*ret->waiting = w;
}

void job_view(const struct state *s, const struct job *j, int64_t now, struct job_view *ret)
{
	const struct checkpoint *c = checkpoint_find(j, state_newest_checkpoint(j));
	_cleanup_(checkpoint_unsaved_done) struct unsaved unsaved;

	ret->id = j->id;
	ret->name = mo_strdup(j->spec.recipe.name);
	ret->state = j->state;
	ret->attempt = j->attempt;
	ret->restarts = j->restarts;
	ret->iteration = shown_iteration(j);
	ret->steps = j->spec.recipe.steps;
	ret->loss = j->loss;
	ret->tokens_per_s_per_gpu = j->tokens_per_s_per_gpu;
	ret->tflops_per_gpu = j->tflops_per_gpu;
	ret->mfu = j->mfu;
	ret->ranks = job_world(j);
	job_nodes(j, ret);
	ret->created_at = j->created_at;
	ret->started_at = j->started_at;
	ret->ended_at = j->ended_at;
	ret->eta_s = eta(j, ret->iteration);
	job_waits(s, j, now, ret);
	if (c) {
		ret->checkpoint = mo_desc_new(&view_checkpoint_desc);
		ret->checkpoint->iteration = c->iteration;
		ret->checkpoint->path = mo_strdup(c->path);
		ret->checkpoint->verified = c->state == CKPT_VERIFIED;
	}
	if (j->spec.recipe.checkpoint.automatic) {
		ret->checkpoint_every = mo_desc_new(&interval_desc);
		interval_of(s, j, ret->checkpoint_every);
	}
	if (j->spec.promise) {
		ret->plan = mo_desc_new(&actual_desc);
		actual_of(j, ret->plan);
	}
	ret->prepare = prepare_view_of(j);
	if (checkpoint_unsaved(j, &unsaved))
		ret->checkpoint_late = mo_printf("%s; %s", unsaved.text, unsaved.last_save);
	ret->resumes_at = j->state == JOB_PAUSED && j->attempt > 0 ? checkpoint_next(j) : MO_NONE;
	ret->user = mo_strdup(j->spec.user);
	ret->priority = j->spec.recipe.priority;
	ret->phase = j->phase;
	ret->samples_left_out = j->left_out;
	ret->resume = j->attempt > 0 ? j->resume : MO_NONE;
}

static void findings(const struct node *n, struct node_view *ret)
{
	for (size_t i = 0; i < n->health->n_results; i++) {
		const struct check_result *r = &n->health->results[i];
		struct node_check *c = MO_ADD(ret, checks, &node_check_desc);

		c->check = mo_strdup(r->check);
		c->object = mo_strdup(r->object);
		c->state = mo_strdup(mo_enum_name(check_state_names, _CHECK_STATE_N, r->state));
		c->text = mo_strdup(r->text);
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
	for (size_t i = 0; i < n->n_strange; i++)
		mo_strs_add(&ret->unknown_steps, &ret->n_unknown_steps, n->strange[i]);
	ret->checks[ret->n_checks - 1].next = mo_printf("let it end, or `moectl resolve %s --kill`",
							n->n_strange ? n->strange[0] : "STEP");
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
	check(ret, "reconciled", n->reconciled ? "ok" : "waiting",
	      n->reconciled ? NULL : "the agent did not say hello since the controller started");
	check(ret, "token", n->token_expired ? "failed" : "ok",
	      n->token_expired ? "its token has expired: it gets no new work; see `moectl doctor`"
			       : NULL);
	if (n->strange_steps)
		check_unknown(n, ret);
	else
		check(ret, "steps", uncertain ? "failed" : "ok", uncertain);
}

void node_view(const struct state *s, const struct node *n, int64_t now, bool with_info,
	       struct node_view *ret)
{
	ret->name = mo_strdup(n->name);
	ret->state = node_shown_state(s, n);
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
	if (ret->refuses)
		ret->gpus_free = 0;
	ret->heartbeat_age_ms = MO_MAX(0, now - node_heard_at(s, n)) / 1000;
	node_checks(s, n, ret);
	ret->health = health_worst(n);
	ret->findings = n->health ? (int64_t)n->health->n_results : 0;
	ret->checks_ok = n->health ? n->health->ok : MO_NONE;
	ret->cordoned = n->drain && n->cordon;
	ret->learn_until = n->learn_until;
	ret->would_cordon = health_held_text(n);
	ret->would_next = ret->would_cordon ? health_held_next(n) : NULL;
	if (with_info && n->health)
		findings(n, ret);
	ret->boot_id = mo_strdup(n->boot_id);
	ret->version = mo_strdup(n->version);
	ret->address = mo_strdup(n->address);
	ret->gpu_model = mo_strdup(n->info.n_gpus ? n->info.gpus[0].model : NULL);
	ret->info = with_info ? mo_desc_dup(&nodeinfo_desc, &n->info) : NULL;
}

void cluster_view(const struct state *s, const char *version, struct cluster_view *ret)
{
	struct slots slots;

	memset(&ret->nodes, 0, sizeof(ret->nodes));
	memset(ret->jobs, 0, sizeof(ret->jobs));
	ret->gpus.total = ret->gpus.free = 0;
	slots_init(s, &slots);
	for (size_t i = 0; i < s->n_nodes; i++) {
		ret->gpus.total += (int64_t)s->nodes[i].info.n_gpus;
		ret->gpus.free += slots.usable[i] ? (int64_t)slots.n_free[i] : 0;
		switch (node_shown_state(s, &s->nodes[i])) {
		case NODE_UP: ret->nodes.up++; break;
		case NODE_SUSPECT: ret->nodes.suspect++; break;
		case NODE_DOWN: ret->nodes.down++; break;
		case NODE_DRAINING: ret->nodes.draining++; break;
		default: ret->nodes.drained++; break;
		}
	}
	slots_done(&slots);
	for (size_t i = 0; i < s->n_jobs; i++)
		ret->jobs[s->jobs[i].state]++;
	ret->epoch = s->epoch;
	ret->version = mo_strdup(version);
}
