/* The only place that changes the state: one function per record type, in one table, under
 * core_update().
 *
 * It is called by turn_emit() at the first time, by the shell's replay at a start, by quarantine,
 * simulator and fuzzers: the same code each time, so it reads nothing but the record and the
 * state before it. No clock (the record has its time), no configuration that may differ at the
 * next start, no `struct live` that decides. It also keeps true what is derived: the indexes of
 * struct core, the counts of jobs, which nodes and jobs the rules must visit.
 *
 * What never happens: a decision (rules make it, the record says it), an event or reply, a record
 * half applied: what a function refuses (-EINVAL) it refuses before it changes anything. A record
 * of a version or content that this program does not understand is -EINVAL: the shell then
 * refuses to start rather than go on from a state that never was.
 *
 * check.h says what holds after each turn; what must hold for one function to work is asserted in
 * it. Large subjects have files of their own: update_node.c, update_notes.c, update_tokens.c,
 * update_config.c, update_incarnation.c, measured.c. */
#include "daemon/core/update/update.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/clock.h"
#include "daemon/core/state/interval.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/measured.h"
#include "daemon/core/update/ring.h"
#include "daemon/core/update/update_config.h"
#include "daemon/core/update/update_incarnation.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_notes.h"
#include "daemon/core/update/update_tokens.h"
#include "daemon/core/update/verify.h"
#include "daemon/core/update/waterfall.h"
#include "lib/model/limits.h"

/* completed jobs whose last scan is waited for; a node that does not answer keeps one here */
#define ENDING_MAX 64
#define FULL_HISTORY 1000 /* the newest jobs that keep all samples and ranks */
#define THIN_SAMPLES 200  /* of an older finished job */

static struct job *job_of(struct core *c, const struct record *r)
{
	return job_edit(&c->owned, r->job);
}

static struct step *step_of(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);

	return j ? step_edit(j, r->attempt, r->node) : NULL;
}

/* What a step whose end was not reported by its own supervisor did last is not known. */
static void attempt_over(struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++)
		j->unheard |= j->steps[i].attempt == j->attempt &&
			      (!j->steps[i].ended || j->steps[i].lost);
	checkpoint_forget_manifests(j);
	job_clear_attempt(j);
}

static int on_controller(struct core *c, const struct record *r)
{
	const struct rec_controller *k = r->controller;

	c->owned.epoch = k->epoch;
	if (c->owned.restored_jobs != MO_NONE && c->owned.restored_wait == MO_NONE)
		c->owned.restored_wait = k->restored_wait == MO_NONE ? r->time : k->restored_wait;
	for (size_t i = 0; i < c->owned.n_nodes; i++)
		c->owned.nodes[i]->agent.reconciled = false;
	c->queue_dirty = true;
	return 0;
}

static void job_init(struct core *c, struct job *j, int64_t id, const struct submit *spec,
		     int64_t now)
{
	j->id = id;
	shared_pool_copy(&c->shared, &j->spec, spec);
	j->saves.dir = mo_path_clean(spec->recipe.checkpoint.dir);
	j->state = JOB_QUEUED;
	j->intent = INTENT_NONE;
	j->counts.dead = j->counts.trouble = j->counts.exited = j->counts.silent =
		j->counts.drained = j->counts.forgotten = 0;
	j->attempt = j->restarts = j->scan.attempt = j->streak.same = j->streak.ports_busy =
		j->streak.cycles = j->counts.started = j->waterfall.stage = j->verify.serial =
			j->saves.every = j->saves.n = 0;
	j->created_at = j->state_since = j->queued_since = j->ledger_at = now;
	j->not_before = 0;
	j->run.resume = -1;
	for (int i = 0; i < _GPU_CATEGORY_N; i++)
		mo_ints_add(&j->ledger, &j->n_ledger, 0);
}

/* An old finished job keeps its row and a coarse curve. */
static void thin_history(struct core *c)
{
	struct state *s = &c->owned;
	struct job *j = s->n_jobs > FULL_HISTORY ? s->jobs[s->n_jobs - 1 - FULL_HISTORY] : NULL;
	size_t retained = 0, stride;

	if (!j || !job_state_final(j->state) || j->progress.n_samples <= THIN_SAMPLES)
		return;
	stride = (j->progress.n_samples + THIN_SAMPLES - 1) / THIN_SAMPLES;
	for (size_t i = 0; i < j->progress.n_samples; i++)
		if ((j->progress.n_samples - 1 - i) % stride == 0)
			j->progress.samples[retained++] =
				j->progress.samples[i]; /* samples own nothing */
	j->progress.n_samples = retained;
	mo_vec_clear(&rank_desc, (void **)&j->run.ranks, &j->run.n_ranks);
	core_beats_drop(c, j->id);
}

