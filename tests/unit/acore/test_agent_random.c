/* The agent's core in a small world with a disk, stepds, a controller and a network, where anything
 * may die between any two effects. Seeded; the last seed is printed. After the faults end,
 * everything ordered away must be gone and forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/agent/agent_step.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

#define SEEDS 400
#define TURNS 600
#define JOBS 3
#define ATTEMPTS 40
#define RANKS 2

static uint32_t last_seed;

/* One attempt: what is on disk, what lives, what the controller knows. */
struct attempt {
	bool spooled, lock_held, processes;
	/* the agent that runs now believes in a stepd there */
	bool watched;
	int64_t journal[64];
	size_t n_journal; /* kinds, in order; number = index + 1 */
	int64_t ranks_started, ranks_exited;
	bool gone_written, killed;
	int64_t through;
	bool reported_gone, listed; /* the controller's */
};
struct world {
	uint32_t random;
	struct attempt a[JOBS][ATTEMPTS];
	/* controller: attempt ordered, and whether it is to die */
	int64_t current[JOBS];
	bool killing[JOBS];
	int64_t epoch, fence_epoch, fence[JOBS];
	int64_t wanted_epoch, wanted[JOBS]; /* in the agent's memory: what the fence is to say */
	struct agent_core *core;
	int64_t now, instances;
	struct agent_event queue[64];
	int64_t queued_job[64];
	size_t n_queue;
	struct agent_sync sync, urgent;
	bool sync_sent, urgent_sent, hello_sent, reply_ready;
	struct sync_reply reply;
	bool faults, crashed;
	size_t starts, sweeps, crashes;
};

static uint32_t rnd(struct world *w, uint32_t n)
{
	w->random = w->random * 1664525u + 1013904223u;
	return (w->random >> 8) % n;
}

static struct attempt *at(struct world *w, int64_t job, int64_t attempt)
{
	assert_in_range(job, 1, JOBS);
	assert_in_range(attempt, 1, ATTEMPTS - 1);
	return &w->a[job - 1][attempt];
}

static void say(struct world *w, struct agent_event e)
{
	assert_true(w->n_queue < 64);
	w->queue[w->n_queue++] = e;
}

static void say_step(struct world *w, int type, int64_t job, int64_t attempt)
{
	say(w, (struct agent_event){ .type = type, .job = job, .attempt = attempt, .ok = true });
}

static void to_note(const struct attempt *a, size_t i, struct note *n)
{
	int64_t rank = 0;

	mo_desc_init(&note_desc, n);
	n->n = (int64_t)i + 1;
	n->kind = (int)a->journal[i];
	for (size_t k = 0; k < i; k++)
		rank += a->journal[k] == a->journal[i];
	if (n->kind == NOTE_STARTED || n->kind == NOTE_EXIT)
		n->rank = rank;
}

static void write_journal(struct attempt *a, int64_t kind)
{
	assert_false(a->gone_written); /* nothing follows gone, and it comes once */
	assert_true(a->n_journal < 64);
	a->journal[a->n_journal++] = kind;
	a->gone_written = kind == NOTE_GONE;
}

static void carry_out(struct world *w, const struct agent_effect *x);

static void feed(struct world *w, const struct agent_event *e)
{
	struct agent_out out = { 0 };

	agent_core_decide(w->core, e, w->now, &out);
	for (size_t i = 0; i < out.n_effects && !w->crashed; i++) {
		if (w->faults && rnd(w, 60) == 0) {
			w->crashed = true; /* between two effects */
			break;
		}
		carry_out(w, &out.effects[i]);
	}
	agent_out_done(&out);
}

static void on_start(struct world *w, int64_t job, int64_t attempt)
{
	struct attempt *a = at(w, job, attempt);

	assert_true(a->spooled);
	assert_true(w->fence[job - 1] >= attempt);
	assert_false(a->reported_gone);
	assert_int_equal(a->n_journal, 0);
	for (int64_t k = 1; k < ATTEMPTS; k++)
		assert_false(k != attempt && w->a[job - 1][k].processes);
	w->starts++;
	a->watched = true;
	/* the second one finds the lock taken */
	if (a->lock_held)
		return;
	assert_false(a->processes);
	a->lock_held = a->processes = true;
}

/* What could not be saved is in memory, and saved with the next one. */
static void save_fence(struct world *w, const struct agent_effect *x)
{
	bool fails = w->faults && rnd(w, 10) == 0;

	w->wanted_epoch = MO_MAX(w->wanted_epoch, x->epoch);
	if (x->job)
		w->wanted[x->job - 1] = MO_MAX(w->wanted[x->job - 1], x->attempt);
	if (!fails) {
		w->fence_epoch = w->wanted_epoch;
		memcpy(w->fence, w->wanted, sizeof(w->fence));
	}
	say(w, (struct agent_event){
		       .type = AE_FENCE_DONE, .job = x->job, .attempt = x->attempt, .ok = !fails });
}

