/* Whom the others wait for, by flight recorders: what is said of it, who stands out, and that
 * nothing follows from it alone. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/rules/hang_recorder.h"

static const struct toy_motion spins = { 0, 0, INT64_MAX, MO_NONE, PROCESS_RUNS };

#define NAME(text) ((char *)(text))
/* in all_reduce #781 of all ranks */
static struct recorder_wait reduces = { .group = NAME("0"),
					.desc = NAME("default_pg"),
					.members = NAME("0-3"),
					.op = NAME("all_reduce"),
					.sizes = NAME("4096 Float"),
					.at = NAME("train_step (train.py:120)"),
					.seq = 781,
					.age_ms = 62000 };
static struct recorder_wait exchanges = { .group = NAME("1"),
					  .desc = NAME("EXPERT"),
					  .members = NAME("0-3"),
					  .op = NAME("all_to_all"),
					  .seq = 260,
					  .age_ms = 1000 };

static struct rank_recorder waits_in(int64_t rank, struct recorder_wait *w)
{
	return (struct rank_recorder){
		.rank = rank, .enqueued = NAME("0=781 1=260"), .waits = w, .n_waits = 1
	};
}

static struct rank_recorder waits_not(int64_t rank, const char *enqueued)
{
	return (struct rank_recorder){ .rank = rank, .enqueued = NAME(enqueued) };
}

/* Four ranks that spin on two nodes, suspected; their recorders have said what is given. */
static int64_t suspected(struct world *w, const struct rank_recorder *k)
{
	struct submit spec;
	int64_t id;

	world_init(w, 2, 2);
	w->core->config.hang_percent = 10;
	for (size_t i = 0; i < 2; i++) {
		w->toys[i].tells_motion = true;
		w->toys[i].moves[0] = w->toys[i].moves[1] = spins;
		w->toys[i].recorders = k + 2 * i;
		w->toys[i].n_recorders = 2;
	}
	world_recipe(&spec, 4);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("auto");
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	for (int64_t i = 1; i <= 25; i++) {
		world_iteration(w, 0, id, i);
		world_run(w, S);
	}
	world_run(w, 10 * S);
	assert_int_equal(world_events(w, "hang.suspected"), 1);
	assert_int_equal(world_job(w, id)->hang.stage, HANG_SUSPECTED);
	return id;
}

static void finds(const struct rank_recorder *k, const char *text, int64_t rank)
{
	struct world w;
	int64_t id = suspected(&w, k);
	const struct job_hang *h = &world_job(&w, id)->hang;

	if (!mo_streq(h->recorder, text))
		fail_msg("it is said: %s\nnot: %s", h->recorder ? h->recorder : "-",
			 text ? text : "-");
	assert_int_equal(h->rank, rank);
	world_done(&w);
}

