/* Clocks that lie: which time goes on, and that nothing of a wrong one is charged, ends anything or
 * outlives its lifetime. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/state/clock.h"
#include "daemon/core/state/incarnation.h"

#define MINUTE (60 * S)
#define HOUR (60 * MINUTE)
#define NOW (CLOCK_SANE_US + 400LL * 24 * HOUR)

/* The last record is of NOW; it was BOOTTIME 1 h in boot "a" then. */
static struct state stopped_now(void)
{
	struct state s;

	mo_desc_init(&state_desc, &s);
	s.time = s.clock_time = NOW;
	s.clock_boot = HOUR;
	s.clock_boot_id = mo_strdup("a");
	return s;
}

static void a_start_takes_the_right_time(void **state)
{
	static const struct {
		const char *what, *boot;
		int64_t passed, off;
		bool synced;
		int verdict;
		int64_t now, shift;
	} rows[] = {
		{ "restart", "a", 5 * S, 0, false, CLOCK_RIGHT, 5 * S, 0 },
		{ "restart after a slew", "a", HOUR, -30 * S, false, CLOCK_RIGHT, HOUR - 30 * S,
		  0 },
		{ "never below the last record", "a", S, -30 * S, false, CLOCK_RIGHT, 0, 0 },
		{ "set ahead by hand", "a", 5 * S, 12 * HOUR, false, CLOCK_HELD, 5 * S, 0 },
		{ "set back by hand", "a", 5 * S, -12 * HOUR, false, CLOCK_HELD, 5 * S, 0 },
		{ "the time service found it ahead", "a", 5 * S, -12 * HOUR, true, CLOCK_MOVED,
		  5 * S - 12 * HOUR, -12 * HOUR },
		{ "the time service found it behind", "a", 5 * S, 12 * HOUR, true, CLOCK_MOVED,
		  5 * S + 12 * HOUR, 12 * HOUR },
		{ "reboot, synchronised", "b", 3 * HOUR, 0, true, CLOCK_RIGHT, 3 * HOUR, 0 },
		{ "quick reboot", "b", 40 * S, 0, false, CLOCK_RIGHT, 40 * S, 0 },
		{ "reboot, nobody can vouch for the time between", "b", 3 * HOUR, 0, false,
		  CLOCK_MOVED, 3 * HOUR, 3 * HOUR },
		{ "the record is a little ahead", "b", 0, -50 * S, true, CLOCK_RIGHT, 0, 0 },
		{ "the record is ahead of a synchronised clock", "b", 0, -12 * HOUR, true,
		  CLOCK_MOVED, -12 * HOUR, -12 * HOUR },
		{ "1970 at boot", "b", 0, 100 * S - NOW, false, CLOCK_HELD, 0, 0 },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct state s = stopped_now();
		struct clock_reading r = { .wall = NOW + rows[i].passed + rows[i].off,
					   .boot = HOUR + rows[i].passed,
					   .boot_id = rows[i].boot,
					   .synced = rows[i].synced };
		struct clock_word w;

		clock_at_start(&s, &r, &w);
		if (w.verdict != rows[i].verdict || w.now != NOW + rows[i].now ||
		    w.shift != rows[i].shift || !w.text != (w.verdict == CLOCK_RIGHT))
			fail_msg("%s: verdict %d, now %+lld, shift %+lld, %s", rows[i].what,
				 w.verdict, (long long)(w.now - NOW), (long long)w.shift,
				 w.text ? w.text : "no text");
		free(w.text);
		mo_desc_done(&state_desc, &s);
	}
}

static void a_new_or_older_store_takes_the_wall_clock(void **state)
{
	struct clock_reading r = { .wall = NOW, .boot = S, .boot_id = "a", .synced = false };
	struct clock_word w;
	struct state s;

	mo_desc_init(&state_desc, &s);
	s.time = 0;
	clock_at_start(&s, &r, &w);
	assert_true(w.verdict == CLOCK_RIGHT && w.now == NOW);
	s.time = NOW - 20 * S; /* an earlier version stored nothing of clocks */
	clock_at_start(&s, &r, &w);
	assert_true(w.verdict == CLOCK_RIGHT && w.now == NOW);
	mo_desc_done(&state_desc, &s);
}

static void a_run_follows_the_time_service_only(void **state)
{
	static const struct {
		int64_t now, wall;
		bool synced;
		int verdict;
	} rows[] = {
		{ NOW, NOW + 50 * S, true, CLOCK_RIGHT },
		{ NOW, NOW - 50 * S, false, CLOCK_RIGHT },
		{ NOW, NOW + 2 * MINUTE, true, CLOCK_MOVED },
		{ NOW, NOW - 2 * MINUTE, true, CLOCK_MOVED },
		{ NOW, NOW + 2 * MINUTE, false, CLOCK_HELD },
		{ NOW, NOW - 2 * MINUTE, false, CLOCK_HELD },
		/* it began in 1970, and somebody set the clock */
		{ 100 * S, NOW, false, CLOCK_MOVED },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct clock_reading r = {
			.wall = rows[i].wall, .boot = HOUR, .boot_id = "a", .synced = rows[i].synced
		};
		struct clock_word w;

		clock_in_run(rows[i].now, &r, &w);
		if (w.verdict != rows[i].verdict ||
		    w.now != (w.verdict == CLOCK_MOVED ? rows[i].wall : rows[i].now) ||
		    w.shift != w.now - rows[i].now)
			fail_msg("row %zu: verdict %d, shift %lld", i, w.verdict,
				 (long long)w.shift);
		free(w.text);
	}
}

