/* A node that says one thing and then the other, as often as it can: its events leave room for
 * everybody else's, and what was left out is counted. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>
#include <math.h>
#include <time.h>

#include "daemon/core/update/verify.h"
#include "lib/model/limits.h"

static size_t of_node(const struct world *w, const char *node, const char *type)
{
	const struct state *s = core_state(w->core);
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		n += mo_streq(s->events[i].node, node) &&
		     (!type || mo_streq(s->events[i].type, type));
	return n;
}

static void say(struct world *w, struct agent_sync *s)
{
	s->node = mo_strdup("n0");
	s->boot_id = mo_strdup(w->toys[0].boot);
	s->instance = mo_strdup(w->toys[0].instance);
	s->beat = ++w->toys[0].beat;
	if (s->epoch == MO_NONE)
		s->epoch = core_state(w->core)->epoch;
	world_step(w, &(struct core_input){ .type = IN_SYNC,
					    .sync = &(struct in_sync){ .message = s } });
	mo_desc_done(&agent_sync_desc, s);
}

static void step(struct agent_sync *s, int64_t job, int state)
{
	*MO_ADD(s, steps, &step_report_desc) =
		(struct step_report){ .job = job, .attempt = 1, .state = state };
}

static struct agent_sync sync_new(void)
{
	struct agent_sync s;

	mo_desc_init(&agent_sync_desc, &s);
	return s;
}

/* Two jobs of the node: one hangs and does not, the other is there and is not; its machine goes
 * down and does not, its controller is another each time. */
static void toggle(struct world *w, int i)
{
	struct agent_sync s = sync_new();

	step(&s, 1, i % 2 ? STEP_HUNG : STEP_RUNNING);
	if (i % 2)
		step(&s, 2, STEP_RUNNING);
	step(&s, 100 + i, STEP_RUNNING);
	s.leaving = i % 2;
	say(w, &s);
	s = sync_new();
	s.epoch = core_state(w->core)->epoch + 1 + i;
	say(w, &s);
}

static void one_node_does_not_push_out_the_others(void **state)
{
	static const char *const kinds[] = { "step.hung", "step.missing", "step.unknown",
					     "node.leaving", "controller.stale" };
	struct world w;
	struct event first;

	world_init(&w, 2, 4);
	world_submit_gpus(&w, 1);
	world_submit_gpus(&w, 1);
	world_run(&w, 2 * S);
	assert_int_equal(place_of(world_job(&w, 1), "n0") != NULL &&
				 place_of(world_job(&w, 2), "n0") != NULL,
			 1);
	first = core_state(w.core)->events[0];
	for (int i = 1; i <= 3000; i++) {
		toggle(&w, i);
		w.now += S / 50;
	}
	assert_int_equal(core_state(w.core)->events[0].seq, first.seq);
	assert_in_range(of_node(&w, "n0", NULL), 100, 400);
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		assert_in_range(of_node(&w, "n0", kinds[i]), 20, 40);
	assert_in_range(of_node(&w, "n0", "node.noisy"), ELEMENTSOF(kinds), 2 * ELEMENTSOF(kinds));
	world_done(&w);
}

/* Of each kind by itself, once it is reported again. */
static void how_many_were_left_out_is_said(void **state)
{
	const struct state *s;
	struct world w;

	world_init(&w, 1, 1);
	for (int i = 1; i <= 100; i++) {
		struct agent_sync sync = sync_new();

		sync.leaving = i % 2;
		say(&w, &sync);
	}
	assert_int_equal(of_node(&w, "n0", "node.leaving"), 30);
	assert_int_equal(of_node(&w, "n0", "node.noisy"), 1);
	for (int i = 1; i <= 20 * 60; i++) {
		world_beat(&w, 0);
		w.now += S;
	}
	struct agent_sync sync = sync_new();

	sync.leaving = true;
	say(&w, &sync);
	s = core_state(w.core);
	assert_non_null(strstr(s->events[s->n_events - 1].message,
			       "(70 events of this kind of the node were left out before)"));
	assert_int_equal(of_node(&w, "n0", "node.noisy"), 1);
	world_done(&w);
}