static void who_has_not_joined_is_named(void **state)
{
	const struct rank_recorder k[] = { waits_in(0, &reduces), waits_in(1, &reduces),
					   waits_in(2, &reduces), waits_not(3, "0=780 1=260") };
	struct world w;
	int64_t id = suspected(&w, k);
	const struct job *j = world_job(&w, id);

	assert_int_equal(j->hang.rank, 3);
	assert_string_equal(j->hang.text + strcspn(j->hang.text, ":"),
			    ": rank 3 on n1 has not joined all_reduce #781 of default_pg");
	world_why_has(&w, id,
		      "flight recorders: rank 3 on n1 has not joined all_reduce #781 of "
		      "default_pg, in which 3 ranks wait for 6");
	world_why_has(&w, id, "at train_step (train.py:120)");
	/* nothing follows from it: the quarter of an hour of what spins */
	world_run(&w, 60 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	world_run(&w, 40 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 3);
	world_done(&w);
}

/* Not the one that is missing in a collective because it waits in another. */
static void the_end_of_the_chain_is_named(void **state)
{
	const struct rank_recorder k[] = {
		waits_in(0, &reduces),
		waits_in(1, &reduces),
		{ .rank = 2, .enqueued = NAME("0=780 1=260"), .waits = &exchanges, .n_waits = 1 },
		waits_not(3, "0=780 1=259")
	};

	finds(k, "rank 3 on n1 has not joined all_reduce #781 of default_pg", 3);
}

static void what_all_have_called_names_nobody(void **state)
{
	const struct rank_recorder k[] = { waits_in(0, &reduces), waits_in(1, &reduces),
					   waits_in(2, &reduces), waits_in(3, &reduces) };

	finds(k, "all ranks have called all_reduce #781 of default_pg, which does not end",
	      MO_NONE);
}

static void a_gpu_that_has_not_come_to_it_is_named(void **state)
{
	struct recorder_wait started = reduces;
	const struct rank_recorder k[] = { waits_in(0, &started), waits_in(1, &reduces),
					   waits_in(2, &started), waits_in(3, &started) };

	started.started = true;
	finds(k, "the GPU of rank 1 on n0 has not come to all_reduce #781 of default_pg", 1);
}

static void calls_that_differ_are_named(void **state)
{
	struct recorder_wait other = reduces, larger = reduces;
	const struct rank_recorder k[] = { waits_in(0, &reduces), waits_in(1, &other),
					   waits_in(2, &reduces), waits_in(3, &reduces) };
	const struct rank_recorder sizes[] = { waits_in(0, &reduces), waits_in(1, &reduces),
					       waits_in(2, &larger), waits_in(3, &larger) };

	other.op = NAME("broadcast");
	larger.sizes = NAME("8192 Float");
	finds(k,
	      "ranks differ in #781 of default_pg: rank 0 calls all_reduce 4096 Float at "
	      "train_step (train.py:120), rank 1 calls broadcast 4096 Float at train_step "
	      "(train.py:120)",
	      1);
	finds(sizes,
	      "ranks differ in #781 of default_pg: rank 0 calls all_reduce 4096 Float at "
	      "train_step (train.py:120), rank 2 calls all_reduce 8192 Float at train_step "
	      "(train.py:120)",
	      MO_NONE);
}

/* One that is stopped leaves no dump. */
static void who_does_not_answer_may_be_it(void **state)
{
	const struct rank_recorder k[] = { waits_in(0, &reduces),
					   { .rank = 1, .silent = NAME("no dump came") },
					   waits_in(2, &reduces),
					   waits_in(3, &reduces) };

	finds(k,
	      "rank 1 on n0, whose flight recorder does not answer, may not have joined "
	      "all_reduce #781 of default_pg",
	      1);
}

static void where_nobody_waits_that_is_said(void **state)
{
	const struct rank_recorder k[] = { waits_not(0, "0=781"), waits_not(1, "0=781"),
					   waits_not(2, "0=781"), waits_not(3, "0=781") };

	finds(k, "no rank waits in a collective", MO_NONE);
}

static void a_recv_without_its_send_is_named(void **state)
{
	struct recorder_wait recv = { .group = NAME("2"),
				      .desc = NAME("PIPELINE"),
				      .members = NAME("1,3"),
				      .op = NAME("recv 0<-1"),
				      .seq = 9,
				      .age_ms = 5000,
				      .p2p = true };
	struct recorder_wait send = recv;
	const struct rank_recorder k[] = { waits_not(0, "0=781"), waits_in(1, &recv),
					   waits_not(2, "0=781"), waits_not(3, "0=781") };
	const struct rank_recorder both[] = { waits_in(0, &reduces), waits_in(1, &recv),
					      waits_not(2, "0=781"), waits_in(3, &send) };

	send.op = NAME("send 1->0");
	finds(k, "rank 3 on n1 has not called send 1->0 for recv 0<-1 #9 of PIPELINE", 3);
	/* these two meet; ranks 1 to 3 were in #781 before */
	finds(both, "all ranks have called all_reduce #781 of default_pg, which does not end",
	      MO_NONE);
}

/* Who is stopped stands out by itself, whatever the others wait for. */
static void one_that_is_stopped_comes_first(void **state)
{
	const struct rank_recorder k[] = { waits_in(0, &reduces), waits_in(1, &reduces),
					   waits_in(2, &reduces), waits_not(3, "0=780 1=260") };
	struct world w;
	int64_t id = suspected(&w, k);

	w.toys[0].moves[1].state = PROCESS_STOPPED; /* rank 1 */
	world_run(&w, 100 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 1);
	world_done(&w);
}

/* What was said before the last iteration is of another time. */
static void older_words_do_not_count(void **state)
{
	const struct rank_recorder k[] = { waits_in(0, &reduces), waits_in(1, &reduces),
					   waits_in(2, &reduces), waits_not(3, "0=780 1=260") };
	struct world w;
	int64_t id = suspected(&w, k);

	assert_int_equal(world_job(&w, id)->hang.rank, 3);
	w.toys[0].n_recorders = w.toys[1].n_recorders = 0;
	world_iteration(&w, 0, id, 26);
	world_run(&w, 2 * S);
	assert_int_equal(world_events(&w, "hang.cleared"), 1);
	world_run(&w, 60 * S);
	assert_int_equal(world_job(&w, id)->hang.stage, HANG_SUSPECTED);
	assert_null(world_job(&w, id)->hang.recorder);
	assert_int_equal(world_job(&w, id)->hang.rank, MO_NONE);
	world_done(&w);
}

static void hostile_words_lead_nowhere(void **state)
{
	struct recorder_wait w = reduces, p = reduces;
	const struct rank_recorder k[] = {
		{ .rank = 0, .enqueued = NAME("0=x =1 0= 0=781"), .waits = &w, .n_waits = 1 },
		{ .rank = 1, .waits = &p, .n_waits = 1 },
		{ .rank = 99, .enqueued = NAME("0=1") },
		{ .rank = -1 }
	};

	w.members = NAME("0-65535");
	p.op = NAME("recv 9999999<-");
	p.p2p = true;
	finds(k, "nothing is known of who is missing in all_reduce #781 of default_pg", MO_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_not_joined_is_named),
		cmocka_unit_test(the_end_of_the_chain_is_named),
		cmocka_unit_test(what_all_have_called_names_nobody),
		cmocka_unit_test(a_gpu_that_has_not_come_to_it_is_named),
		cmocka_unit_test(calls_that_differ_are_named),
		cmocka_unit_test(who_does_not_answer_may_be_it),
		cmocka_unit_test(where_nobody_waits_that_is_said),
		cmocka_unit_test(a_recv_without_its_send_is_named),
		cmocka_unit_test(one_that_is_stopped_comes_first),
		cmocka_unit_test(older_words_do_not_count),
		cmocka_unit_test(hostile_words_lead_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