/* Finished jobs above the limit go in one sweep of a sixteenth, oldest first. */
static void prune_history(struct core *c)
{
	struct state *s = &c->owned;
	size_t drop = s->n_jobs > MO_JOBS_RETAINED_MAX ? MO_JOBS_RETAINED_MAX / 16 : 0,
	       retained = 0;

	if (drop == 0)
		return;
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (drop && job_state_final(s->jobs[i]->state) && s->jobs[i]->n_steps == 0) {
			retained_leave(c, s->jobs[i]);
			core_beats_drop(c, s->jobs[i]->id);
			mo_desc_free(&job_desc, s->jobs[i]);
			drop--;
		} else {
			s->jobs[retained++] = s->jobs[i];
		}
	}
	s->n_jobs = retained;
}

static int on_submit(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	struct job *j;

	if (r->job < s->next_job)
		return -EINVAL;
	idem_add(c, r->submit, r->job, r->time);
	j = MO_INSERT(s, jobs, s->n_jobs, &job_desc);
	job_init(c, j, r->job, r->submit, r->time);
	retained_count(c, j);
	s->next_job = r->job + 1;
	ids_add(&c->unfinished, &c->n_unfinished, r->job);
	ids_add(&c->fresh, &c->n_fresh, r->job);
	thin_history(c);
	prune_history(c);
	return 0;
}

/* The oldest gives up its place: its node did not answer for a long time. */
static void end_scan_due(struct core *c, struct job *j)
{
	struct job *oldest = c->n_ending >= ENDING_MAX ? job_edit(&c->owned, c->ending[0]) : NULL;

	if (c->n_ending >= ENDING_MAX)
		ids_remove(c->ending, &c->n_ending, c->ending[0]);
	if (oldest) {
		oldest->scan.at_end = false;
		checkpoint_removal_over(oldest, NULL);
	}
	j->scan.at_end = true;
	ids_add(&c->ending, &c->n_ending, j->id);
}

static int on_job(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	const struct rec_job *k = r->transition;

	if (!j || k->state < 0 || k->state >= _JOB_STATE_N)
		return -EINVAL;
	ledger_charge(j, r->time);
	if (j->state != k->state || k->attempt_over)
		c->queue_dirty = true;
	if (j->state != k->state)
		j->state_since = r->time;
	if (k->state == JOB_QUEUED && j->state != JOB_QUEUED) {
		j->queued_since = r->time;
		j->after_failure = false;
	}
	j->state = k->state;
	mo_str_set(&j->reason, k->reason);
	if (k->attempt_over) {
		attempt_over(j);
		j->waterfall.gone_at = r->time;
		j->scan.at = MO_NONE;
	}
	if (k->follows == FOLLOWS_FAILURE) {
		j->after_failure = true;
		j->streak.ports_busy = 0;
		j->not_before =
			r->time + (j->spec.recipe.grace_us > 0 ? j->spec.recipe.grace_us : 0);
	} else if (k->follows == FOLLOWS_BUSY_PORTS) {
		j->streak.ports_busy++;
	}
	if (k->state == JOB_QUEUED || k->state == JOB_PAUSED || job_state_final(k->state))
		j->intent = INTENT_NONE;
	if (k->state != JOB_RECOVERING)
		checks_over(c, j);
	if (job_state_final(k->state)) {
		retained_leave(c, j);
		j->ended_at = r->time;
		retained_count(c, j);
		ids_remove(c->unfinished, &c->n_unfinished, j->id);
		if (j->saves.dir &&
		    (checkpoint_any_removing(j) ||
		     (k->state == JOB_COMPLETED && state_newest_checkpoint(j) != MO_NONE)))
			end_scan_due(c, j);
	}
	waterfall_changed(j, r->time);
	return 0;
}

static int on_intent(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	const struct rec_intent *k = r->intent;

	if (!j || k->intent < 0)
		return -EINVAL;
	j->intent = k->intent;
	j->intent_now = k->now;
	j->restart_from = k->restart_from;
	j->scan.at = MO_NONE;
	/* a person dealt with it: the count of equal failures begins anew */
	if (k->intent == INTENT_RESTART) {
		j->streak.same = j->streak.cycles = 0;
		mo_str_set(&j->streak.signature, NULL);
	}
	c->queue_dirty = true;
	return 0;
}

