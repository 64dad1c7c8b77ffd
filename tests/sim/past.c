/* Backups of the controller's state, and what follows when an old one is put back (moed --restore)
 * while jobs train on: the controller forgets, nodes do not. What was acknowledged before the
 * backup holds as ever; what came after it is unknown to the controller, which must say so of
 * everything that lives, keep it, and kill none of it unless a person decides. */
#include "tests/sim/moed.h"
#include "tests/sim/check.h"

#include <stdlib.h>

#include "daemon/core/state/incarnation.h"
#include "lib/base/parse.h"

struct backup {
	int64_t at, wall, skew;
	bool used;
	struct state state;
	struct {
		int64_t id, from, started;
		bool from_asked;
	} jobs[JOBS_MAX];
};

void past_backup(struct sim *s)
{
	struct backup *b = mo_alloc(sizeof(*b)), **slot;

	b->at = s->now;
	b->wall = wall_now(s);
	b->skew = s->ctl.skew;
	mo_desc_init(&state_desc, &b->state);
	mo_desc_copy(&state_desc, &b->state, core_state(s->ctl.shadow));
	for (int i = 0; i < JOBS_MAX; i++) {
		b->jobs[i].id = s->jobs[i].id;
		b->jobs[i].from = s->jobs[i].from;
		b->jobs[i].started = s->jobs[i].started;
		b->jobs[i].from_asked = s->jobs[i].from_asked;
	}
	slot = MO_GROW(s->backups, s->n_backups);
	*slot = b;
}

void past_free(struct sim *s)
{
	for (size_t i = 0; i < s->n_backups; i++) {
		mo_desc_done(&state_desc, &s->backups[i]->state);
		free(s->backups[i]);
	}
	free(s->backups);
}

/* Its machine is lost with its state; any of the backups comes back. */
bool past_lose(struct sim *s)
{
	if (!s->ctl.up || s->n_backups == 0 || s->n_restores >= RESTORES_MAX)
		return false;
	s->n_restores++;
	s->ctl.restoring =
		s->backups[sim_chance(s, 0.6) ? s->n_backups - 1 : sim_random(s) % s->n_backups];
	control_crash(s, sim_between(s, S, 20 * S));
	return true;
}

static bool intact(const struct sim *s, const struct job *j)
{
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct simstep *st =
			step_of(s, sim_node(s, j->run.places[i].node), j->id, j->attempt);

		if (!st || !st->stepd || st->ordered || st->outside_at ||
		    st->boot != s->nodes[st->node].boot)
			return false;
		for (size_t k = 0; k < st->n_procs; k++)
			if (st->procs[k].started && !st->procs[k].alive)
				return false;
	}
	return j->run.n_places > 0;
}

/* Attempts with samples that only the lost controller had. */
static void cut(struct sim *s, const struct job *j)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		const struct step *known =
			st->job == j->id ? step_find(j, st->attempt, s->nodes[st->node].name)
					 : NULL;

		if (!known || (st->spooled && (int64_t)st->trimmed <= known->through))
			continue;
		for (size_t k = 0; k < s->n_attempts; k++)
			s->attempts[k]->cut |= s->attempts[k]->job == j->id &&
					       s->attempts[k]->number == st->attempt;
	}
}

/* What is known of checkpoints is what the backup knows. */
static void roll_files(struct truth *t, const struct job *j)
{
	for (size_t i = 0; i < t->n_files; i++) {
		struct file *f = &t->files[i];
		const struct checkpoint *c = j ? checkpoint_find(j, f->iteration) : NULL;

		f->given_up = c && c->state == CKPT_SUPERSEDED &&
			      WALL_US + f->changed_at <= checkpoint_seen(c);
		/* or written again since */
		f->altered = c && c->manifest && c->state != CKPT_SUPERSEDED &&
			     mo_parse_i64(c->manifest, 0, INT64_MAX, &f->was) == 0 &&
			     f->was != f->stamp;
		f->altered_at = 0;
	}
}