static void carry_out(struct world *w, const struct agent_effect *x)
{
	struct attempt *a = x->job ? at(w, x->job, MO_MAX(x->attempt, 1)) : NULL;

	switch (x->type) {
	case AX_FENCE: save_fence(w, x); break;
	case AX_SPOOL:
		a->spooled = !w->faults || rnd(w, 10) != 0;
		say(w, (struct agent_event){ .type = AE_SPOOL_DONE,
					     .job = x->job,
					     .attempt = x->attempt,
					     .ok = a->spooled });
		break;
	case AX_RELEASE:
		feed(w, &(struct agent_event){ .type = AE_RELEASED,
					       .job = x->job,
					       .attempt = x->attempt,
					       .ok = !w->faults || rnd(w, 10) != 0,
					       .text = "held" });
		break;
	case AX_START: on_start(w, x->job, x->attempt); break;
	case AX_STOP:
	case AX_KILL: a->killed |= a->lock_held; break;
	case AX_SWEEP:
		assert_false(a->lock_held);
		w->sweeps++;
		a->processes = false;
		say_step(w, AE_SWEPT, x->job, x->attempt);
		break;
	case AX_WRITE_NOTE:
		assert_false(a->lock_held || a->processes);
		if (x->note->n == (int64_t)a->n_journal + 1)
			write_journal(a, x->note->kind);
		break;
	case AX_FORGET:
		assert_false(a->processes || a->lock_held);
		assert_true(a->gone_written ? a->through >= (int64_t)a->n_journal
					    : a->n_journal == 0);
		a->spooled = false;
		break;
	case AX_HELLO: w->hello_sent = true; break;
	case AX_SYNC:
		assert_false(w->sync_sent);
		agent_core_sync(w->core, &w->sync);
		w->sync_sent = true;
		break;
	case AX_SEND_URGENT:
		w->urgent_sent = agent_core_urgent(w->core, &w->urgent);
		if (!w->urgent_sent)
			mo_desc_done(&agent_sync_desc, &w->urgent);
		break;
	}
}

/* ---- controller ---- */

static void take(struct world *w, const struct agent_sync *s, bool whole)
{
	for (int64_t j = 0; whole && j < JOBS; j++)
		for (int64_t k = 1; k < ATTEMPTS; k++)
			w->a[j][k].listed = false;
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct step_report *r = &s->steps[i];
		struct attempt *a = at(w, r->job, r->attempt);
		a->listed = true;
		for (size_t k = 0; k < r->n_notes; k++) {
			if (r->notes[k].n <= a->through)
				continue;
			assert_int_equal(r->notes[k].n, a->through + 1);
			a->through++;
			if (r->notes[k].kind != NOTE_GONE)
				continue;
			assert_false(a->processes || a->lock_held); /* proof is proof */
			a->reported_gone = true;
		}
	}
}

static struct command *add_order(struct world *w, int kind, int64_t job, int64_t attempt)
{
	struct command *c = MO_ADD(&w->reply, commands, &command_desc);

	c->kind = kind;
	c->job = job;
	c->attempt = attempt;
	c->epoch = w->epoch;
	c->node = mo_strdup("n1");
	if (kind == CMD_LAUNCH) {
		c->launch = mo_desc_new(&launch_desc);
		c->launch->job = job;
		c->launch->attempt = attempt;
		c->launch->first_rank = 0;
		c->launch->n_local = RANKS;
		mo_ints_add(&c->launch->gpus, &c->launch->n_gpus, 0);
	}
	return c;
}

static void make_reply(struct world *w)
{
	mo_desc_done(&sync_reply_desc, &w->reply);
	w->reply.epoch = w->epoch;
	for (int64_t j = 0; j < JOBS; j++) {
		int64_t now = w->current[j];
		struct attempt *a = &w->a[j][now];
		if (a->reported_gone && now + 1 < ATTEMPTS && w->faults) {
			w->current[j] = ++now;
			w->killing[j] = false;
			a = &w->a[j][now];
		}
		if (rnd(w, 20) == 0 || !w->faults)
			w->killing[j] = true;
		if (!a->reported_gone && w->killing[j])
			add_order(w, rnd(w, 2) ? CMD_KILL : CMD_STOP, j + 1, now);
		else if (!a->reported_gone)
			add_order(w, CMD_LAUNCH, j + 1, now);
		for (int64_t k = 1; k < ATTEMPTS; k++) {
			struct attempt *old = &w->a[j][k];
			if (old->listed) {
				struct step_ack *ack = MO_ADD(&w->reply, acks, &step_ack_desc);
				*ack = (struct step_ack){ .job = j + 1,
							  .attempt = k,
							  .through = old->through,
							  .known = true };
			}
			if (old->listed && old->reported_gone)
				add_order(w, CMD_FORGET, j + 1, k);
		}
	}
	if (w->faults && rnd(w, 12) == 0 && w->current[0] > 1)
		/* a stray order of an old attempt */
		add_order(w, CMD_LAUNCH, 1, 1 + rnd(w, (uint32_t)w->current[0] - 1));
}