/* As the shell does it: before IN_START, or in the run. */
static void clock_says(struct world *w, int64_t shift, bool synced)
{
	w->now += shift;
	world_step(w, &(struct core_input){
			      .type = IN_CLOCK,
			      .clock = &(struct in_clock){
				      .boot_id = (char *)"boot",
				      .boottime_us = HOUR,
				      .synced = synced,
				      .shift_us = shift,
				      .told = (char *)(shift ? "time was wrong" : NULL) } });
}

static int64_t total(const struct world *w, int64_t id)
{
	const struct job *j = world_job(w, id);
	int64_t sum = 0;

	for (size_t i = 0; i < j->n_ledger; i++)
		sum += j->ledger[i];
	return sum;
}

static int64_t train(struct world *w, int64_t limit)
{
	struct submit spec;
	int64_t id;

	world_init(w, 2, 2);
	w->now += NOW;
	clock_says(w, 0, true);
	world_run(w, S);
	world_recipe(&spec, 2);
	spec.recipe.time_limit_us = limit;
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	for (int64_t i = 1; i <= 5; i++) {
		world_run(w, S);
		world_iteration(w, 0, id, i);
	}
	world_run(w, S);
	return id;
}

static void check_running(struct world *w, int64_t id, int64_t created, int64_t seconds)
{
	const struct job *j = world_job(w, id);

	assert_int_equal(j->state, JOB_RUNNING);
	assert_int_equal(j->attempt, 1);
	assert_int_equal(j->created_at, created);
	assert_in_range(total(w, id), 2 * (seconds - 3) * S, 2 * (seconds + 3) * S);
	assert_false(world_event_seen(w, "node.down"));
	assert_int_equal(world_node(w, 0)->state, NODE_UP);
}

/* The case: a clock half a day ahead at a start, and set right while the controller
 * runs. */
static void a_clock_that_was_ahead_costs_nothing(void **state)
{
	struct world w;
	int64_t id = train(&w, 2 * HOUR), created = world_job(&w, id)->created_at;

	world_crash(&w);
	clock_says(&w, 12 * HOUR, false);
	world_run(&w, 3 * S);
	world_iteration(&w, 0, id, 6);
	world_run(&w, S);
	check_running(&w, id, created + 12 * HOUR, 10); /* not ended by its time limit either */
	clock_says(&w, -12 * HOUR, true);
	world_run(&w, 3 * S);
	world_iteration(&w, 0, id, 7);
	world_run(&w, S);
	check_running(&w, id, created, 14);
	assert_true(world_event_seen(&w, "controller.clock"));
	assert_true(core_state(w.core)->time < NOW + HOUR);
	world_crash(&w); /* the records say the same again */
	world_run(&w, 2 * S);
	check_running(&w, id, created, 16);
	world_done(&w);
}

/* What was limited, or waited for, in a time that was wrong does not wait for that time to come. */
static void limits_and_waits_move_too(void **state)
{
	struct record r;
	struct world w;

	world_init(&w, 1, 2);
	w.now += NOW;
	clock_says(&w, 0, true);
	clock_says(&w, 12 * HOUR, true);
	record_init(&r, REC_RESTORED);
	r.time = core_state(w.core)->time;
	r.restored->epoch = incarnation_epoch(core_state(w.core)->epoch, w.now);
	r.restored->from_backup = true;
	r.restored->backup_at = r.time;
	assert_int_equal(core_update(w.core, &r), 0);
	assert_int_equal(core_update(w.shadow, &r), 0);
	mo_desc_done(&record_desc, &r);
	world_crash(&w);
	world_reboot(&w, 0);
	world_run(&w, S);
	assert_true(core_state(w.core)->restored_wait > w.now);
	clock_says(&w, -12 * HOUR, true);
	assert_true(core_state(w.core)->restored_wait < w.now + HOUR);
	world_reboot(&w, 0);
	world_run(&w, 5 * S);
	assert_string_equal(world_node(&w, 0)->boot.id, w.toys[0].boot);
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	world_done(&w);
}