static void roll_job(struct sim *s, struct truth *t, const struct state *before,
		     const struct state *now)
{
	const struct job *was = job_find(before, t->id), *j = job_find(now, t->id);

	if (was && (was->failure.decided || was->state == JOB_STOPPING || was->run.n_places == 0)) {
		t->decided = was->attempt;
		sim_harm(s, t->id, was->attempt);
	}
	t->acked &= j != NULL;
	t->cancel_acked &= j && (j->state == JOB_CANCELLED ||
				 (j->state == JOB_STOPPING && j->intent == INTENT_CANCEL));
	t->stopping_since = 0;
	if (j && j->restart_from != MO_NONE) { /* as the backup has it: not obeyed yet */
		t->from_asked = true;
		t->from = j->restart_from;
	}
	roll_files(t, j);
	for (size_t i = 0; i < s->n_attempts; i++)
		s->attempts[i]->cut |=
			s->attempts[i]->job == t->id && (!j || s->attempts[i]->number > j->attempt);
	if (j)
		cut(s, j);
	if (!j || job_state_final(j->state))
		return;
	if (!intact(s, j))
		sim_harm(s, j->id, j->attempt);
	else if (t->harmed < j->attempt)
		s->fault_counts[F_ADOPTED]++;
}

/* What runs that the backup does not know. */
static void count_unknown(struct sim *s)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		const struct job *j = job_find(core_state(s->ctl.shadow), st->job);

		if (!st->stepd || (j && step_find(j, st->attempt, s->nodes[st->node].name)))
			continue;
		s->fault_counts[j ? F_UNKNOWN_ATTEMPT : F_UNKNOWN_JOB]++;
	}
}

void past_newest(struct sim *s)
{
	s->n_restores++;
	s->ctl.restoring = s->backups[s->n_backups - 1];
}

/* The state as a new controller reads it, and the truth that it can be held to. */
void past_restore(struct sim *s)
{
	struct backup *b = s->ctl.restoring;
	struct core *before = s->ctl.shadow;
	struct state copy;
	struct record r;

	if (!b)
		return;
	s->ctl.restoring = NULL;
	s->ctl.flipped = false;
	/* who restores looks at the clock: nodes obey no incarnation before the one that they
	 * know */
	s->ctl.wall_ahead = 0;
	sim_trace(s, "the state of %.3f is put back", (double)b->at / 1e6);
	s->ctl.skew = b->skew;
	s->fault_counts[F_RESTORE_AGAIN] += b->used;
	b->used = true;
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, &b->state);
	s->ctl.shadow = sim_core(s);
	core_load(s->ctl.shadow, &copy);
	mo_desc_done(&state_desc, &copy);
	record_init(&r, REC_RESTORED);
	r.time = b->state.time;
	r.restored->epoch = incarnation_epoch(b->state.epoch, wall_now(s));
	r.restored->from_backup = true;
	r.restored->backup_at = b->wall;
	if (core_update(s->ctl.shadow, &r) != 0)
		sim_violation(s, "a backup cannot be restored");
	mo_desc_done(&record_desc, &r);
	moed_begin(s, s->ctl.shadow);
	s->ctl.seq = 1;
	for (int i = 0; i < JOBS_MAX; i++)
		s->jobs[i].from_asked = false;
	for (int i = 0; i < JOBS_MAX; i++) {
		struct truth *t = b->jobs[i].id ? sim_job(s, b->jobs[i].id) : NULL;

		if (t) {
			t->from_asked = b->jobs[i].from_asked;
			t->from = b->jobs[i].from;
			t->started = b->jobs[i].started;
		}
	}
	for (int i = 0; i < JOBS_MAX; i++)
		if (s->jobs[i].id)
			roll_job(s, &s->jobs[i], core_state(before), core_state(s->ctl.shadow));
	count_unknown(s);
	/* the person has that to repair, too */
	if (!s->faults)
		fault_repair(s);
	core_free(before);
}

/* ---- held to ---- */

/* Processes of steps that the controller knows: those that it does not are reported, and waited
 * for, but end nothing. */
int64_t past_known_live(const struct sim *s, const struct job *j)
{
	int64_t n = 0;

	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];

		if (st->job != j->id || st->disowned ||
		    !step_find(j, st->attempt, s->nodes[st->node].name))
			continue;
		for (size_t k = 0; k < st->n_procs; k++)
			n += (st->procs[k].alive && !st->procs[k].stuck) + st->procs[k].child;
	}
	return n;
}