static void answer(struct world *w, bool sync)
{
	struct agent_sync *s = sync ? &w->sync : &w->urgent;
	bool lost = w->faults && rnd(w, 6) == 0, heard = !lost || rnd(w, 2);

	if (heard)
		take(w, s, sync);
	mo_desc_done(&agent_sync_desc, s);
	*(sync ? &w->sync_sent : &w->urgent_sent) = false;
	if (lost) {
		say(w, (struct agent_event){ .type = AE_NO_ANSWER, .ok = sync });
		return;
	}
	make_reply(w);
	if (!sync)
		mo_vec_clear(&command_desc, (void **)&w->reply.commands, &w->reply.n_commands);
	struct agent_event e = { .type = AE_REPLY, .ok = sync, .reply = &w->reply };
	feed(w, &e);
	if (!w->crashed && w->faults && rnd(w, 8) == 0) {
		e.ok = false; /* the same once more */
		feed(w, &e);
	}
}

static void welcome(struct world *w)
{
	struct agent_welcome welcome = { .epoch = w->epoch, .beat_ms = 1000 };
	struct agent_event e = { .type = AE_WELCOME, .welcome = &welcome };

	w->hello_sent = false;
	if (w->faults && rnd(w, 4) == 0) {
		say(w, (struct agent_event){ .type = AE_NO_ANSWER, .ok = true });
		return;
	}
	w->epoch += w->faults && rnd(w, 5) == 0; /* it was restarted */
	welcome.epoch = w->epoch;
	feed(w, &e);
}

/* ---- stepds ---- */

static void tell_note(struct world *w, int64_t job, int64_t attempt, size_t i)
{
	struct note n;
	struct agent_event e = { .type = AE_NOTE, .job = job, .attempt = attempt, .note = &n };

	to_note(at(w, job, attempt), i, &n);
	feed(w, &e);
	mo_desc_done(&note_desc, &n);
}

static void live(struct world *w, int64_t job, int64_t attempt)
{
	struct attempt *a = at(w, job, attempt);

	if (!a->lock_held)
		return;
	/* killed; its processes live on until the sweep */
	if (w->faults && rnd(w, 30) == 0) {
		a->lock_held = false;
		return;
	}
	if (a->ranks_exited == RANKS || (a->killed && a->ranks_exited == a->ranks_started)) {
		a->processes = false;
		write_journal(a, NOTE_GONE);
		a->lock_held = false;
	} else if (a->killed || (a->ranks_started == RANKS && rnd(w, 20) == 0)) {
		write_journal(a, NOTE_EXIT);
		a->ranks_exited++;
	} else if (a->ranks_started < RANKS) {
		write_journal(a, NOTE_STARTED);
		a->ranks_started++;
	} else if (a->n_journal < 40) {
		write_journal(a, a->n_journal == RANKS ? NOTE_RUNNING : NOTE_SAMPLE);
	}
}

/* What the agent sees of a step: its notes so far, and whether the stepd is there. */
static void look(struct world *w, int64_t job, int64_t attempt, size_t *read)
{
	struct attempt *a = at(w, job, attempt);

	while (*read < a->n_journal && !w->crashed)
		tell_note(w, job, attempt, (*read)++);
	if (w->crashed || !a->watched)
		return;
	a->watched = a->lock_held; /* its death is reported once */
	say_step(w, a->lock_held ? AE_STEPD_UP : AE_STEPD_LOST, job, attempt);
}

