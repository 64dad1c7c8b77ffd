/* Any events in any order: the journal of a step keeps its promises, and killing always ends it. */
#include "tests/unit/acore/stepd_bed.h"

struct journal {
	int64_t n, last_sample;
	bool started[4], exited[4], gone, done;
};

static void check(struct bed *b, struct journal *j)
{
	for (size_t i = 0; i < b->out.n_effects; i++) {
		const struct stepd_effect *x = &b->out.effects[i];
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
	stepd_out_done(&b->out);
}

static uint32_t rnd(uint32_t n)
{
	static uint32_t random = 1;

	random = random * 1664525u + 1013904223u;
	return (random >> 8) % n;
}

static void test_any_order(void **state)
{
	for (int seed = 0; seed < 2000; seed++) {
		struct bed *b;
		struct journal j = { .last_sample = -1 };
		bool exited[4] = { false };
		setup_n((void **)&b, 0, 4, 8, (int)rnd(3), rnd(2));
		simple(b, SE_LAUNCH, MO_NONE);
		check(b, &j);
		for (int i = 0; i < 60; i++) {
			struct stepd_event e =
				event((int)rnd(_SE_N), (int64_t)rnd(5) - (rnd(20) == 0));
			bool rank_event = e.type == SE_STARTED || e.type == SE_START_FAILED ||
					  e.type == SE_EXIT;
			if (e.type == SE_EMPTY && rnd(30))
				continue;
			if (rank_event && e.note.rank >= 0 && e.note.rank < 4 &&
			    (exited[e.note.rank] || (e.type == SE_START_FAILED && rnd(10))))
				continue; /* the shell's promise: nothing follows an exit */
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
		assert_true(stepd_core_deadline(b->core) == INT64_MAX);
		teardown((void **)&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests_name("acore/step_random", tests, NULL, NULL);
}