/* An order reaches a supervisor: who decided it? */
void past_check_order(struct sim *s, struct simstep *st)
{
	const struct job *j = job_find(core_state(s->ctl.shadow), st->job);
	const struct step *known = j ? step_find(j, st->attempt, s->nodes[st->node].name) : NULL;
	bool decided = st->resolved || sim_job(s, st->job)->decided >= st->attempt;

	st->ordered = true;
	if (known)
		decided |= st->attempt != j->attempt || j->run.n_places == 0 ||
			   j->failure.decided || j->state == JOB_STOPPING || known->gone;
	if (!decided)
		sim_violation(s,
			      "the step of j-%lld attempt %lld on %s is ended although nobody "
			      "decided it (%s)",
			      (long long)st->job, (long long)st->attempt, s->nodes[st->node].name,
			      known ? job_state_names[j->state] : "unknown to the controller");
}

/* What lives on a node that is heard is known, or reported. */
void past_check_reported(struct sim *s)
{
	const struct state *state = core_state(s->ctl.shadow);

	for (size_t i = 0; i < s->n_steps && s->ctl.up && s->ctl.paused_until <= s->now; i++) {
		const struct simstep *st = s->steps[i];
		const struct simnode *n = &s->nodes[st->node];
		const struct job *j = job_find(state, st->job);
		const struct node *node = node_find(state, n->name);
		int64_t since = MO_MAX(MO_MAX(n->ok_since, n->trouble_at),
				       MO_MAX(s->ctl.up_since, s->ctl.paused_until));
		_cleanup_(mo_freep) char *name = NULL;

		if (!st->stepd || !st->forked || !n->ok_since || s->now - since < 20 * S ||
		    (j && step_find(j, st->attempt, n->name)))
			continue;
		name = step_name(st->job, st->attempt);
		if (!node || mo_enum_parse((const char *const *)node->strays.steps,
					   node->strays.n_steps, name) < 0)
			sim_violation(s,
				      "step %s lives on %s, and the controller neither knows nor "
				      "tells it",
				      name, n->name);
	}
}

/* Every entry of a step that is over is gone, also of what the backup did not know. */
void past_check_end(struct sim *s)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		const struct job *j = job_find(core_state(s->ctl.core), st->job);

		if (st->spooled && (!j || !step_find(j, st->attempt, s->nodes[st->node].name)))
			sim_violation(s,
				      "the spool entry of j-%lld attempt %lld, unknown to the "
				      "controller, is left on %s",
				      (long long)st->job, (long long)st->attempt,
				      s->nodes[st->node].name);
	}
}

/* A person said that a node is off, of which the controller had unknown steps, or had heard nothing
 * since the backup: what lives there in truth is what that person answers for. */
void past_disown(struct sim *s, const char *node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		const struct job *j = job_find(core_state(s->ctl.shadow), st->job);

		if (st->node == sim_node(s, node) && !(j && step_find(j, st->attempt, node)))
			s->fault_counts[F_FENCED_ALIVE] += proc_disown(s, st);
	}
}

/* ---- people who look at what the controller tells ---- */

static bool lives(const struct sim *s, int node, int64_t job, int64_t attempt)
{
	const struct simstep *st = step_of(s, node, job, attempt);

	for (size_t i = 0; st && i < st->n_procs; i++)
		if (st->procs[i].alive || st->procs[i].child)
			return true;
	return st && st->stepd;
}

/* Missing to its agent: a person looks on the node, and says so when nothing is left there. */
static void resolve_missing(struct sim *s, double chance)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (size_t i = 0; i < st->n_jobs; i++)
		for (size_t k = 0; k < st->jobs[i]->n_steps; k++) {
			const struct step *step = &st->jobs[i]->steps[k];
			int n = sim_node(s, step->node);

			if (!step->missing || step->gone ||
			    lives(s, n, st->jobs[i]->id, step->attempt) || !sim_chance(s, chance))
				continue;
			s->fault_counts[F_RESOLVE_GONE]++;
			user_resolve(s, n, st->jobs[i]->id, step->attempt, "gone");
		}
}

static void resolve_strange(struct sim *s, double chance)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		const struct node *n =
			node_find(core_state(s->ctl.shadow), s->nodes[st->node].name);
		_cleanup_(mo_freep) char *name = st->spooled && n && n->strays.n_steps
							 ? step_name(st->job, st->attempt)
							 : NULL;

		if (!name ||
		    mo_enum_parse((const char *const *)n->strays.steps, n->strays.n_steps, name) <
			    0 ||
		    !sim_chance(s, chance))
			continue;
		st->resolved = true;
		s->fault_counts[F_RESOLVE_KILL]++;
		user_resolve(s, st->node, st->job, st->attempt, "kill");
	}
}

void past_resolve(struct sim *s, double chance)
{
	resolve_missing(s, chance);
	resolve_strange(s, chance);
}