static void restart_agent(struct world *w, size_t read[JOBS][ATTEMPTS])
{
	char instance[32];
	struct agent_event e = { .type = AE_FENCE, .epoch = w->fence_epoch };

	mo_desc_done(&agent_sync_desc, &w->sync);
	mo_desc_done(&agent_sync_desc, &w->urgent);
	w->sync_sent = w->urgent_sent = w->hello_sent = w->crashed = false;
	w->n_queue = 0;
	w->wanted_epoch = w->fence_epoch;
	memcpy(w->wanted, w->fence, sizeof(w->wanted));
	memset(read, 0, sizeof(size_t) * JOBS * ATTEMPTS);
	w->core = agent_core_free(w->core);
	snprintf(instance, sizeof(instance), "i%lld", (long long)w->instances++);
	w->core = agent_core_new("n1", "boot", instance);
	feed(w, &e);
	for (int64_t j = 0; j < JOBS; j++) {
		e = (struct agent_event){ .type = AE_FENCE,
					  .epoch = w->fence_epoch,
					  .job = j + 1,
					  .attempt = w->fence[j] };
		if (w->fence[j])
			feed(w, &e);
	}
	for (int64_t j = 0; j < JOBS; j++)
		for (int64_t k = 1; k < ATTEMPTS; k++) {
			struct attempt *a = &w->a[j][k];
			struct launch l;
			a->watched = a->spooled && a->lock_held;
			if (!a->spooled)
				continue;
			mo_desc_init(&launch_desc, &l);
			l.n_local = RANKS;
			l.first_rank = 0;
			mo_ints_add(&l.gpus, &l.n_gpus, 0);
			e = (struct agent_event){ .type = AE_SPOOLED_STEP,
						  .job = j + 1,
						  .attempt = k,
						  .lock_held = a->lock_held,
						  .boot_same = true,
						  .launch = &l };
			feed(w, &e);
			mo_desc_done(&launch_desc, &l);
			while (read[j][k] < a->n_journal)
				tell_note(w, j + 1, k, read[j][k]++);
		}
	e = (struct agent_event){ .type = AE_STARTED };
	feed(w, &e);
}

static void turn(struct world *w, size_t read[JOBS][ATTEMPTS])
{
	w->now += 1 + rnd(w, 300000);
	if (w->n_queue && rnd(w, 2)) {
		struct agent_event e = w->queue[0];
		memmove(w->queue, w->queue + 1, --w->n_queue * sizeof(w->queue[0]));
		feed(w, &e);
	} else if (w->sync_sent && rnd(w, 2)) {
		answer(w, true);
	} else if (w->urgent_sent && rnd(w, 2)) {
		answer(w, false);
	} else if (w->hello_sent && rnd(w, 2)) {
		welcome(w);
	} else if (rnd(w, 2)) {
		int64_t job = 1 + rnd(w, JOBS),
			attempt = MO_MAX(w->current[job - 1] - (int64_t)rnd(w, 2), 1);
		live(w, job, attempt);
		if (w->n_queue < 32)
			look(w, job, attempt, &read[job - 1][attempt]);
	} else if (w->now >= agent_core_deadline(w->core)) {
		struct agent_event e = { .type = AE_TICK };
		feed(w, &e);
	}
	if (w->crashed || (w->faults && rnd(w, 80) == 0)) {
		w->crashes++;
		do {
			w->crashed = false;
			restart_agent(w, read);
		} while (w->crashed); /* it may die while it starts, too */
	}
}

static bool all_settled(const struct world *w)
{
	for (int64_t j = 0; j < JOBS; j++)
		for (int64_t k = 1; k < ATTEMPTS; k++) {
			const struct attempt *a = &w->a[j][k];
			if (a->spooled || a->processes || a->lock_held ||
			    (k == w->current[j] && !a->reported_gone))
				return false;
		}
	return true;
}

static void run(uint32_t seed, size_t totals[3])
{
	struct world *w = mo_alloc(sizeof(*w));
	size_t(*read)[ATTEMPTS] = mo_alloc_array(JOBS, sizeof(*read));
	int turns = 0;

	w->random = seed * 2654435761u + 1;
	w->epoch = 1;
	w->faults = true;
	for (int64_t j = 0; j < JOBS; j++)
		w->current[j] = 1;
	mo_desc_init(&agent_sync_desc, &w->sync);
	mo_desc_init(&agent_sync_desc, &w->urgent);
	mo_desc_init(&sync_reply_desc, &w->reply);
	last_seed = seed;
	restart_agent(w, read);
	for (int i = 0; i < TURNS; i++)
		turn(w, read);
	w->faults = false;
	for (; turns < 20000 && !all_settled(w); turns++)
		turn(w, read);
	assert_true(all_settled(w));
	totals[0] += w->starts;
	totals[1] += w->sweeps;
	totals[2] += w->crashes;
	mo_desc_done(&agent_sync_desc, &w->sync);
	mo_desc_done(&agent_sync_desc, &w->urgent);
	mo_desc_done(&sync_reply_desc, &w->reply);
	agent_core_free(w->core);
	free(read);
	free(w);
}

static void test_random_worlds(void **state)
{
	size_t totals[3] = { 0 };

	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		run(seed, totals);
	/* the faults really happened */
	for (size_t i = 0; i < 3; i++)
		assert_true(totals[i] > SEEDS);
}

static int tell_seed(void **state)
{
	print_message("last seed: %u\n", last_seed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test_teardown(test_random_worlds,
								      tell_seed) };
	return cmocka_run_group_tests_name("acore/steps_random", tests, NULL, NULL);
}
