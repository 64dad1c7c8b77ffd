/* Step supervisor decisions in virtual time. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/step.h"
#include "lib/base/buf.h"

struct bed { struct step_core *core; int64_t now; struct step_out out; struct launch launch; };

static int setup_n(void **state, int64_t first, int64_t n, int64_t world, int metrics_rank, bool ports) {
	struct bed *b = mo_alloc(sizeof(*b));

	mo_desc_init(&launch_desc, &b->launch);
	b->launch.job = 7;
	b->launch.attempt = 1;
	b->launch.first_rank = first;
	b->launch.n_local = n;
	b->launch.world = world;
	b->launch.metrics_rank = metrics_rank;
	b->launch.hold_ports = ports;
	b->core = step_new(&b->launch);
	b->now = 1000000;
	*state = b;
	return 0;
}

static int setup(void **state) { return setup_n(state, 0, 2, 2, 0, true); }
static int setup_last(void **state) { return setup_n(state, 2, 2, 4, 1, false); }
static int setup_any(void **state) { return setup_n(state, 0, 2, 4, 2, false); }

static int teardown(void **state) {
	struct bed *b = *state;

	step_out_done(&b->out);
	step_free(b->core);
	mo_desc_done(&launch_desc, &b->launch);
	free(b);
	return 0;
}

/* Effects since the last call as words: "hold fork note:started@0 kill done ...". */
static const char *said(struct bed *b) {
	static const char *const names[] = { "hold", "fork", "release", "signal", "kill", "note", "done" };
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct step_effect *x = &b->out.effects[i];
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", names[x->type]);
		if (x->type == SX_SIGNAL_RANKS)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ":%lld", (long long)x->signal);
		if (x->type != SX_NOTE)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, ":%s", note_kind_names[x->note.kind]);
		if (x->note.rank != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "@%lld", (long long)x->note.rank);
		if (x->note.kind == NOTE_SAMPLE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "=%lld", (long long)x->note.sample->iteration);
		else if (x->note.iteration != MO_NONE)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "=%lld", (long long)x->note.iteration);
		if (x->note.cause)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "/%s", x->note.cause);
	}
	step_out_done(&b->out);
	return text;
}

static struct step_event event(int type, int64_t rank) {
	struct step_event e = { .type = type, .ok = true };

	mo_desc_init(&note_desc, &e.note);
	e.note.rank = rank;
	return e;
}

static void give(struct bed *b, struct step_event *e) {
	int64_t before = 0;

	step_event(b->core, e, b->now, &b->out);
	mo_desc_done(&note_desc, &e->note);
	for (size_t i = 0; i < b->out.n_effects; i++)
		if (b->out.effects[i].type == SX_NOTE) {
			assert_true(before == 0 || b->out.effects[i].note.n == before + 1);
			before = b->out.effects[i].note.n;
		}
}

static void simple(struct bed *b, int type, int64_t rank) {
	struct step_event e = event(type, rank);
	give(b, &e);
}

static void started(struct bed *b, int64_t rank) {
	struct step_event e = event(SE_STARTED, rank);
	e.note.pid = 100 + rank;
	give(b, &e);
}

static void exited(struct bed *b, int64_t rank, int64_t code, int64_t signo) {
	struct step_event e = event(SE_EXIT, rank);
	e.note.code = code;
	e.note.signal = signo;
	give(b, &e);
}

static void stop(struct bed *b, int64_t signo, int64_t grace) {
	struct step_event e = event(SE_STOP, MO_NONE);
	e.signal = signo;
	e.grace_us = grace;
	give(b, &e);
}

static void stop_outside(struct bed *b, int64_t signo, int64_t grace)
{
	struct step_event e = event(SE_STOP, MO_NONE);

	e.outside = true;
	e.signal = signo;
	e.grace_us = grace;
	give(b, &e);
}

static void sample(struct bed *b, int64_t rank, int64_t iteration, double loss, double grad_norm) {
	struct step_event e = event(SE_SAMPLE, rank);
	e.note.sample = mo_desc_new(&sample_desc);
	e.note.sample->iteration = iteration;
	e.note.sample->loss = loss;
	e.note.sample->grad_norm = grad_norm;
	give(b, &e);
}