static void a_clock_in_1970_that_is_set_later_costs_nothing(void **state)
{
	struct world w;
	int64_t id, created;

	world_init(&w, 2, 2);
	clock_says(&w, 0, false);
	id = world_submit_gpus(&w, 2);
	world_run(&w, 5 * S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	created = world_job(&w, id)->created_at;
	clock_says(&w, NOW, true);
	world_run(&w, 3 * S);
	world_iteration(&w, 0, id, 2);
	world_run(&w, S);
	check_running(&w, id, created + NOW, 10);
	world_done(&w);
}

/* What is over does not move: restarted, it counts from before 1970 when the clock is set back. */
static void who_is_restarted_in_a_wrong_time_is_charged_as_before(void **state)
{
	struct submit spec;
	struct world w;
	int64_t id, created;

	world_init(&w, 1, 2);
	clock_says(&w, 0, true);
	world_recipe(&spec, 2);
	spec.recipe.steps = 10;
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, S);
	created = world_job(&w, id)->created_at;
	world_exit(&w, 0, id, 0, 0, 0);
	world_exit(&w, 0, id, 1, 0, 0);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_FAILED);
	clock_says(&w, 12 * HOUR, true);
	world_verb(&w, IN_RESTART, id);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	clock_says(&w, -12 * HOUR, true);
	assert_int_equal(world_job(&w, id)->created_at, created - 12 * HOUR);
	world_run(&w, 5 * S);
	clock_says(&w, 6 * HOUR, true);
	assert_int_equal(world_job(&w, id)->created_at, created - 6 * HOUR);
	world_run(&w, S);
	world_verb(&w, IN_CANCEL, id); /* all is charged: the bed asks whether it adds up */
	world_run(&w, S);
	assert_in_range(total(&w, id), 2 * 10 * S, 2 * 16 * S);
	world_done(&w);
}

static void token_made(struct world *w, const char *id)
{
	struct token t = { .id = (char *)id,
			   .hash = (char *)"00",
			   .role = (char *)"user",
			   .created_at = w->now,
			   .expires_at = w->now + 12 * HOUR };

	world_step(w, &(struct core_input){ .type = IN_TOKEN, .token = &t });
}

static const struct token *token_of(const struct world *w, const char *id)
{
	for (size_t i = 0; i < core_state(w->core)->n_tokens; i++)
		if (mo_streq(core_state(w->core)->tokens[i].id, id))
			return &core_state(w->core)->tokens[i];
	return NULL;
}

static void tokens_live_as_long_as_was_said(void **state)
{
	struct world w;
	int64_t before;

	train(&w, MO_NONE);
	token_made(&w, "right");
	before = token_of(&w, "right")->expires_at;
	world_crash(&w);
	clock_says(&w, 13 * HOUR, false);
	token_made(&w, "ahead");
	assert_int_equal(token_of(&w, "right")->expires_at, before);
	clock_says(&w, -13 * HOUR, true);
	assert_int_equal(token_of(&w, "right")->expires_at, before);
	assert_int_equal(token_of(&w, "ahead")->created_at, w.now);
	assert_int_equal(token_of(&w, "ahead")->expires_at, w.now + 12 * HOUR);
	/* held behind, then set: a token of that time is not over at once, an older one not longer
	 * good */
	world_crash(&w);
	w.now += S;
	clock_says(&w, 0, false);
	token_made(&w, "behind");
	clock_says(&w, 9 * 24 * HOUR, true);
	assert_int_equal(token_of(&w, "behind")->expires_at, w.now + 12 * HOUR);
	assert_int_equal(token_of(&w, "right")->expires_at, before);
	world_done(&w);
}

/* A node that was put out in a time that is taken back: join tokens made from now on are of after
 * that. */
static void a_node_put_out_in_the_wrong_time_is_brought_back(void **state)
{
	struct token join = { .id = (char *)"join", .role = (char *)"join", .nodes = 1 },
		     own = { .id = (char *)"own", .role = (char *)"agent", .user = (char *)"n1" };
	struct in_token_id id = { (char *)"own" };
	struct world w;

	train(&w, MO_NONE);
	join.revoked_at = own.revoked_at = MO_NONE;
	join.created_at = own.created_at = w.now;
	join.expires_at = own.expires_at = w.now + 12 * HOUR;
	world_step(&w, &(struct core_input){ .type = IN_TOKEN, .token = &join });
	world_step(&w, &(struct core_input){ .type = IN_TOKEN, .token = &own });
	world_crash(&w);
	clock_says(&w, 4 * HOUR, false);
	world_step(&w, &(struct core_input){ .type = IN_TOKEN_REVOKE, .token_id = &id });
	assert_int_equal(token_of(&w, "own")->revoked_at, w.now);
	clock_says(&w, -4 * HOUR, true);
	assert_in_range(token_of(&w, "own")->revoked_at, w.now - MINUTE, w.now);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_takes_the_right_time),
		cmocka_unit_test(a_new_or_older_store_takes_the_wall_clock),
		cmocka_unit_test(a_run_follows_the_time_service_only),
		cmocka_unit_test(a_clock_that_was_ahead_costs_nothing),
		cmocka_unit_test(limits_and_waits_move_too),
		cmocka_unit_test(a_clock_in_1970_that_is_set_later_costs_nothing),
		cmocka_unit_test(who_is_restarted_in_a_wrong_time_is_charged_as_before),
		cmocka_unit_test(tokens_live_as_long_as_was_said),
		cmocka_unit_test(a_node_put_out_in_the_wrong_time_is_brought_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
