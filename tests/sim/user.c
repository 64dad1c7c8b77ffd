/* People: they submit, cancel, pause, resume, restart, drain and undrain, try again until they are
 * answered, and fence what is truly off, or so they think. */
#include "tests/sim/sim.h"

#include <string.h>

struct op *user_op(struct sim *s, int type)
{
	struct op *op = mo_alloc(sizeof(*op));

	*op = (struct op){ .type = type, .key = ++s->next_key, .value = MO_NONE, .node = -1 };
	*MO_GROW(s->ops, s->n_ops) = op;
	return op;
}

void user_send(struct sim *s, struct op *op)
{
	struct message *m;

	op->tries++;
	if (sim_fault(s, F_LOSE_REQUEST, 0.02)) {
		sim_at(s, s->now + 2 * S, K_RETRY, 0, 0, op, NULL);
		return;
	}
	m = mo_alloc(sizeof(*m));
	*m = (struct message){ .kind = M_USER, .request = ++s->ctl.request, .op = op };
	sim_at(s, s->now + sim_between(s, 50, 3 * MS), K_MESSAGE, 0, 0, m, NULL);
}

void user_retry(struct sim *s, struct op *op)
{
	if (!op->done)
		user_send(s, op);
}

void user_answer(struct sim *s, struct op *op, int status, int64_t job)
{
	struct truth *t = op->job > 0 ? sim_job(s, op->job) : NULL;
	const struct job *j;

	if (op->done)
		return;
	op->done = true;
	token_answer(s, op, status);
	sim_trace(s, "answer to event %d (job %lld, node %d): %d", op->type, (long long)op->job,
		  op->node, status);
	if (op->type == IN_SUBMIT && (status == 201 || status == 200)) {
		op->job = job;
		s->n_submits++;
		sim_job(s, job)->acked = true;
		return;
	}
	s->fault_counts[F_SAME_DIR] += op->type == IN_SUBMIT && status == 409;
	if (op->form)
		s->fault_counts[status == 200 ? F_FROM_TAKEN : F_FROM_REFUSED]++;
	if (status != 200 || !t)
		return;
	j = job_find(core_state(s->ctl.core), op->job);
	if (op->type == IN_CANCEL && !t->cancel_acked) {
		t->cancel_acked = true;
		t->attempt_at_cancel = j->attempt;
	}
	if (op->type == IN_PAUSE)
		t->pause_acked = true;
	if (op->type == IN_RESUME)
		t->pause_acked = false;
}

static int64_t some_job(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	return st->n_jobs ? st->jobs[sim_random(s) % st->n_jobs]->id : 1;
}

/* Does the job's ledger have an entry that this form of restart --from names? */
static bool named(const struct job *j, const struct checkpoint *c, int form)
{
	bool usable = c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED;

	switch (form) {
	case F_FROM_NEWEST: return usable && c->iteration == state_newest_checkpoint(j);
	case F_FROM_OLDER: return usable && c->iteration < state_newest_checkpoint(j);
	case F_FROM_SUPERSEDED: return c->state == CKPT_SUPERSEDED;
	case F_FROM_TORN: return c->state == CKPT_TORN;
	case F_FROM_SAVING: return c->state == CKPT_SAVING;
	case F_FROM_TAINTED: return checkpoint_tainted(c);
	default: return false;
	}
}

/* Any job's entry of the form, if there is one. */
static void name_entry(struct sim *s, struct op *op)
{
	const struct state *st = core_state(s->ctl.shadow);
	int64_t seen = 0;

	for (size_t i = 0; i < st->n_jobs; i++)
		for (size_t k = 0; k < st->jobs[i]->n_checkpoints; k++) {
			const struct checkpoint *c = &st->jobs[i]->checkpoints[k];

			if (!named(st->jobs[i], c, op->form) ||
			    (job_state_final(st->jobs[i]->state) && !sim_chance(s, 0.05)) ||
			    sim_between(s, 0, seen++) != 0)
				continue;
			op->job = st->jobs[i]->id;
			op->value = c->iteration;
		}
}

