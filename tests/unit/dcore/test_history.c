/* What is too old leaves history, by a record, and nothing that is still needed does. The world's
 * shadow replays every record and must stay equal. */
#include "tests/unit/dcore/world.h"

#include <errno.h>

#include "daemon/core/state/clock.h"

#define DAY (86400LL * S)
#define AGE (90 * DAY)

static int64_t submit_to(struct world *w, const char *dir)
{
	struct submit s;

	world_recipe(&s, 4);
	mo_str_set(&s.recipe.checkpoint.dir, dir);
	int64_t id = world_submit(w, &s);
	mo_desc_done(&submit_desc, &s);
	return id;
}

/* It never ran. */
static int64_t cancelled(struct world *w)
{
	int64_t id = world_submit_gpus(w, 4000);

	world_verb(w, IN_CANCEL, id);
	return id;
}

static size_t events_of(const struct world *w, int64_t job)
{
	const struct state *s = core_state(w->core);
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		n += s->events[i].job == job;
	return n;
}

static void a_job_leaves_with_its_events(void **state)
{
	struct world w;

	world_init(&w, 1, 4);
	int64_t old = cancelled(&w), waits = world_submit_gpus(&w, 4000);
	world_tick(&w, DAY);
	int64_t newer = cancelled(&w);

	world_tick(&w, AGE - DAY - 2 * S);
	assert_non_null(job_find(core_state(w.core), old));
	assert_true(events_of(&w, old) > 0);
	world_crash(&w); /* another controller looks too */
	world_tick(&w, DAY / 2);
	assert_null(job_find(core_state(w.core), old));
	assert_int_equal(events_of(&w, old), 0);
	assert_non_null(job_find(core_state(w.core), newer));
	assert_true(events_of(&w, newer) > 0);
	world_tick(&w, DAY);
	assert_null(job_find(core_state(w.core), newer));
	/* what waits stays, and what was said of it */
	world_tick(&w, AGE);
	assert_non_null(job_find(core_state(w.core), waits));
	assert_true(events_of(&w, waits) > 0);
	world_verb(&w, IN_CANCEL, waits);
	world_tick(&w, AGE / 2);
	assert_non_null(job_find(core_state(w.core), waits));
	assert_true(events_of(&w, waits) > 1); /* its submit was long ago */
	world_tick(&w, AGE);
	assert_null(job_find(core_state(w.core), waits));
	world_crash(&w);
	assert_null(job_find(core_state(w.core), old));
	assert_true(cancelled(&w) > waits); /* no number is used again */
	world_done(&w);
}

/* What is of no job: nodes came, were silent, came back. */
static void other_events_leave(void **state)
{
	struct world w;

	world_init(&w, 1, 4);
	world_tick(&w, 60 * S); /* nobody beats */
	assert_int_equal(world_events(&w, "node.down"), 1);
	world_tick(&w, AGE - DAY);
	assert_int_equal(world_events(&w, "node.down"), 1);
	world_run(&w, S);
	assert_true(world_events(&w, "node.up") > 0);
	world_tick(&w, 2 * DAY);
	assert_true(core_state(w.core)->n_events > 0); /* it is up, and down again */
	for (size_t i = 0; i < core_state(w.core)->n_events; i++)
		assert_true(core_state(w.core)->events[i].time > w.now - AGE);
	world_done(&w);
}

static void without_an_age_all_stay(void **state)
{
	struct core_config config = core_config_default;

	config.history_us = 0;
	struct core *c = core_new(&config);
	struct core_out out = { 0 };

	core_turn(c, &(struct core_input){ .type = IN_START }, CLOCK_SANE_US, &out);
	assert_true(core_deadline(c) == INT64_MAX || core_deadline(c) <= CLOCK_SANE_US);
	core_out_done(&out);
	core_turn(c, &(struct core_input){ .type = IN_TICK }, CLOCK_SANE_US + 9 * AGE, &out);
	assert_true(core_state(c)->n_events > 0);
	core_out_done(&out);
	core_free(c);
}

/* A node that was gone for months has its step still to report. */
static void what_a_node_still_holds_stays(void **state)
{
	struct world w;

	world_init(&w, 2, 4);
	int64_t id = world_submit_gpus(&w, 8);
	world_run(&w, S);
	w.toys[1].deaf = true;
	world_exit(&w, 0, id, 0, 1, 0);
	world_run(&w, 20 * S);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 20 * S);
	world_node_verb(&w, IN_FENCE, 1, NULL);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_CANCELLED);
	assert_true(world_job(&w, id)->n_steps > 0);
	world_tick(&w, 2 * AGE);
	assert_non_null(job_find(core_state(w.core), id));
	w.toys[1].deaf = false;
	world_reboot(&w, 1);
	world_run(&w, 10 * S);
	assert_int_equal(world_job(&w, id)->n_steps, 0);
	world_tick(&w, DAY);
	assert_null(job_find(core_state(w.core), id));
	world_done(&w);
}

/* Who resumes from a directory asks what was known of the checkpoints there. */
static void who_saved_where_a_job_saves_stays(void **state)
{
	struct world w;

	world_init(&w, 1, 4);
	int64_t first = submit_to(&w, "/ckpt/a"), other = submit_to(&w, "/ckpt/b");
	world_verb(&w, IN_CANCEL, first);
	world_verb(&w, IN_CANCEL, other);
	world_run(&w, 20 * S);
	int64_t again = submit_to(&w, "/ckpt/a/");
	world_tick(&w, 2 * AGE);
	assert_false(job_state_final(world_job(&w, again)->state));
	assert_non_null(job_find(core_state(w.core), first));
	assert_true(events_of(&w, first) > 0);
	assert_null(job_find(core_state(w.core), other));
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, again);
	world_run(&w, 20 * S);
	world_tick(&w, DAY);
	assert_null(job_find(core_state(w.core), first));
	assert_non_null(job_find(core_state(w.core), again));
	world_done(&w);
}