static void fact(struct bed *b, int type, int64_t rank, int64_t iteration, const char *path) {
	struct step_event e = event(type, rank);
	e.note.iteration = iteration;
	e.note.path = mo_strdup(path);
	give(b, &e);
}

static void phase(struct bed *b, int64_t rank, int p) {
	struct step_event e = event(SE_PHASE, rank);
	e.note.phase = p;
	give(b, &e);
}

static void run(struct bed *b) {
	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	for (int64_t r = 0; r < b->launch.n_local; r++)
		started(b, b->launch.first_rank + r);
	said(b);
}

static void test_good_life(void **state) {
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	assert_string_equal(said(b), "hold");
	simple(b, SE_LAUNCH, MO_NONE);
	assert_string_equal(said(b), "");
	simple(b, SE_PORTS, MO_NONE);
	assert_string_equal(said(b), "fork");
	started(b, 1);
	started(b, 1);
	assert_string_equal(said(b), "note:started@1");
	started(b, 0);
	assert_string_equal(said(b), "note:started@0 release note:running");
	assert_true(step_deadline(b->core) == INT64_MAX);
	exited(b, 1, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@1/exited");
	exited(b, 1, 0, MO_NONE);
	assert_string_equal(said(b), "");
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/exited kill");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
	simple(b, SE_EMPTY, MO_NONE);
	simple(b, SE_KILL, MO_NONE);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "");
	assert_true(step_deadline(b->core) == INT64_MAX);
}

static void test_busy_port(void **state) {
	struct bed *b = *state;
	struct step_event e = event(SE_PORTS, MO_NONE);

	simple(b, SE_LAUNCH, MO_NONE);
	said(b);
	e.ok = false;
	give(b, &e);
	assert_string_equal(said(b), "note:refused/port-busy note:gone done");
}