/* restart --from, in all its forms: whole, damaged, superseded, half written, between two, beyond
 * all. */
static void restart_from(struct sim *s, struct op *op)
{
	static const int when[_JOB_STATE_N] = {
		[JOB_QUEUED] = F_FROM_QUEUED,     [JOB_STARTING] = F_FROM_RUNNING,
		[JOB_RUNNING] = F_FROM_RUNNING,   [JOB_RECOVERING] = F_FROM_RECOVERING,
		[JOB_STOPPING] = F_FROM_STOPPING, [JOB_PAUSED] = F_FROM_PAUSED,
		[JOB_COMPLETED] = F_FROM_OVER,    [JOB_FAILED] = F_FROM_OVER,
		[JOB_CANCELLED] = F_FROM_OVER,
	};
	/* taken whenever there is one */
	static const int rare[] = { F_FROM_SUPERSEDED, F_FROM_TORN, F_FROM_TAINTED };
	const struct job *j;

	for (int tries = 0; op->value == MO_NONE && tries < 8; tries++) {
		op->form = tries < (int)ELEMENTSOF(rare)
				   ? rare[tries]
				   : (int)sim_between(s, F_FROM_ZERO, F_FROM_BEYOND);
		if (op->form == F_FROM_ZERO || op->form == F_FROM_BEYOND)
			op->value = op->form == F_FROM_ZERO ? 0 : 1000000;
		else if (op->form == F_FROM_UNKNOWN)
			op->value = sim_between(s, 1, 60);
		else
			name_entry(s, op);
	}
	j = job_find(core_state(s->ctl.shadow), op->job);
	s->fault_counts[op->form]++;
	if (j)
		s->fault_counts[when[j->state]]++;
	sim_trace(s, "%s: j-%lld from %lld", fault_names[op->form], (long long)op->job,
		  (long long)op->value);
}

static void verb(struct sim *s)
{
	static const int types[] = { IN_CANCEL, IN_CANCEL,  IN_PAUSE,   IN_RESUME,
				     IN_RESUME, IN_RESTART, IN_RESTART, IN_RESTART };
	struct op *op = user_op(s, types[sim_random(s) % ELEMENTSOF(types)]);

	op->job = some_job(s);
	op->flag = op->type == IN_CANCEL && sim_chance(s, 0.3);
	/* somebody who paused it comes back */
	if (op->type == IN_RESUME || (op->type == IN_RESTART && sim_chance(s, 0.1)))
		for (size_t i = 0; i < core_state(s->ctl.shadow)->n_jobs; i++)
			if (core_state(s->ctl.shadow)->jobs[i]->state == JOB_PAUSED)
				op->job = core_state(s->ctl.shadow)->jobs[i]->id;
	if (op->type == IN_RESTART && sim_chance(s, 0.8))
		restart_from(s, op);
	user_send(s, op);
}

static void node_verb(struct sim *s)
{
	static const char *const whens[] = { "idle", "checkpoint", "now" };
	struct op *op = user_op(s, sim_chance(s, 0.5) ? IN_DRAIN : IN_UNDRAIN);

	op->node = (int)(sim_random(s) % NODES);
	op->when = whens[sim_random(s) % 3];
	user_send(s, op);
}

void user_resolve(struct sim *s, int node, int64_t job, int64_t attempt, const char *how)
{
	struct op *op = user_op(s, IN_RESOLVE);

	op->node = node;
	op->job = job;
	op->value = attempt;
	op->when = how;
	user_send(s, op);
}

/* An attempt has all of its ranks here: it would go on to write beside the next one, which is what
 * a person who fences answers for. */
static bool trains_alone(const struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct simstep *st = s->steps[i];
		const struct attempt *a =
			st->node == node ? sim_past_attempt(s, st->job, st->attempt) : NULL;

		if (a && (int64_t)st->n_procs >= a->world && proc_any(st))
			return true;
	}
	return false;
}

