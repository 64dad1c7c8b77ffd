/* GPUs that spin tell a collective that waits for ever from what only looks like it. Steps of a
 * second; the least times are those of life. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#define MOVES INT64_MAX
#define RANKS 4

static int64_t start(struct world *w)
{
	struct submit spec;
	int64_t id;

	world_init(w, 2, 2);
	world_recipe(&spec, RANKS);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("auto");
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	for (size_t i = 0; i < w->n_toys; i++)
		w->toys[i].tells_motion = true;
	world_run(w, S);
	for (int64_t i = 1; i <= 25; i++) {
		world_iteration(w, 0, id, i);
		world_run(w, S);
	}
	return id;
}

/* What each does from now on: processors busy, nobody writes, no card moves. */
static struct toy_motion spins(const struct world *w)
{
	return (struct toy_motion){ .cpu_at = MOVES,
				    .net_at = w->now,
				    .state = PROCESS_RUNS,
				    .gpu = true,
				    .worked_at = w->now,
				    .spins_since = w->now };
}

static struct toy_motion rests(const struct world *w, int64_t cpu_at)
{
	struct toy_motion m = spins(w);

	m.spins_since = 0;
	m.cpu_at = cpu_at;
	return m;
}

static void all_ranks(struct world *w, struct toy_motion m)
{
	for (size_t i = 0; i < w->n_toys; i++)
		for (size_t k = 0; k < ELEMENTSOF(w->toys[i].moves); k++)
			w->toys[i].moves[k] = m;
}

static void rank_three(struct world *w, struct toy_motion m)
{
	w->toys[1].moves[1] = m;
}

/* Confirmed between these seconds of the last iteration, and the attempt ends. */
static void ends(struct world *w, int64_t id, int64_t after, int64_t before)
{
	world_run(w, after * S);
	assert_int_equal(world_events(w, "hang.suspected"), 1);
	assert_int_equal(world_events(w, "hang.confirmed"), 0);
	world_run(w, (before - after) * S);
	assert_int_equal(world_events(w, "hang.confirmed"), 1);
	assert_int_equal(world_job(w, id)->attempt, 2);
}

static bool evidence_has(const struct world *w, int64_t id, const char *text)
{
	const struct incident *inc = &world_job(w, id)->incidents[0];

	for (size_t i = 0; i < inc->n_evidence; i++)
		if (strstr(inc->evidence[i], text))
			return true;
	return false;
}

static void a_collective_of_which_all_gpus_spin_ends_after_a_minute(void **state)
{
	struct world w;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	ends(&w, id, 60, 75);
	assert_true(evidence_has(&w, id, "GPUs: each is busy and computes nothing for "));
	assert_true(evidence_has(&w, id, "ranks: 4 collective-stuck"));
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, MO_NONE);
	world_done(&w);
}

/* Engines that sleep while the GPU works (JAX): it is the collective all the same. */
static void hosts_that_sleep_stand_in_the_collective(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	m = spins(&w);
	m.cpu_at = w.now;
	all_ranks(&w, m);
	ends(&w, id, 60, 75);
	assert_true(evidence_has(&w, id, "ranks: 4 collective-stuck"));
	world_done(&w);
}

/* An evaluation of its own: the others wait for it, and so does the judgement, as before. */
static void a_gpu_that_computes_is_waited_for(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	m = rests(&w, MOVES);
	m.worked_at = MOVES;
	rank_three(&w, m);
	ends(&w, id, 595, 620);
	assert_false(evidence_has(&w, id, "GPUs: "));
	world_done(&w);
}