static void test_exec_fails(void **state) {
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	said(b);
	simple(b, SE_START_FAILED, 0);
	assert_string_equal(said(b), "note:refused@0/exec release kill");
	simple(b, SE_START_FAILED, 0);
	assert_string_equal(said(b), "");
	started(b, 1);
	assert_string_equal(said(b), "note:started@1 kill");
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_all_fail_to_start(void **state) {
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	simple(b, SE_START_FAILED, 0);
	simple(b, SE_START_FAILED, 1);
	said(b);
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_bind_fails(void **state) {
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	simple(b, SE_PORTS, MO_NONE);
	started(b, 0);
	said(b);
	simple(b, SE_BIND_FAILED, 1);
	assert_string_equal(said(b), "note:refused@1/bind release kill");
	exited(b, 0, MO_NONE, SIGKILL);
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@0/killed note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_stop(void **state) {
	struct bed *b = *state;

	run(b);
	stop(b, SIGUSR1, 5000000);
	assert_string_equal(said(b), "signal:10");
	b->now += 1000000;
	stop(b, SIGUSR1, 5000000);
	assert_string_equal(said(b), "");
	assert_true(step_deadline(b->core) == 6000000);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/stopped");
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	b->now = 6000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "kill");
	exited(b, 1, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "note:exit@1/killed");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

/* Nobody ordered it: told at once, before any rank ends; an order that comes later changes nothing, nor does a signal after an order. */
static void test_stopped_by_its_machine(void **state)
{
	struct bed *b = *state;

	run(b);
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "note:stopping signal:15");
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
	stop(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:exit@0/stopped");
}

static void test_ordered_first(void **state)
{
	struct bed *b = *state;

	run(b);
	stop(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "signal:15");
	stop_outside(b, SIGTERM, 5000000);
	assert_string_equal(said(b), "");
}

static void test_shorter_grace_wins(void **state) {
	struct bed *b = *state;

	run(b);
	stop(b, SIGTERM, INT64_MAX);
	stop(b, SIGTERM, 2000000);
	assert_true(step_deadline(b->core) == 3000000);
}

static void test_stop_before_fork(void **state) {
	struct bed *b = *state;

	simple(b, SE_LAUNCH, MO_NONE);
	said(b);
	stop(b, SIGTERM, 1);
	assert_string_equal(said(b), "note:gone done");
}

static void test_kill_repeats_until_empty(void **state) {
	struct bed *b = *state;

	run(b);
	simple(b, SE_KILL, MO_NONE);
	assert_string_equal(said(b), "kill");
	b->now = step_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "kill");
	assert_true(step_deadline(b->core) == b->now + 2000000);
	struct step_event e = event(SE_STUCK, 1);
	e.note.pid = 55;
	give(b, &e);
	assert_string_equal(said(b), "note:unkillable@1");
	e = event(SE_STUCK, 1);
	e.note.pid = 55;
	give(b, &e);
	assert_string_equal(said(b), "");
	exited(b, 0, MO_NONE, SIGKILL);
	exited(b, 1, MO_NONE, SIGSEGV);
	assert_string_equal(said(b), "note:exit@0/killed note:exit@1/signalled");
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:gone done");
}

static void test_cause_of_the_shell_is_kept(void **state) {
	struct bed *b = *state;
	struct step_event e = event(SE_EXIT, 0);

	run(b);
	e.note.signal = SIGKILL;
	e.note.cause = mo_strdup("oom");
	give(b, &e);
	assert_string_equal(said(b), "note:exit@0/oom");
}

static void test_lost_status_is_told(void **state) {
	struct bed *b = *state;

	run(b);
	exited(b, 0, 0, MO_NONE);
	said(b);
	simple(b, SE_EMPTY, MO_NONE);
	assert_string_equal(said(b), "note:exit@1/unknown note:gone done");
}

static void test_two_pieces_one_sample(void **state) {
	struct bed *b = *state;

	run(b);
	sample(b, 0, 5, 2.5, MO_NONE_F);
	assert_string_equal(said(b), "");
	sample(b, 0, 5, 9.0, 0.25);
	b->now = step_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_int_equal(b->out.n_effects, 1);
	assert_true(b->out.effects[0].note.sample->loss == 2.5);
	assert_true(b->out.effects[0].note.sample->grad_norm == 0.25);
	assert_string_equal(said(b), "note:sample@0=5");
	sample(b, 0, 5, 2.5, MO_NONE_F);               /* a late third piece */
	b->now += 1000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	assert_true(step_deadline(b->core) == INT64_MAX);
	sample(b, 0, 6, 2.4, MO_NONE_F);
	sample(b, 0, 7, 2.3, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@0=6");
	fact(b, SE_CHECKPOINT, 0, 7, "/c/7");
	assert_string_equal(said(b), "note:sample@0=7 note:checkpoint@0=7");
}

/* 20,000 at once are all told; of a flood behind them one for each ms, and always the last one. */
static void test_flood_of_samples(void **state) {
	struct bed *b = *state;
	size_t told = 0;
	int64_t left_out = 0;

	run(b);
	for (int64_t i = 1; i <= 120001; i++) {
		b->now += i > 20001 ? 100 : 0;
		sample(b, 0, i, 2.5, MO_NONE_F);
		told += b->out.n_effects;
		for (size_t k = 0; k < b->out.n_effects; k++)
			left_out += MO_MAX(b->out.effects[k].note.left_out, 0);
		step_out_done(&b->out);
		if (i == 20001)
			assert_int_equal(told, 20000);
	}
	if (told < 29990 || told > 30010)
		fail_msg("%zu samples told", told);
	assert_int_equal(step_left_out(b->core), 120000 - (int64_t)told);
	b->now = step_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	left_out += MO_MAX(b->out.effects[0].note.left_out, 0);
	assert_int_equal(left_out, step_left_out(b->core));   /* the notes say all of them, each once */
	assert_string_equal(said(b), "note:sample@0=120001");
	b->now += 10000000;                            /* quiet again: all are told */
	for (int64_t i = 0; i < 4000; i++) {
		sample(b, 0, 200000 + i, 2.5, MO_NONE_F);
		assert_int_equal(b->out.n_effects, i > 0);
		step_out_done(&b->out);
	}
}

static void test_sample_before_exit(void **state) {
	struct bed *b = *state;

	run(b);
	sample(b, 0, 1, 1.0, 1.0);
	exited(b, 0, 0, MO_NONE);
	assert_string_equal(said(b), "note:sample@0=1 note:exit@0=1/exited");
}

static void test_metrics_rank(void **state) {
	struct bed *b = *state;
	struct rank_progress p;

	run(b);
	sample(b, 1, 3, 2.0, MO_NONE_F);               /* not the first rank: progress only */
	b->now += 1000000;
	simple(b, SE_TICK, MO_NONE);
	assert_string_equal(said(b), "");
	step_progress(b->core, 1, &p);
	assert_int_equal(p.rank, 1);
	assert_int_equal(p.iteration, 3);
	step_progress(b->core, 0, &p);
	assert_true(p.iteration == MO_NONE);
}

static void test_metrics_last(void **state) {
	struct bed *b = *state;

	run(b);
	sample(b, 2, 3, 2.0, MO_NONE_F);
	sample(b, 3, 3, 2.0, MO_NONE_F);
	sample(b, 3, 4, 2.0, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@3=3");
	sample(b, 9, 9, 2.0, MO_NONE_F);               /* not of this node */
	assert_string_equal(said(b), "");
}

static void test_metrics_any(void **state) {
	struct bed *b = *state;

	run(b);
	sample(b, 1, 3, 1.0, MO_NONE_F);
	sample(b, 0, 3, 2.0, 7.0);                     /* another rank's view of the same iteration */
	sample(b, 0, 4, 2.0, MO_NONE_F);
	assert_int_equal(b->out.n_effects, 1);
	assert_true(b->out.effects[0].note.sample->loss == 1.0);
	assert_true(b->out.effects[0].note.sample->grad_norm == MO_NONE_F);
	assert_string_equal(said(b), "note:sample@1=3");
	sample(b, 1, 3, 2.0, MO_NONE_F);
	sample(b, 1, 5, 2.0, MO_NONE_F);
	assert_string_equal(said(b), "note:sample@0=4");
}

static void test_sample_without_iteration(void **state) {
	struct bed *b = *state;

	run(b);
	sample(b, 0, MO_NONE, 1.0, MO_NONE_F);         /* of nothing known */
	assert_true(step_deadline(b->core) == INT64_MAX);
	sample(b, 0, 4, MO_NONE_F, 3.0);
	sample(b, 0, MO_NONE, 1.5, MO_NONE_F);         /* of iteration 4 */
	b->now = step_deadline(b->core);
	simple(b, SE_TICK, MO_NONE);
	assert_true(b->out.effects[0].note.sample->loss == 1.5);
	assert_string_equal(said(b), "note:sample@0=4");
}

static void test_phases_and_saves(void **state) {
	struct bed *b = *state;

	run(b);
	phase(b, 1, PHASE_INIT);
	phase(b, 0, PHASE_INIT);
	phase(b, 1, PHASE_TRAIN);                      /* the step follows its lowest rank that says anything */
	assert_string_equal(said(b), "note:phase@1");
	simple(b, SE_READY, 0);
	assert_string_equal(said(b), "note:phase@0");
	fact(b, SE_BINDING, 1, MO_NONE, NULL);
	assert_string_equal(said(b), "note:binding@1");
	fact(b, SE_SAVING, 0, 20, NULL);
	fact(b, SE_SAVING, 1, 20, NULL);
	fact(b, SE_CHECKPOINT, 0, 20, "/c/iter_20");
	fact(b, SE_CHECKPOINT, 1, 20, NULL);
	fact(b, SE_SAVING, 0, 40, NULL);
	assert_string_equal(said(b), "note:saving@0=20 note:checkpoint@0=20 note:saving@0=40");
	fact(b, SE_RESUMED, 0, 60, NULL);
	fact(b, SE_RESUMED, 1, 60, NULL);
	assert_string_equal(said(b), "note:resumed@0=60");
	struct rank_progress p;
	step_progress(b->core, 1, &p);
	assert_int_equal(p.iteration, 60);
	assert_int_equal(p.phase, PHASE_TRAIN);
}

static void test_progress_never_goes_back(void **state) {
	struct bed *b = *state;
	struct rank_progress p;

	run(b);
	sample(b, 0, 5, 1.0, MO_NONE_F);
	sample(b, 0, 4, 1.0, MO_NONE_F);
	step_progress(b->core, 0, &p);
	assert_int_equal(p.iteration, 5);
	simple(b, SE_KILL, MO_NONE);
	exited(b, 0, MO_NONE, SIGKILL);
	assert_string_equal(said(b), "kill note:sample@0=5 note:exit@0=5/killed");
}

/* Any events in any order: the journal keeps its promises, and killing always ends it. */
struct journal { int64_t n, last_sample; bool started[4], exited[4], gone, done; };

static void check(struct bed *b, struct journal *j) {
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct step_effect *x = &b->out.effects[i];
		const struct note *n = &x->note;
		assert_false(j->done);
		j->done = x->type == SX_DONE;
		if (x->type != SX_NOTE)
			continue;
		assert_false(j->gone);
		assert_int_equal(n->n, ++j->n);
		if (n->kind == NOTE_STARTED) {
			assert_false(j->started[n->rank] || j->exited[n->rank]);
			j->started[n->rank] = true;
		} else if (n->kind == NOTE_EXIT) {
			assert_false(j->exited[n->rank]);
			j->exited[n->rank] = true;
		} else if (n->kind == NOTE_SAMPLE) {
			assert_true(n->sample->iteration > j->last_sample);
			j->last_sample = n->sample->iteration;
		} else if (n->kind == NOTE_GONE) {
			j->gone = true;
			for (size_t r = 0; r < 4; r++)
				assert_true(j->exited[r] || !j->started[r]);
		}
	}
	step_out_done(&b->out);
}

static uint32_t rnd(uint32_t n) {
	static uint32_t random = 1;

	random = random * 1664525u + 1013904223u;
	return (random >> 8) % n;
}

static void test_any_order(void **state) {
	for (int seed = 0; seed < 2000; seed++) {
		struct bed *b;
		struct journal j = { .last_sample = -1 };
		bool exited[4] = { false };
		setup_n((void **)&b, 0, 4, 8, (int)rnd(3), rnd(2));
		simple(b, SE_LAUNCH, MO_NONE);
		check(b, &j);
		for (int i = 0; i < 60; i++) {
			struct step_event e = event((int)rnd(_SE_N), (int64_t)rnd(5) - (rnd(20) == 0));
			bool rank_event = e.type == SE_STARTED || e.type == SE_START_FAILED || e.type == SE_EXIT;
			if (e.type == SE_EMPTY && rnd(30))
				continue;
			if (rank_event && e.note.rank >= 0 && e.note.rank < 4 && (exited[e.note.rank] || (e.type == SE_START_FAILED && rnd(10))))
				continue;                      /* the shell's promise: nothing follows an exit */
			if (e.type == SE_EXIT && e.note.rank >= 0 && e.note.rank < 4)
				exited[e.note.rank] = true;
			e.ok = rnd(20) != 0;
			e.signal = 15;
			e.grace_us = rnd(2000000);
			e.note.iteration = rnd(20);
			e.note.phase = (int)rnd(6) - 1;
			if (e.type == SE_SAMPLE) {
				e.note.sample = mo_desc_new(&sample_desc);
				e.note.sample->iteration = rnd(3) ? (int64_t)rnd(20) : MO_NONE;
			}
			b->now += rnd(200000);
			give(b, &e);
			check(b, &j);
		}
		simple(b, SE_KILL, MO_NONE);
		check(b, &j);
		simple(b, SE_EMPTY, MO_NONE);
		check(b, &j);
		assert_true(j.gone && j.done);
		assert_true(step_deadline(b->core) == INT64_MAX);
		teardown((void **)&b);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_good_life, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_exec_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_fail_to_start, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bind_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shorter_grace_wins, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stopped_by_its_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ordered_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_before_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kill_repeats_until_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cause_of_the_shell_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_status_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_pieces_one_sample, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sample_before_exit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flood_of_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_metrics_rank, setup, teardown),
		cmocka_unit_test_setup_teardown(test_metrics_last, setup_last, teardown),
		cmocka_unit_test_setup_teardown(test_metrics_any, setup_any, teardown),
		cmocka_unit_test_setup_teardown(test_sample_without_iteration, setup, teardown),
		cmocka_unit_test_setup_teardown(test_phases_and_saves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_progress_never_goes_back, setup, teardown),
		cmocka_unit_test(test_any_order),
	};
	return cmocka_run_group_tests_name("acore/step", tests, NULL, NULL);
}