static int on_scan(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);

	if (!j)
		return -EINVAL;
	if (r->scan->order == ORDER_PRUNE) {
		checkpoint_pruned(j, r->scan);
		return 0;
	}
	if (r->scan->order == ORDER_VERIFY) {
		verify_result(j, r->scan, r->time);
		return 0;
	}
	checkpoint_scan(j, r->scan, r->time);
	if (j->scan.at_end) {
		j->scan.at_end = false;
		checkpoint_removal_over(j, r->scan);
		ids_remove(c->ending, &c->n_ending, j->id);
		return 0;
	}
	c->queue_dirty = true;
	return 0;
}

static void rank_init(const struct job *j, const struct node *n, struct rank *k,
		      const struct place *p, int64_t local)
{
	k->rank = p->first_rank + local;
	k->node = mo_strdup(p->node);
	k->local_rank = local;
	k->state = RANK_WAITING;
	k->gpu = p->gpus[local];
	for (size_t i = 0; n && i < n->info.n_gpus; i++)
		if (n->info.gpus[i].index == k->gpu)
			k->nic = mo_strdup(n->info.gpus[i].nic);
	rank_place(j, p, k);
}

static void step_init(struct core *c, struct job *j, const struct place *p, const char *boot_id)
{
	struct step *st = MO_ADD(j, steps, &step_desc);
	struct live *l = core_live(c, p->node);

	st->node = mo_strdup(p->node);
	st->boot_id = mo_strdup(boot_id);
	st->attempt = j->attempt;
	st->through = st->n_exited = st->n_bad = 0;
	st->first_rank = p->first_rank;
	st->n_ranks = p->n_ranks;
	if (l)
		ids_add(&l->jobs, &l->n_jobs, j->id);
}

/* By what the attempts before have measured; an engine cannot change it while it runs. */
static void every_set(const struct state *s, struct job *j)
{
	struct interval i;

	mo_desc_init(&interval_desc, &i);
	if (interval_of(s, j, &i))
		j->saves.every = i.next;
	mo_desc_done(&interval_desc, &i);
}

static int on_place(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	struct job *j = job_of(c, r);
	const struct rec_place *k = r->place;

	if (!j || r->attempt <= j->attempt || k->n_places == 0 || k->n_boot_ids != k->n_places)
		return -EINVAL;
	ledger_charge(j, r->time);
	job_clear_attempt(j);
	checks_over(c, j);
	ids_add(&c->owned.holders, &c->owned.n_holders, j->id);
	j->attempt = r->attempt;
	j->run.port = k->port;
	mo_vec_clear(&prepared_desc, (void **)&j->run.prepared, &j->run.n_prepared);
	j->config.due = false;
	mo_str_set(&j->config.refused, NULL);
	s->next_port = k->port + 4;
	j->restarts += k->is_restart;
	every_set(s, j);
	j->run.resume = k->resume;
	if (j->started_at == MO_NONE)
		j->started_at = r->time;
	if (j->n_incidents && j->after_failure) {
		struct incident *inc = &j->incidents[j->n_incidents - 1];

		if (j->waterfall.lost_mark != MO_NONE)
			inc->lost_iterations =
				MO_MAX(0, j->waterfall.lost_mark - MO_MAX(0, k->resume));
		free(inc->action);
		inc->action = k->resume >= 0
				      ? mo_printf("restart from checkpoint %lld as attempt %lld",
						  (long long)k->resume, (long long)r->attempt)
				      : mo_printf("restart from the beginning as attempt %lld",
						  (long long)r->attempt);
	}
	if (k->resume < 0)
		checkpoint_pass_over(j);
	if (j->restart_from != MO_NONE)
		checkpoint_supersede(j, k->resume, r->attempt, r->time);
	j->progress.iteration = j->restart_from = MO_NONE;
	j->after_failure = j->unheard = false;
	j->intent = INTENT_NONE;
	j->progress.phase = PHASE_NONE;
	j->progress.at = r->time;
	mo_vec_clear(&rank_desc, (void **)&j->run.ranks, &j->run.n_ranks);
	for (size_t i = 0; i < k->n_places; i++) {
		const struct node *n = node_find(s, k->places[i].node);

		mo_desc_copy(&place_desc, MO_ADD(&j->run, places, &place_desc), &k->places[i]);
		step_init(c, j, &k->places[i], k->boot_ids[i]);
		for (int64_t n_rank = 0; n_rank < k->places[i].n_ranks; n_rank++)
			rank_init(j, n, MO_ADD(&j->run, ranks, &rank_desc), &k->places[i], n_rank);
	}
	waterfall_changed(j, r->time);
	c->queue_dirty = true;
	return 0;
}

