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

static const struct mo_field newest_checkpoint_fields[] = {
	MO_D(newest_checkpoint, iteration, MO_INT, "iteration that it was saved at"),
	MO_D(newest_checkpoint, path, MO_STR, "directory or file on the training nodes"),
	MO_D(newest_checkpoint, verified, MO_BOOL,
	     "it was looked at and is whole, as far as its level says"),
};
static const struct mo_desc newest_checkpoint_desc =
	MO_DESC(newest_checkpoint, newest_checkpoint_fields);
static const struct mo_field job_view_fields[] = {
	MO_D_ID(job_view, id, job_prefix, "id of the job"),
	MO_D(job_view, name, MO_STR, "name that the recipe gives it"),
	MO_D_ENUM(job_view, state, job_state_names, "state of the job"),
	MO_D(job_view, attempt, MO_INT,
	     "number of the newest attempt to run it, 0 before the first"),
	MO_D(job_view, restarts, MO_INT, "how often it was started again after a failure"),
	MO_D(job_view, iteration, MO_INT,
	     "newest iteration that was told, before that where the attempt began"),
	MO_D(job_view, steps, MO_INT, "iterations it is to run"),
	MO_D(job_view, loss, MO_REAL, "newest loss"),
	MO_D(job_view, tokens_per_s_per_gpu, MO_REAL,
	     "newest throughput, tokens a second of one GPU"),
	MO_D(job_view, tflops_per_gpu, MO_REAL,
	     "newest throughput, 10^12 operations of the model a second of one GPU"),
	MO_D(job_view, mfu, MO_REAL,
	     "share of the GPUs' peak that the model's operations use, 0 to 1"),
	MO_D(job_view, ranks, MO_INT, "processes of an attempt"),
	MO_D_LIST(job_view, nodes, MO_STRS, "nodes of this attempt, or of the last one"),
	MO_D(job_view, created_at, MO_TIME, "when it was submitted"),
	MO_D(job_view, started_at, MO_TIME, "when it first got its GPUs"),
	MO_D(job_view, ended_at, MO_TIME, "when it was completed, failed or cancelled"),
	MO_D(job_view, eta_s, MO_REAL, "seconds to its last iteration at its newest step times"),
	MO_D(job_view, reason, MO_STR, "why it is in its state, in words"),
	MO_D_SUB(job_view, checkpoint, MO_OPT, &newest_checkpoint_desc,
		 "newest one that a resume can begin from"),
	MO_D(job_view, user, MO_STR, "who submitted it"),
	MO_D(job_view, priority, MO_INT,
	     "priority of the recipe; of those that wait the highest starts first"),
	MO_D_ENUM(job_view, phase, phase_names, "what its ranks do"),
	MO_D(job_view, resume, MO_INT,
	     "iteration of the checkpoint that this attempt began with; -1: it began afresh"),
	MO_D(job_view, samples_left_out, MO_INT,
	     "iterations of which no Sample is kept: they came too fast for long", .omit = true),
	MO_D_SUB(job_view, checkpoint_every, MO_OPT, &interval_desc,
		 "with checkpoint.every: auto, how often it saves and why", .omit = true),
	MO_D_SUB(job_view, plan, MO_OPT, &actual_desc,
		 "what was planned and what is measured, of jobs that the planner knows",
		 .omit = true),
	MO_D_SUB(job_view, prepare, MO_OPT, &prepare_view_desc,
		 "what engine.prepare took, where it was done", .omit = true),
	MO_D(job_view, checkpoint_late, MO_STR,
	     "what is known of a running job that has not saved where it should", .omit = true),
	MO_D(job_view, resumes_at, MO_INT,
	     "of a paused job that has run, iteration where a resume begins; 0 = the beginning",
	     .omit = true),
	MO_D_SUB(job_view, waiting, MO_OPT, &waiting_desc, "what a job that waits is waiting for",
		 .omit = true),
};
const struct mo_desc job_view_desc = MO_DESC(job_view, job_view_fields);

