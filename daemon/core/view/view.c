/* Documents of the REST interface made from state: jobs, nodes, cluster. Pure getters: no event,
 * no record. The ones that explain are in why.c and report.c. */
#include "daemon/core/view/view.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/rules/place.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/data_order.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/view/prepare.h"
#include "daemon/core/view/unsaved.h"
#include "lib/model/limits.h"

static const struct mo_field newest_checkpoint_fields[] = {
	MO_D(newest_checkpoint, iteration, MO_INT, "iteration that it was saved at"),
	MO_D(newest_checkpoint, path, MO_STR, "directory or file on the training nodes"),
	MO_D(newest_checkpoint, verified, MO_BOOL,
	     "it was checked and is whole, as far as its level says"),
};
static const struct mo_desc newest_checkpoint_desc =
	MO_DESC(newest_checkpoint, newest_checkpoint_fields);
static const struct mo_field spare_view_fields[] = {
	MO_D(spare_view, node, MO_STR, "name of the node"),
	MO_D(spare_view, checked, MO_BOOL,
	     "its checks were made, and a failed job goes on with it at once"),
};
static const struct mo_desc spare_view_desc = MO_DESC(spare_view, spare_view_fields);
static const struct mo_field job_view_fields[] = {
	MO_D_ID(job_view, id, job_prefix, "id of the job"),
	MO_D(job_view, name, MO_STR, "name that the recipe gives it"),
	MO_D_ENUM(job_view, state, job_state_names, "state of the job"),
	MO_D(job_view, attempt, MO_INT,
	     "number of the newest attempt to run it, 0 before the first"),
	MO_D(job_view, restarts, MO_INT, "how often it was started again after a failure"),
	MO_D(job_view, iteration, MO_INT,
	     "newest iteration that was reported, before that where the attempt began"),
	MO_D(job_view, steps, MO_INT, "iterations it is to run"),
	JOB_SHOWN_ROWS(job_view, shown),
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
	MO_D_VEC(job_view, labels, &kv_desc, "words of the user for it (labels)",
		 .max = MO_LABELS_MAX, .omit = true),
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
	MO_D_SUB(job_view, slower, MO_OPT, &pace_view_desc,
		 "of a job that is slower than it was, by how much", .omit = true),
	MO_D_SUB(job_view, straggler, MO_OPT, &straggler_view_desc,
		 "rank that makes it slow, if one stands out", .omit = true),
	MO_D(job_view, resumes_at, MO_INT,
	     "of a paused job that has run, iteration where a resume begins; 0 = the beginning",
	     .omit = true),
	MO_D_SUB(job_view, waiting, MO_OPT, &waiting_desc, "what a job that waits is waiting for",
		 .omit = true),
	MO_D(job_view, image, MO_STR, "image whose files its ranks see (engine.container)",
	     .omit = true),
	MO_D_SUB(job_view, data_order, MO_OPT, &data_order_desc,
		 "whether the newest resume went on with its data, as the engine tells it",
		 .omit = true),
	MO_D_SUB(job_view, fabric, MO_OPT, &fabric_check_desc,
		 "what the newest check of the fabric over its nodes found", .omit = true),
	MO_D_VEC(job_view, skips, &skip_desc,
		 "data that its attempts leave out, oldest first (recovery.loss_spike.skip)",
		 .omit = true),
	MO_D(job_view, spares_wanted, MO_INT,
	     "nodes that are to be kept for it beside its ranks (cluster.spares)", .omit = true),
	MO_D_VEC(job_view, spares, &spare_view_desc, "those that are", .omit = true),
};
const struct mo_desc job_view_desc = MO_DESC(job_view, job_view_fields);

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

int64_t job_shown_iteration(const struct job *j)
{
	if (j->progress.iteration != MO_NONE)
		return j->progress.iteration;
	return j->run.resume >= 0 ? j->run.resume : MO_NONE;
}

double job_eta_s(const struct job *j)
{
	int64_t step = samples_step_us(j), iteration = job_shown_iteration(j);

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

static void job_spares(const struct state *s, const struct job *j, struct job_view *ret)
{
	if (j->spec.recipe.spares <= 0)
		return;
	ret->spares_wanted = j->spec.recipe.spares;
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct node *n = s->nodes[i];

		if (n->spare.job != j->id)
			continue;
		struct spare_view *v = MO_ADD(ret, spares, &spare_view_desc);

		v->node = mo_strdup(n->name);
		v->checked = n->spare.passed;
	}
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
	ret->iteration = job_shown_iteration(j);
	ret->steps = j->spec.recipe.steps;
	ret->shown = j->progress.shown;
	ret->ranks = job_world(j);
	job_nodes(j, ret);
	ret->created_at = j->created_at;
	ret->started_at = j->started_at;
	ret->ended_at = j->ended_at;
	ret->eta_s = job_eta_s(j);
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
		plan_drift_of(j, ret->plan);
	}
	ret->prepare = prepare_view_of(j);
	if (checkpoint_unsaved(j, &unsaved))
		ret->checkpoint_late = mo_printf("%s; %s", unsaved.text, unsaved.last_save);
	ret->slower = pace_view_of(j);
	ret->straggler = straggler_view_of(j);
	ret->resumes_at = j->state == JOB_PAUSED && j->attempt > 0 ? checkpoint_next(j) : MO_NONE;
	if (j->spec.recipe.engine.container)
		ret->image = mo_printf("%s%s%s", j->spec.recipe.engine.container->image,
				       j->image.digest ? " " : "",
				       j->image.digest ? j->image.digest : "");
	ret->fabric = mo_desc_dup(&fabric_check_desc, j->fabric);
	ret->data_order = mo_desc_dup(&data_order_desc, j->progress.data_order);
	for (size_t i = 0; i < j->n_skips; i++)
		mo_desc_copy(&skip_desc, MO_ADD(ret, skips, &skip_desc), &j->skips[i]);
	job_spares(s, j, ret);
	ret->user = mo_strdup(j->spec.user);
	for (size_t i = 0; i < j->spec.recipe.n_labels; i++)
		mo_desc_copy(&kv_desc, MO_ADD(ret, labels, &kv_desc), &j->spec.recipe.labels[i]);
	ret->priority = j->spec.recipe.priority;
	ret->phase = j->progress.phase;
	ret->samples_left_out = j->progress.left_out;
	ret->resume = j->attempt > 0 ? j->run.resume : MO_NONE;
}

void cluster_view(const struct state *s, const char *version, struct cluster_view *ret)
{
	struct tally t;

	tally_of(s, &t);
	ret->gpus.total = t.gpus;
	ret->gpus.free = t.free;
	ret->nodes.up = t.nodes[NODE_UP];
	ret->nodes.suspect = t.nodes[NODE_SUSPECT];
	ret->nodes.down = t.nodes[NODE_DOWN];
	ret->nodes.draining = t.nodes[NODE_DRAINING];
	ret->nodes.drained = t.nodes[NODE_DRAINED];
	memcpy(ret->jobs, t.jobs, sizeof(ret->jobs));
	ret->epoch = s->epoch;
	ret->version = mo_strdup(version);
}