static int on_accept(struct core *c, const struct record *r)
{
	struct step *st = step_of(c, r);

	if (!st)
		return -EINVAL;
	st->accepted = r->accept->acts;
	return 0;
}

static int on_notes(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);

	struct step *st = step_of(c, r);

	if (!st)
		return -EINVAL;
	step_count(c, j, st, -1);
	update_notes(j, r);
	for (size_t i = 0; i < r->n_notes; i++)
		if (r->notes[i].config) {
			retained_count(c, j);
			break;
		}
	step_count(c, j, st, 1);
	if (r->attempt == j->attempt)
		doubt_begun(j);
	return 0;
}

static int on_fail(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	const struct rec_fail *k = r->fail;

	if (!j || r->attempt != j->attempt)
		return -EINVAL;
	/* an iteration that was not finished is no first pass */
	ledger_charge_as(j, r->time, ledger_category(j) < 0 ? GPU_DETECT : ledger_category(j));
	j->failure.decided = true;
	j->failure.at = r->time;
	j->failure.rank = k->first_rank;
	j->failure.detect_us = k->told_after_us;
	j->waterfall.lost_mark = j->progress.iteration;
	j->failure.exit_mono_ns = k->first_rank >= 0 && (size_t)k->first_rank < j->run.n_ranks
					  ? j->run.ranks[k->first_rank].exit_mono_ns
					  : MO_NONE;
	mo_str_set(&j->failure.node, r->node);
	mo_str_set(&j->failure.class, k->class);
	mo_str_set(&j->failure.cause, k->cause);
	for (size_t i = 0; i < j->failure.n_evidence; i++)
		free(j->failure.evidence[i]);
	j->failure.n_evidence = 0;
	for (size_t i = 0; i < k->n_evidence; i++)
		mo_strs_add(&j->failure.evidence, &j->failure.n_evidence, k->evidence[i]);
	return 0;
}

static int on_gone(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	struct step *st = step_of(c, r);

	if (!st)
		return -EINVAL;
	step_count(c, j, st, -1);
	st->gone = true;
	st->hung = false;
	step_count(c, j, st, 1);
	mo_str_set(&st->gone_how, r->gone->how);
	for (int64_t k = st->first_rank;
	     r->attempt == j->attempt && k < st->first_rank + st->n_ranks &&
	     (size_t)k < j->run.n_ranks;
	     k++) {
		struct rank *rank = &j->run.ranks[k];

		if (rank->exit)
			continue;
		rank->state = RANK_EXITED;
		rank->exit = mo_desc_new(&rank_exit_desc);
		rank->exit->cause = mo_strdup("node-lost");
	}
	c->queue_dirty = true;
	return 0;
}

/* Forgotten steps go together: one by one they would move the others as many times. */
static void sweep_forgotten(struct job *j)
{
	size_t retained = 0;

	if (j->counts.forgotten < (int64_t)j->n_steps &&
	    (j->counts.forgotten < 64 || 2 * j->counts.forgotten < (int64_t)j->n_steps))
		return;
	for (size_t i = 0; i < j->n_steps; i++) {
		if (j->steps[i].forgotten)
			mo_desc_done(&step_desc, &j->steps[i]);
		else if (retained++ != i)
			j->steps[retained - 1] = j->steps[i];
	}
	j->n_steps = retained;
	j->counts.forgotten = 0;
}

static int on_forgotten(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	struct step *st = step_of(c, r);
	struct live *l = core_live(c, r->node);

	if (!st || !st->gone)
		return -EINVAL;
	st->forgotten = true;
	j->counts.forgotten++;
	if (l && !step_next(j, r->node, -1))
		ids_remove(l->jobs, &l->n_jobs, j->id);
	sweep_forgotten(j);
	if (j->n_steps == 0)
		ids_remove(c->owned.holders, &c->owned.n_holders, j->id);
	c->queue_dirty = true;
	return 0;
}

static int on_wait_node(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);

	if (!j)
		return -EINVAL;
	if (r->wait_node->waits && ledger_category(j) < 0)
		ledger_charge_as(j, r->time, GPU_DETECT);
	else
		ledger_charge(j, r->time);
	j->failure.waiting_node = r->wait_node->waits;
	return 0;
}