static const struct mo_field node_check_fields[] = {
	MO_D(node_check, check, MO_STR, "id of the check, or heartbeat, reconciled, token, steps"),
	MO_D(node_check, object, MO_STR,
	     "what was looked at: PCI address of a GPU, name of a NIC, host", .omit = true),
	MO_D(node_check, state, MO_STR,
	     "ok, warn, crit or unknown; failed or waiting of what the controller looks at"),
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
		 "what was looked at; what agents found only in the document of one node"),
	MO_D(node_view, lemon_score, MO_REAL,
	     "how often jobs fail because of it; failures count half after seven days"),
	MO_D(node_view, boot_id, MO_STR, "which boot of the node this is"),
	MO_D(node_view, version, MO_STR, "version of its agent"),
	MO_D(node_view, address, MO_STR, "where it was heard from"),
	MO_D(node_view, gpu_model, MO_STR, "model of its GPUs"),
	MO_D(node_view, gpus_free, MO_INT, "GPUs that a job could get now"),
	MO_D_ENUM(node_view, health, check_state_names,
		  "worst of what its agent found; null: it told nothing"),
	MO_D(node_view, findings, MO_INT, "checks that are not ok"),
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
	     "every check that jobs wait for was looked at in this boot", .omit = true),
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
	MO_D(cluster_nodes, up, MO_INT, "nodes that are heard"),
	MO_D(cluster_nodes, suspect, MO_INT, "nodes that are silent for a while"),
	MO_D(cluster_nodes, down, MO_INT, "nodes that are silent for long"),
	MO_D(cluster_nodes, draining, MO_INT, "nodes that get no new work and still have some"),
	MO_D(cluster_nodes, drained, MO_INT, "nodes that get no new work and have none"),
};
static const struct mo_field cluster_gpus_fields[] = {
	MO_D(cluster_gpus, total, MO_INT, "GPUs of all nodes"),
	MO_D(cluster_gpus, free, MO_INT, "GPUs that a job could get now")
};
static const struct mo_field cluster_jobs_fields[] = {
	MO_D(cluster_jobs, queued, MO_INT, "jobs that wait for GPUs"),
	MO_D(cluster_jobs, starting, MO_INT, "jobs whose ranks are being started"),
	MO_D(cluster_jobs, running, MO_INT, "jobs that train"),
	MO_D(cluster_jobs, recovering, MO_INT, "jobs between a failure and their next attempt"),
	MO_D(cluster_jobs, stopping, MO_INT, "jobs whose ranks are being ended"),
	MO_D(cluster_jobs, paused, MO_INT, "jobs that were stopped to be resumed"),
	MO_D(cluster_jobs, completed, MO_INT, "jobs that reached their end"),
	MO_D(cluster_jobs, failed, MO_INT, "jobs that were given up"),
	MO_D(cluster_jobs, cancelled, MO_INT, "jobs that were ended by somebody"),
};
static const struct mo_desc cluster_nodes_desc = MO_DESC(cluster_nodes, cluster_nodes_fields),
			    cluster_gpus_desc = MO_DESC(cluster_gpus, cluster_gpus_fields),
			    cluster_jobs_desc = MO_DESC(cluster_jobs, cluster_jobs_fields);
static const struct mo_field cluster_view_fields[] = {
	MO_D_SUB(cluster_view, nodes, MO_STRUCT, &cluster_nodes_desc, "nodes by state"),
	MO_D_SUB(cluster_view, gpus, MO_STRUCT, &cluster_gpus_desc, "GPUs"),
	MO_D_SUB(cluster_view, jobs, MO_STRUCT, &cluster_jobs_desc, "jobs by state"),
	MO_D(cluster_view, epoch, MO_INT,
	     "higher after each start of a controller, and after each restore"),
	MO_D(cluster_view, version, MO_STR, "version of the controller"),
	MO_D(cluster_view, loopback, MO_BOOL, "it is reached from its own machine alone"),
};
const struct mo_desc cluster_view_desc = MO_DESC(cluster_view, cluster_view_fields);

static int64_t shown_iteration(const struct job *j)
{
	if (j->progress.iteration != MO_NONE)
		return j->progress.iteration;
	return j->run.resume >= 0 ? j->run.resume : MO_NONE;
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
	for (size_t i = 0; i < j->run.n_places; i++)
		mo_strs_add(&ret->nodes, &ret->n_nodes, j->run.places[i].node);
	for (size_t i = 0; j->run.n_places == 0 && i < j->run.n_ranks; i++)
		if (i == 0 || !mo_streq(j->run.ranks[i].node, j->run.ranks[i - 1].node))
			mo_strs_add(&ret->nodes, &ret->n_nodes, j->run.ranks[i].node);
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
	ret->loss = j->progress.loss;
	ret->tokens_per_s_per_gpu = j->progress.tokens_per_s_per_gpu;
	ret->tflops_per_gpu = j->progress.tflops_per_gpu;
	ret->mfu = j->progress.mfu;
	ret->ranks = job_world(j);
	job_nodes(j, ret);
	ret->created_at = j->created_at;
	ret->started_at = j->started_at;
	ret->ended_at = j->ended_at;
	ret->eta_s = eta(j, ret->iteration);
	job_waits(s, j, now, ret);
	if (c) {
		ret->checkpoint = mo_desc_new(&newest_checkpoint_desc);
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
	ret->phase = j->progress.phase;
	ret->samples_left_out = j->progress.left_out;
	ret->resume = j->attempt > 0 ? j->run.resume : MO_NONE;
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