/* It failed on a node that is drained now. */
static void what_speaks_against_a_drained_node_stays(void **state)
{
	struct world w;

	world_init(&w, 2, 4);
	int64_t id = world_submit_gpus(&w, 8);
	world_run(&w, S);
	world_exit(&w, 1, id, world_job(&w, id)->run.places[0].node[1] == '1' ? 0 : 4, 139, 11);
	world_run(&w, 20 * S);
	assert_string_equal(world_job(&w, id)->incidents[0].node, "n1");
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->n_steps, 0);
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	int64_t drained = world_events(&w, "node.draining");
	assert_true(drained > 0);
	world_tick(&w, 2 * AGE);
	assert_non_null(job_find(core_state(w.core), id));
	assert_int_equal(world_events(&w, "node.draining"), drained);
	world_node_verb(&w, IN_UNDRAIN, 1, NULL);
	world_tick(&w, DAY);
	assert_null(job_find(core_state(w.core), id));
	assert_int_equal(world_events(&w, "node.draining"), 0);
	world_done(&w);
}

static void clock_is_set(struct world *w, int64_t shift)
{
	w->now += shift;
	world_step(w, &(struct core_input){
			      .type = IN_CLOCK,
			      .clock = &(struct in_clock){ .boot_id = (char *)"boot",
							   .boottime_us = 3600 * S,
							   .synced = true,
							   .shift_us = shift,
							   .told = (char *)"time was wrong" } });
}

/* Jobs that are over keep the times that they were given: their ages are not known any more, and
 * count from the leap on. */
static void a_leap_of_the_clock_makes_nothing_old(void **state)
{
	struct world w;

	world_init(&w, 1, 4);
	int64_t id = cancelled(&w);
	clock_is_set(&w, 20000 * DAY);
	world_tick(&w, AGE - DAY);
	assert_non_null(job_find(core_state(w.core), id));
	clock_is_set(&w, -20000 * DAY); /* it was the wrong one */
	world_tick(&w, DAY / 2);
	assert_non_null(job_find(core_state(w.core), id));
	clock_is_set(&w, 10 * DAY);
	world_crash(&w);
	world_tick(&w, AGE - DAY);
	assert_non_null(job_find(core_state(w.core), id));
	world_tick(&w, 2 * DAY);
	assert_null(job_find(core_state(w.core), id));
	/* less than a day: nothing begins anew */
	id = cancelled(&w);
	world_tick(&w, AGE - DAY);
	clock_is_set(&w, 20 * 3600 * S);
	world_tick(&w, DAY / 2);
	assert_null(job_find(core_state(w.core), id));
	world_done(&w);
}

/* More than one turn forgets. */
static void many_leave_in_portions(void **state)
{
	enum { N = 2300 };
	struct core *c = core_new(&core_config_default);
	struct core_out out = { 0 };
	struct state s;
	int64_t now = CLOCK_SANE_US;
	size_t left = N;

	mo_desc_init(&state_desc, &s);
	for (size_t i = 0; i < N; i++) {
		struct job *j = MO_INSERT(&s, jobs, s.n_jobs, &job_desc);

		j->id = (int64_t)i + 1;
		j->state = JOB_COMPLETED;
		j->ended_at = now;
	}
	s.next_job = N + 1;
	core_load(c, &s);
	core_turn(c, &(struct core_input){ .type = IN_START }, now, &out);
	core_out_done(&out);
	now += AGE;
	while (core_deadline(c) <= now) {
		core_turn(c, &(struct core_input){ .type = IN_TICK }, now, &out);
		assert_true(left - core_state(c)->n_jobs <= 1000);
		left = core_state(c)->n_jobs;
		core_out_done(&out);
	}
	assert_int_equal(left, 0);
	core_free(c);
}

/* A store that was damaged, or tampered with. */
static void a_record_that_names_what_lives_is_refused(void **state)
{
	struct world w;
	struct record r;

	world_init(&w, 1, 4);
	int64_t id = world_submit_gpus(&w, 4000); /* it waits, without steps */
	record_init(&r, REC_HISTORY);
	r.time = w.now;
	mo_ints_add(&r.history->jobs, &r.history->n_jobs, id);
	assert_int_equal(core_update(w.core, &r), -EINVAL);
	assert_non_null(job_find(core_state(w.core), id));
	r.history->jobs[0] = id + 7; /* taken out, or never there */
	assert_int_equal(core_update(w.core, &r), 0);
	mo_ints_add(&r.history->jobs, &r.history->n_jobs, id + 7);
	assert_int_equal(core_update(w.core, &r), -EINVAL);
	mo_desc_done(&record_desc, &r);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_leaves_with_its_events),
		cmocka_unit_test(other_events_leave),
		cmocka_unit_test(without_an_age_all_stay),
		cmocka_unit_test(what_a_node_still_holds_stays),
		cmocka_unit_test(who_saved_where_a_job_saves_stays),
		cmocka_unit_test(what_speaks_against_a_drained_node_stays),
		cmocka_unit_test(a_leap_of_the_clock_makes_nothing_old),
		cmocka_unit_test(many_leave_in_portions),
		cmocka_unit_test(a_record_that_names_what_lives_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
