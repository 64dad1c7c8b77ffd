/* People: they submit, cancel, pause, resume, restart, drain and undrain, try again until they are answered, and fence only what is truly off. */
#include "tests/sim/sim.h"

static struct op *op_new(struct sim *s, int type)
{
	struct op *op = mo_alloc(sizeof(*op));

	*op = (struct op){ .type = type, .key = ++s->next_key, .value = MO_NONE, .node = -1 };
	*MO_GROW(s->ops, s->n_ops) = op;
	return op;
}

static void send_op(struct sim *s, struct op *op)
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
		send_op(s, op);
}

void user_answer(struct sim *s, struct op *op, int status, int64_t job)
{
	struct truth *t = op->job > 0 && op->job < JOBS_MAX ? &s->jobs[op->job] : NULL;
	const struct job *j;

	if (op->done)
		return;
	op->done = true;
	sim_trace(s, "answer to event %d (job %lld, node %d): %d", op->type, (long long)op->job, op->node, status);
	if (op->type == EV_SUBMIT && (status == 201 || status == 200)) {
		op->job = job;
		s->n_submits++;
		s->jobs[job].acked = true;
		return;
	}
	if (status != 200 || !t)
		return;
	j = job_find(core_state(s->ctl.core), op->job);
	if (op->type == EV_CANCEL && !t->cancel_acked) {
		t->cancel_acked = true;
		t->attempt_at_cancel = j->attempt;
	}
	if (op->type == EV_PAUSE)
		t->pause_acked = true;
	if (op->type == EV_RESUME)
		t->pause_acked = false;
}

static int64_t some_job(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	return st->n_jobs ? st->jobs[sim_random(s) % st->n_jobs].id : 1;
}

static void verb(struct sim *s)
{
	static const int types[] = { EV_CANCEL, EV_CANCEL, EV_PAUSE, EV_RESUME, EV_RESUME, EV_RESTART };
	struct op *op = op_new(s, types[sim_random(s) % ELEMENTSOF(types)]);

	op->job = some_job(s);
	op->flag = op->type == EV_CANCEL && sim_chance(s, 0.3);
	if (op->type == EV_RESUME)   /* somebody who paused it comes back */
		for (size_t i = 0; i < core_state(s->ctl.shadow)->n_jobs; i++)
			if (core_state(s->ctl.shadow)->jobs[i].state == JOB_PAUSED)
				op->job = core_state(s->ctl.shadow)->jobs[i].id;
	if (op->type == EV_RESTART && sim_chance(s, 0.4))
		op->value = sim_between(s, 0, 40);
	send_op(s, op);
}

static void node_verb(struct sim *s)
{
	static const char *const whens[] = { "idle", "checkpoint", "now" };
	struct op *op = op_new(s, sim_chance(s, 0.5) ? EV_DRAIN : EV_UNDRAIN);

	op->node = (int)(sim_random(s) % NODES);
	op->when = whens[sim_random(s) % 3];
	send_op(s, op);
}

static void fence(struct sim *s)
{
	for (int n = 0; n < NODES; n++) {
		const struct node *node = node_find(core_state(s->ctl.shadow), s->nodes[n].name);

		if (s->nodes[n].power || !node || node->state != NODE_DOWN)
			continue;
		struct op *op = op_new(s, EV_FENCE);

		op->node = n;
		send_op(s, op);
		if (sim_chance(s, 0.5))
			sim_at(s, s->now + sim_between(s, 10 * S, 40 * S), K_BOOT, n, 0, NULL, NULL);
		return;
	}
}

void user_act(struct sim *s)
{
	int64_t kind = sim_between(s, 0, 99);

	if (s->quiet)
		return;
	if (kind < 55 && core_state(s->ctl.shadow)->n_jobs < 60)
		send_op(s, op_new(s, EV_SUBMIT));
	else if (kind < 80)
		verb(s);
	else if (kind < 90)
		node_verb(s);
	else
		fence(s);
	sim_at(s, s->now + sim_between(s, 100 * MS, 4 * S), K_USER, 0, 0, NULL, NULL);
}

void user_settle(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (int n = 0; n < NODES; n++) {
		struct op *op;
		const struct node *node = node_find(st, s->nodes[n].name);

		if (!node || !node->drain)
			continue;
		op = op_new(s, EV_UNDRAIN);
		op->node = n;
		send_op(s, op);
	}
}