static int on_hung(struct core *c, const struct record *r)
{
	struct step *st = step_of(c, r);

	if (!st || r->hung->reach < 0)
		return -EINVAL;
	st->hung = r->hung->reach != REACH_ANSWERS && !st->gone;
	st->missing = r->hung->reach == REACH_MISSING;
	c->queue_dirty = true;
	return 0;
}

static int on_incident(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	const struct rec_incident *k = r->incident;

	if (!j)
		return -EINVAL;
	if (j->n_incidents >= MO_INCIDENTS_MAX)
		mo_vec_remove(&incident_desc, j->incidents, &j->n_incidents, 0);
	mo_desc_copy(&incident_desc, MO_ADD(j, incidents, &incident_desc), &k->details);
	j->streak.cycles = j->streak.cycles > 0 && j->streak.checkpoint == k->newest_checkpoint
				   ? j->streak.cycles + 1
				   : 1;
	j->streak.same = k->in_a_row;
	mo_str_set(&j->streak.signature, k->signature);
	j->streak.checkpoint = k->newest_checkpoint;
	j->waterfall.stage = 1;
	j->waterfall.at = r->time;
	return 0;
}

static int on_checkpoint(struct core *c, const struct record *r)
{
	struct job *j = job_of(c, r);
	struct checkpoint *k = j ? checkpoint_edit(j, r->checkpoint->iteration) : NULL;

	if (!k)
		return -EINVAL;
	mo_desc_copy(&checkpoint_desc, k, r->checkpoint);
	return 0;
}

static int on_event(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;

	if (r->event->seq < s->next_event_seq)
		return -EINVAL;
	ring_make_room(s);
	mo_desc_copy(&event_desc, MO_ADD(s, events, &event_desc), r->event);
	s->next_event_seq = r->event->seq + 1;
	return 0;
}

/* The one record after which time may be earlier than before. */
static int on_clock(struct core *c, const struct record *r)
{
	struct state *s = &c->owned;
	const struct rec_clock *k = r->clock;

	if (k->shift_us == MO_NONE || k->boottime_us == MO_NONE)
		return -EINVAL;
	if (k->shift_us)
		clock_shift(s, k->shift_us, r->time);
	mo_str_set(&s->clock_boot_id, k->boot_id);
	s->clock_time = r->time;
	s->clock_boot = k->boottime_us;
	if (k->synchronised)
		s->clock_doubt = MO_NONE;
	else if (s->clock_doubt == MO_NONE)
		s->clock_doubt = r->time;
	s->time = r->time;
	return 0;
}

static int (*const updates[_REC_N])(struct core *c, const struct record *r) = {
	[REC_CONTROLLER] = on_controller,
	[REC_SUBMIT] = on_submit,
	[REC_JOB] = on_job,
	[REC_INTENT] = on_intent,
	[REC_SCAN] = on_scan,
	[REC_PLACE] = on_place,
	[REC_ACCEPT] = on_accept,
	[REC_NOTES] = on_notes,
	[REC_FAIL] = on_fail,
	[REC_GONE] = on_gone,
	[REC_FORGOTTEN] = on_forgotten,
	[REC_NODE] = update_node,
	[REC_NODE_STATE] = update_node_state,
	[REC_DRAIN] = update_drain,
	[REC_ACK] = update_ack,
	[REC_LEAVING] = update_leaving,
	[REC_STRANGE] = update_strange,
	[REC_WAIT_NODE] = on_wait_node,
	[REC_HUNG] = on_hung,
	[REC_INCIDENT] = on_incident,
	[REC_CHECKPOINT] = on_checkpoint,
	[REC_TOKEN] = update_token,
	[REC_TOKEN_REVOKED] = update_token_revoked,
	[REC_EVENT] = on_event,
	[REC_HEALTH] = update_health,
	[REC_CHECK] = update_check,
	[REC_MEASURED] = update_measured,
	[REC_CLOCK] = on_clock,
	[REC_TOKEN_USED] = update_token_used,
	[REC_NODE_TOKEN] = update_node_token,
	[REC_RESTORED] = update_restored,
	[REC_OBEYS] = update_obeys,
	[REC_DISCARD] = update_discard,
	[REC_CONFIG] = update_config,
};

int core_update(struct core *c, const struct record *r)
{
	int result;

	if (r->version != RECORD_VERSION || r->type < 0 || r->type >= _REC_N || !record_whole(r))
		return -EINVAL;
	result = updates[r->type](c, r);
	if (result < 0)
		return result;
	c->owned.time = MO_MAX(c->owned.time, r->time);
	if (r->job != MO_NONE && r->type != REC_EVENT)
		core_touch(c, r->job);
	return 0;
}