static void fence(struct sim *s)
{
	for (int n = 0; n < NODES; n++) {
		const struct node *node = node_find(core_state(s->ctl.shadow), s->nodes[n].name);

		if (!node || node->state != NODE_DOWN ||
		    (s->nodes[n].power && (!sim_chance(s, 0.5) || trains_alone(s, n))))
			continue;
		s->fault_counts[F_FENCED_WRONGLY] += s->nodes[n].power;
		struct op *op = user_op(s, IN_FENCE);

		op->node = n;
		snprintf(op->boot, sizeof(op->boot), "%s", node->boot.id);
		user_send(s, op);
		if (!s->nodes[n].power && sim_chance(s, 0.5))
			sim_at(s, s->now + sim_between(s, 10 * S, 40 * S), K_BOOT, n, 0, NULL,
			       NULL);
		return;
	}
}

void user_act(struct sim *s)
{
	int64_t kind = sim_between(s, 0, 99);

	if (s->quiet)
		return;
	if (kind < 55 && core_state(s->ctl.shadow)->n_jobs < 60 && s->n_submits < s->plan.jobs)
		user_send(s, user_op(s, IN_SUBMIT));
	else if (kind < 80)
		verb(s);
	else if (kind < 90)
		node_verb(s);
	else if (kind < 93)
		past_resolve(s, 0.2);
	else if (kind < 96)
		token_help(s, 0.5);
	else
		fence(s);
	sim_at(s, s->now + sim_between(s, 100 * MS, 4 * S), K_USER, 0, 0, NULL, NULL);
}

/* "restart --from 11: no complete checkpoint at or before it is left": who asked for it takes
 * another one, as he is told. */
static void takes_another(struct sim *s, const struct job *j)
{
	struct op *op;

	if ((j->state != JOB_QUEUED && j->state != JOB_RECOVERING) || j->restart_from == MO_NONE ||
	    j->restart_from == 0 || j->run.n_places || !j->reason ||
	    !mo_starts_with(j->reason, "restart --from"))
		return;
	op = user_op(s, IN_RESTART);
	op->job = j->id;
	op->value = state_newest_checkpoint(j) != MO_NONE ? state_newest_checkpoint(j) : 0;
	user_send(s, op);
}

/* "checkpoint 20 is suspect": attempts died of it. Who reads that mends it, and names it; a tainted
 * one is of no use to anybody, and the data behind it are left out. */
static void names_suspect(struct sim *s, const struct job *j)
{
	const struct checkpoint *c = NULL;
	struct op *op;

	if ((j->state != JOB_QUEUED && j->state != JOB_RECOVERING) || j->run.n_places ||
	    !j->reason || !strstr(j->reason, ", and no other one is left") ||
	    sim_job(s, j->id)->unrepaired)
		return;
	fault_repair_job(s, sim_job(s, j->id));
	sim_job(s, j->id)->breaks_at = 0;
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (j->checkpoints[i].state == CKPT_SUSPECT)
			c = &j->checkpoints[i];
	op = user_op(s, IN_RESTART);
	op->job = j->id;
	op->value = strstr(j->reason, " is tainted, ") ? 0 : c ? c->iteration : MO_NONE;
	user_send(s, op);
}

/* "every checkpoint is damaged": left half-written by an attempt that this controller never stored
 * and that somebody had killed. Who reads that repairs them. */
static void repairs(struct sim *s, const struct job *j)
{
	if (j->state == JOB_QUEUED && !j->run.n_places && j->reason &&
	    mo_starts_with(j->reason, "every checkpoint in"))
		fault_repair_job(s, sim_job(s, j->id));
}

void user_settle(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	past_resolve(s, 1);
	token_help(s, 1);
	fault_bring_back(s);
	for (size_t i = 0; i < st->n_jobs; i++) {
		takes_another(s, st->jobs[i]);
		names_suspect(s, st->jobs[i]);
		repairs(s, st->jobs[i]);
	}
	for (int n = 0; n < NODES; n++) {
		struct op *op;
		const struct node *node = node_find(st, s->nodes[n].name);

		if (!node || !node->drain.asked)
			continue;
		op = user_op(s, IN_UNDRAIN);
		op->node = n;
		user_send(s, op);
	}
}