/* Who finished last is waited for until a moment ago: that all spin now is no evidence yet. */
static void a_gpu_that_has_just_computed_is_waited_for(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	m = rests(&w, MOVES);
	m.worked_at = MOVES;
	rank_three(&w, m);
	world_run(&w, 300 * S);
	m.worked_at = m.spins_since = w.now;
	rank_three(&w, m);
	world_run(&w, 50 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	world_run(&w, 20 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

/* Its GPU has nothing to do, but its processors have: it compiles, or loads. */
static void a_rank_that_compiles_is_waited_for(void **state)
{
	struct world w;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	rank_three(&w, rests(&w, MOVES));
	ends(&w, id, 595, 620);
	assert_true(evidence_has(&w, id, "ranks: 3 collective-stuck, 1 host-stuck"));
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 3);
	world_done(&w);
}

/* As all that sleep: a file system may stand for a minute. */
static void a_rank_that_sleeps_has_two_minutes(void **state)
{
	struct world w;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	rank_three(&w, rests(&w, w.now));
	ends(&w, id, 120, 140);
	assert_true(evidence_has(&w, id, "GPUs: none computed anything for "));
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 3);
	world_done(&w);
}

/* None of a collective is seen: loaders refill. */
static void idle_gpus_alone_say_nothing(void **state)
{
	struct world w;
	int64_t id = start(&w);

	all_ranks(&w, rests(&w, MOVES));
	ends(&w, id, 595, 620);
	assert_false(evidence_has(&w, id, "GPUs: "));
	world_done(&w);
}

static void of_one_gpu_nothing_is_known(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	all_ranks(&w, spins(&w));
	m = spins(&w);
	m.gpu = false;
	m.spins_since = 0;
	rank_three(&w, m);
	ends(&w, id, 595, 620);
	world_done(&w);
}

/* Nor does it tell this rank from the others, which sleep as it does. */
static void of_one_gpu_alone_something_is_known(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	m = rests(&w, w.now);
	m.gpu = false;
	all_ranks(&w, m);
	m = spins(&w);
	m.cpu_at = w.now;
	rank_three(&w, m);
	ends(&w, id, 120, 140);
	assert_true(evidence_has(&w, id, "ranks: 4 host-stuck"));
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, MO_NONE);
	world_done(&w);
}

/* It did so while the job iterated: what is read is always the same. */
static void gpus_that_seemed_to_spin_all_the_time_say_nothing(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w), began = w.now;

	for (int64_t i = 26; i <= 100; i++) {
		world_iteration(&w, 0, id, i);
		world_run(&w, S);
	}
	m = spins(&w);
	m.worked_at = m.spins_since = began;
	all_ranks(&w, m);
	ends(&w, id, 595, 620);
	world_done(&w);
}

/* What goes by sockets may move, slowly or again after a while. */
static void without_cards_it_takes_five_minutes(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	m = spins(&w);
	m.net_at = MO_NONE;
	all_ranks(&w, m);
	ends(&w, id, 300, 315);
	assert_false(evidence_has(&w, id, "RDMA and XGMI"));
	world_done(&w);
}

/* What was so when it was suspected is old; who asks hears what is so now, and what it leads to. */
static void why_says_what_is_so_now(void **state)
{
	struct world w;
	int64_t id = start(&w);
	struct toy_motion m = spins(&w);

	m.net_at = MO_NONE;
	all_ranks(&w, m);
	world_run(&w, 100 * S);
	world_why_has(&w, id, "nothing moves for 9");
	world_why_has(&w, id, "at 300 s it is taken for a hang");
	world_why_has(&w, id, "GPUs: each is busy and computes nothing for ");
	world_run(&w, 60 * S);
	world_why_has(&w, id, "nothing moves for 15");
	world_why_has(&w, id, "no iteration for 1");
	world_done(&w);
}

static void who_writes_moves(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	m = spins(&w);
	m.io_at = MOVES;
	all_ranks(&w, m);
	world_run(&w, 1200 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* Cards that move while GPUs spin: of a network that is slow. */
static void cards_that_move_are_waited_for(void **state)
{
	struct world w;
	struct toy_motion m;
	int64_t id = start(&w);

	m = spins(&w);
	m.net_at = MOVES;
	all_ranks(&w, m);
	world_run(&w, 1200 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collective_of_which_all_gpus_spin_ends_after_a_minute),
		cmocka_unit_test(hosts_that_sleep_stand_in_the_collective),
		cmocka_unit_test(a_gpu_that_computes_is_waited_for),
		cmocka_unit_test(a_gpu_that_has_just_computed_is_waited_for),
		cmocka_unit_test(a_rank_that_compiles_is_waited_for),
		cmocka_unit_test(a_rank_that_sleeps_has_two_minutes),
		cmocka_unit_test(idle_gpus_alone_say_nothing),
		cmocka_unit_test(of_one_gpu_nothing_is_known),
		cmocka_unit_test(of_one_gpu_alone_something_is_known),
		cmocka_unit_test(gpus_that_seemed_to_spin_all_the_time_say_nothing),
		cmocka_unit_test(without_cards_it_takes_five_minutes),
		cmocka_unit_test(why_says_what_is_so_now),
		cmocka_unit_test(who_writes_moves),
		cmocka_unit_test(cards_that_move_are_waited_for),
	};

	return cmocka_run_group_tests_name("dcore/hang_gpus", tests, NULL, NULL);
}