/* The same unknown steps in another order, or one of them twice: nothing new. */
static void the_order_of_unknown_steps_says_nothing(void **state)
{
	struct agent_sync s;
	struct world w;

	world_init(&w, 1, 1);
	s = sync_new();
	for (int64_t i = 0; i < MO_STEPS_PER_NODE_MAX; i++)
		step(&s, 100 + i, STEP_RUNNING);
	say(&w, &s);
	assert_int_equal(world_node(&w, 0)->strays.n_steps, MO_STEPS_PER_NODE_MAX);
	assert_int_equal(of_node(&w, "n0", "step.unknown"), 30);
	s = sync_new();
	for (int64_t i = MO_STEPS_PER_NODE_MAX; i > 0; i--)
		step(&s, 99 + i, STEP_RUNNING);
	step(&s, 100, STEP_RUNNING);
	say(&w, &s);
	assert_int_equal(w.out.n_records, 0);
	assert_int_equal(world_node(&w, 0)->strays.n_steps, MO_STEPS_PER_NODE_MAX);
	s = sync_new();
	step(&s, 100, STEP_RUNNING);
	say(&w, &s);
	assert_int_equal(world_node(&w, 0)->strays.n_steps, 1);
	world_done(&w);
}

/* An agent that is welcomed, and never beats, says hello as often as it can, each time something
 * else: each would be stored, with all that its node consists of. */
static void hellos_before_any_beat_are_limited(void **state)
{
	struct world w;
	size_t stored = 0;

	world_init(&w, 1, 1);
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "another");
	world_hello(&w, 0);
	struct agent_sync s = sync_new();
	s.node = mo_strdup("n0");
	s.boot_id = mo_strdup(w.toys[0].boot);
	s.instance = mo_strdup("another");
	s.epoch = core_state(w.core)->epoch;
	world_step(&w, &(struct core_input){ .type = IN_URGENT,
					     .sync = &(struct in_sync){ .message = &s } });
	mo_desc_done(&agent_sync_desc, &s);
	for (int i = 0; i < 300; i++) {
		w.toys[0].gpus = 2 - i % 2;
		world_hello(&w, 0);
		stored += w.out.n_records;
	}
	assert_int_equal(w.reply_status, 429);
	assert_in_range(stored, 50, 60);
	w.now += 10 * S;
	world_hello(&w, 0);
	assert_int_equal(w.reply_status, 0);
	world_done(&w);
}

static void note_checkpoint(struct step_report *r, int64_t iteration)
{
	struct note *n = MO_ADD(r, notes, &note_desc);

	n->n = ++r->written;
	n->kind = NOTE_CHECKPOINT;
	n->rank = 0;
	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
}

/* CPU time of one message that answers the verification of n checkpoints, each by the id that
 * it will have once the one before is answered. */
static double seconds_of_answers(int64_t n)
{
	struct submit spec;
	struct timespec a, b;
	struct agent_sync s;
	struct world w;

	world_init(&w, 1, 1);
	world_recipe(&spec, 1);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.checkpoint.resume = -1;
	spec.recipe.checkpoint.verify = mo_strdup("sizes");
	int64_t id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 2 * S);
	s = sync_new();
	step(&s, id, STEP_RUNNING);
	s.steps[0].written = step_find(world_job(&w, id), 1, "n0")->through;
	for (int64_t i = 1; i <= n; i++)
		note_checkpoint(&s.steps[0], i);
	say(&w, &s);
	assert_int_equal(world_job(&w, id)->n_checkpoints, n);
	int64_t first = verify_id(world_job(&w, id), 0);
	assert_int_equal(world_job(&w, id)->verify.serial, 1);
	s = sync_new();
	step(&s, id, STEP_RUNNING);
	for (int64_t i = 0; i < n; i++) {
		struct scan_result *r = MO_ADD(&s, scans, &scan_result_desc);

		r->job = id;
		r->order = ORDER_VERIFY;
		r->id = first * (i + 1);
		r->error = mo_strdup("x");
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	say(&w, &s);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	assert_int_equal(w.out.n_records, n);
	world_done(&w);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* The least of three: what else a core does counts as this program's now and then. */
static double least_of_answers(int64_t n)
{
	double least = seconds_of_answers(n);

	for (int i = 0; i < 2; i++)
		least = fmin(least, seconds_of_answers(n));
	return least;
}

static void answers_about_many_checkpoints_cost_no_squares(void **state)
{
	double few = least_of_answers(100), all = least_of_answers(MO_CHECKPOINTS_MAX);

	print_message("%.1f ms of CPU time for 100, %.1f ms for %d\n", few * 1e3, all * 1e3,
		      MO_CHECKPOINTS_MAX);
	/* about 15 times; compared each with each it was 165 times */
	assert_true(all < 60 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_about_many_checkpoints_cost_no_squares),
		cmocka_unit_test(hellos_before_any_beat_are_limited),
		cmocka_unit_test(one_node_does_not_push_out_the_others),
		cmocka_unit_test(how_many_were_left_out_is_said),
		cmocka_unit_test(the_order_of_unknown_steps_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
