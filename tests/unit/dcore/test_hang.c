/* A hang is suspected, confirmed and cleared by what moves, and by nothing else: each way in which
 * a job that is well looks like one that hangs, and what then is said of it. */
#include "tests/unit/dcore/world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* of the tests that wait long: a tenth, as the least times are */
#define MINUTE (6 * S)
#define MOVES INT64_MAX

/* What a rank does that computes, or spins in a collective: nothing but that. */
static const struct toy_motion spins = { 0, 0, MOVES, MO_NONE, PROCESS_RUNS };

static int64_t submit_as(struct world *w, const char *hang, int64_t ranks)
{
	struct submit spec;
	int64_t id;

	world_recipe(&spec, ranks);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup(hang);
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	return id;
}

static int64_t start(struct world *w, size_t nodes, int64_t ranks, const char *hang)
{
	world_init(w, nodes, ranks / (int64_t)nodes);
	for (size_t i = 0; i < nodes; i++) {
		w->toys[i].tells_motion = true;
		for (size_t k = 0; k < ELEMENTSOF(w->toys[i].moves); k++)
			w->toys[i].moves[k] = spins;
	}
	return submit_as(w, hang, ranks);
}

static int64_t start_fast(struct world *w, size_t nodes, int64_t ranks, const char *hang)
{
	int64_t id = start(w, nodes, ranks, hang);

	w->core->config.hang_percent = 10;
	return id;
}

/* One iteration a second. */
static void train(struct world *w, int64_t id, int64_t from, int64_t to)
{
	for (int64_t i = from; i <= to; i++) {
		world_iteration(w, 0, id, i);
		world_run(w, S);
	}
}

static void all_ranks(struct world *w, struct toy_motion m)
{
	for (size_t i = 0; i < w->n_toys; i++)
		for (size_t k = 0; k < ELEMENTSOF(w->toys[i].moves); k++)
			w->toys[i].moves[k] = m;
}

static void phase(struct world *w, int64_t id, int phase)
{
	world_note(w, 0, id, NOTE_PHASE)->phase = phase;
	world_run(w, S);
}

static void expect(const struct world *w, size_t suspected, size_t confirmed, size_t cleared)
{
	assert_int_equal(world_events(w, "hang.suspected"), suspected);
	assert_int_equal(world_events(w, "hang.confirmed"), confirmed);
	assert_int_equal(world_events(w, "hang.cleared"), cleared);
}

static bool evidence_has(const struct world *w, int64_t id, const char *text)
{
	const struct incident *inc = &world_job(w, id)->incidents[0];

	for (size_t i = 0; i < inc->n_evidence; i++)
		if (strstr(inc->evidence[i], text))
			return true;
	return false;
}

static void a_stopped_rank_is_named_and_the_attempt_ends(void **state)
{
	struct world w;
	int64_t id = start(&w, 2, 4, "auto"), before;
	const struct incident *inc;

	train(&w, id, 1, 25);
	before = world_job(&w, id)->ledger[GPU_HANG];
	w.toys[1].moves[1].state = PROCESS_STOPPED; /* rank 3 */
	w.toys[1].moves[1].cpu_at = w.now;
	world_run(&w, 8 * S);
	expect(&w, 0, 0, 0);
	world_run(&w, 4 * S);
	expect(&w, 1, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_why_has(&w, id, "overdue");
	world_run(&w, 20 * S);
	expect(&w, 1, 0, 0); /* two kinds say it, for half a minute */
	world_run(&w, 15 * S);
	expect(&w, 1, 1, 0);
	assert_true(world_count(&w, 0, CMD_STOP) > 0 && world_count(&w, 1, CMD_STOP) > 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->restarts, 1);
	inc = &world_job(&w, id)->incidents[0];
	assert_string_equal(inc->class, "hang");
	assert_string_equal(inc->cause, "hang");
	assert_int_equal(inc->first_rank, 3);
	assert_string_equal(inc->node, "n1");
	world_why_has(&w, id, "rank 3 stood out");
	assert_false(world_why_says(&w, id, "fabric check"));
	assert_true(evidence_has(&w, id, "rank 3 on n1 is stopped by a signal"));
	assert_true(evidence_has(&w, id, "no rank wrote to its log"));
	assert_true(evidence_has(&w, id, "ranks: 3 collective-stuck, 1 host-stuck"));
	/* four GPUs, since anything moved */
	assert_in_range(world_job(&w, id)->ledger[GPU_HANG] - before, 4 * 29 * S, 4 * 45 * S);
	world_done(&w);
}

static void ends_by_abort(struct world *w, size_t toy, int64_t id, int64_t rank,
			  const char *const *calls)
{
	struct note *n = world_note(w, toy, id, NOTE_EXIT);

	n->rank = rank;
	n->signal = SIGABRT;
	n->cause = mo_strdup("stopped");
	mo_strs_add(&n->tail, &n->n_tail, "Fatal Python error: Aborted");
	if (calls)
		mo_strs_add(&n->tail, &n->n_tail, "Current thread 0x7f (most recent call first):");
	for (; calls && *calls; calls++)
		mo_strs_add(&n->tail, &n->n_tail, *calls);
}

/* They are asked where they stand before they are killed; who stands alone comes first. */
static void the_ranks_say_where_they_stood(void **state)
{
	static const char *const waits[] = {
		"  File \"/opt/venv/lib/python3.12/site-packages/torch/c10d.py\", line 2806 in "
		"reduce",
		"  File \"/opt/venv/lib/python3.12/site-packages/torch/c10d.py\", line 81 in "
		"wrapper",
		"  File \"/work/megatron/training.py\", line 512 in train_step",
		"  File \"/work/pretrain.py\", line 9 in <module>", NULL
	};
	static const char *const reads[] = { "  File \"/work/data.py\", line 7 in next_batch",
					     "  File \"/work/pretrain.py\", line 8 in <module>",
					     NULL };
	struct world w;
	int64_t id = start_fast(&w, 2, 8, "auto");
	const struct command *last;

	train(&w, id, 1, 25);
	w.toys[1].moves[1].state = PROCESS_STOPPED;
	w.no_kill = true;
	world_run(&w, 60 * S);
	expect(&w, 1, 1, 0);
	for (size_t toy = 0; toy < 2; toy++) {
		assert_int_equal(world_count(&w, toy, CMD_KILL), 0);
		last = &w.toys[toy].log[w.toys[toy].n_log - 1];
		assert_int_equal(last->kind, CMD_STOP);
		assert_int_equal(last->signal, SIGABRT);
		assert_in_range(last->grace_us, S, 10 * S);
	}
	world_exit(&w, 1, id, 7, 1, MO_NONE); /* its peer is gone */
	for (int64_t rank = 0; rank < 7; rank++)
		ends_by_abort(&w, (size_t)rank / 4, id, rank,
			      rank == 5   ? NULL
			      : rank == 2 ? reads
					  : waits);
	w.no_kill = false;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_string_equal(world_job(&w, id)->incidents[0].class, "hang");
	assert_true(evidence_has(&w, id, "rank 2 stood in next_batch (data.py:7)"));
	assert_true(evidence_has(&w, id, "ranks 5, 7 did not say where"));
	assert_true(evidence_has(&w, id,
				 "ranks 0-1, 3-4, 6 stood in reduce (c10d.py:2806), called by "
				 "train_step (training.py:512)"));
	world_done(&w);
}

/* An agent that knows nothing of hangs is told to kill. */
static void an_older_agent_kills_at_once(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	w.no_kill = true;
	world_run(&w, 16 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].kind, CMD_STOP);
	w.toys[0].tells_motion = false;
	world_run(&w, 2 * S);
	assert_int_equal(w.toys[0].log[w.toys[0].n_log - 1].kind, CMD_KILL);
	world_done(&w);
}

/* A program that spins says nothing: an evaluation of its own does the same. */
static void spinning_alone_takes_a_quarter_of_an_hour(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	world_run(&w, 14 * MINUTE);
	expect(&w, 1, 0, 0);
	world_run(&w, 2 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	/* one of the two tells its iterations: the other is not behind */
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, MO_NONE);
	world_why_has(&w, id, "moectl fabric check RECIPE --job j-1");
	world_done(&w);
}

static void cards(struct world *w, int64_t net_at)
{
	struct toy_motion m = spins;

	m.net_at = net_at;
	all_ranks(w, m);
}

/* Cards that stand still say more than logs; those that move are no hang. */
static void the_network_tells_spinning_from_computing(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 2, 4, "auto");

	train(&w, id, 1, 25);
	cards(&w, MOVES);
	world_run(&w, 60 * MINUTE);
	expect(&w, 1, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	cards(&w, w.now);
	world_run(&w, 9 * MINUTE); /* code that is compiled anew */
	expect(&w, 1, 0, 0);
	world_run(&w, 2 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_true(evidence_has(&w, id, "RDMA and XGMI: no card of a rank moved anything for 6"));
	world_done(&w);
}

/* Two hours, as an evaluation that is announced. */
static void what_polls_is_ended_in_the_end(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 2, 4, "auto");

	train(&w, id, 1, 25);
	cards(&w, MOVES);
	world_run(&w, 118 * MINUTE);
	expect(&w, 1, 0, 0);
	world_run(&w, 4 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_true(evidence_has(&w, id, "cards of ranks move something"));
	assert_false(evidence_has(&w, id, "no card of a rank"));
	world_done(&w);
}

/* It sends by sockets, or nothing between its iterations: that its cards stand still says nothing,
 * nor that those of one rank cannot be read. */
static void cards_that_are_not_used_say_nothing(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct world w;
		int64_t id = start_fast(&w, 2, 4, "auto"), began = w.now;

		train(&w, id, 1, 100);
		cards(&w, i ? w.now : began);
		if (i)
			w.toys[1].moves[1].net_at = MO_NONE;
		world_run(&w, 14 * MINUTE);
		expect(&w, 1, 0, 0);
		world_run(&w, 2 * MINUTE);
		expect(&w, 1, 1, 0);
		assert_false(evidence_has(&w, id, "no card of a rank"));
		world_done(&w);
	}
}

static void compiling_may_say_nothing_for_twenty_minutes(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	phase(&w, id, PHASE_TRAIN);
	world_run(&w, 20 * MINUTE);
	expect(&w, 1, 0, 0);
	train(&w, id, 1, 3);
	expect(&w, 1, 0, 1);
	/* the second step compiles another shape */
	world_run(&w, 20 * MINUTE);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* A job that started before takes no longer for it than three times as long, or a third of what is
 * given to one of which nothing is known; nor does it compile for ever. */
static void a_start_is_known_by_those_before(void **state)
{
	static const struct {
		int64_t state, minutes;
	} rows[] = {
		{ PROCESS_STOPPED, 30 }, /* 10, and twice that since it was looked at */
		{ PROCESS_RUNS, 70 },    /* spins: 10 and an hour */
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct world w;
		int64_t id = start_fast(&w, 1, 2, "auto");

		world_run(&w, MINUTE);
		train(&w, id, 1, 25);
		assert_int_equal(world_job(&w, id)->progress.longest_start_us, MO_NONE);
		world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
		world_run(&w, S);
		assert_int_equal(world_job(&w, id)->attempt, 2);
		assert_in_range(world_job(&w, id)->progress.longest_start_us, MINUTE,
				MINUTE + 2 * S);
		w.toys[0].moves[1].state = rows[i].state;
		world_run(&w, (rows[i].minutes - 1) * MINUTE);
		expect(&w, 1, 0, 0);
		world_run(&w, 2 * MINUTE);
		expect(&w, 1, 1, 0);
		world_done(&w);
	}
}

/* The controller's clock was set back while it started: it did not take no time. */
static void a_start_across_a_clock_that_is_set_back(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	w.now -= 10 * MINUTE;
	train(&w, id, 1, 25);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->progress.longest_start_us, MO_NONE);
	world_done(&w);
}

/* Its caches may be cold on another node. */
static void another_node_may_compile_again(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	world_exit(&w, 0, id, 1, MO_NONE, SIGKILL);
	world_run(&w, S);
	phase(&w, id, PHASE_TRAIN);
	all_ranks(&w, (struct toy_motion){ 0, 0, MOVES, 0, PROCESS_RUNS }); /* nor does a card */
	world_run(&w, 20 * MINUTE);
	train(&w, id, 26, 28);
	world_run(&w, 20 * MINUTE);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

/* What compiles uses processors; what does not is none. */
static void a_first_step_that_sleeps_is_a_hang(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	phase(&w, id, PHASE_TRAIN);
	all_ranks(&w, (struct toy_motion){ 0, 0, 0, MO_NONE, PROCESS_RUNS });
	world_run(&w, 44 * MINUTE);
	expect(&w, 1, 0, 0);
	world_run(&w, 3 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

/* Its peers spin, which may be compiling as well: but nobody compiles who is stopped. */
static void a_rank_that_is_stopped_compiles_nothing(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	phase(&w, id, PHASE_TRAIN);
	w.toys[0].moves[1].state = PROCESS_STOPPED;
	world_run(&w, 29 * MINUTE);
	expect(&w, 1, 0, 0);
	world_run(&w, 20 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, 1);
	world_done(&w);
}

static void a_save_may_take_half_an_hour(void **state)
{
	struct world w;
	struct toy_motion writes = spins;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	phase(&w, id, PHASE_SAVE);
	writes.io_at = MOVES;
	w.toys[0].moves[0] = writes;
	world_run(&w, 29 * MINUTE);
	expect(&w, 0, 0, 0);
	world_run(&w, 120 * MINUTE);
	expect(&w, 1, 0, 0); /* it is asked, and writes */
	phase(&w, id, PHASE_TRAIN);
	train(&w, id, 26, 28);
	expect(&w, 1, 0, 1);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void an_evaluation_may_take_an_hour(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	phase(&w, id, PHASE_EVAL);
	world_run(&w, 59 * MINUTE);
	expect(&w, 0, 0, 0);
	phase(&w, id, PHASE_TRAIN);
	/* and one that it does not announce, but of which it prints */
	all_ranks(&w, (struct toy_motion){ MOVES, 0, MOVES, MO_NONE, PROCESS_RUNS });
	world_run(&w, 60 * MINUTE);
	expect(&w, 1, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* A pause as long as one that was survived is none, whatever is seen in it. */
static void what_it_survived_it_may_do_again(void **state)
{
	static const int states[] = { PROCESS_RUNS, PROCESS_STOPPED };

	for (size_t i = 0; i < ELEMENTSOF(states); i++) {
		struct world w;
		struct toy_motion still = { 0, 0, 0, MO_NONE, states[i] };
		int64_t id = start(&w, 1, 2, "auto");

		train(&w, id, 1, 25);
		world_run(&w, 120 * S); /* spins */
		train(&w, id, 26, 150);
		all_ranks(&w, still);
		world_run(&w, 180 * S);
		assert_int_equal(world_events(&w, "hang.confirmed"), 0);
		world_run(&w, 120 * S);
		assert_int_equal(world_events(&w, "hang.confirmed"), 1);
		world_done(&w);
	}
}

static void a_disk_may_hang_for_minutes(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	all_ranks(&w, (struct toy_motion){ 0, 0, 0, MO_NONE, PROCESS_WAITS });
	world_run(&w, 15 * MINUTE);
	expect(&w, 1, 0, 0);
	all_ranks(&w, spins);
	train(&w, id, 26, 28);
	expect(&w, 1, 0, 1);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void a_rank_that_moves_contradicts_one_that_is_stopped(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	w.toys[0].moves[1].log_at = MOVES;
	world_run(&w, 60 * MINUTE);
	expect(&w, 1, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* It said once that it is far ahead: what it prints from then on is no iteration, and moves. */
static void a_rank_that_lies_about_its_iteration_is_not_ended(void **state)
{
	struct world w;
	int64_t id = start(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	world_iteration(&w, 0, id, 1LL << 40);
	world_run(&w, S);
	w.toys[0].moves[0].log_at = MOVES;
	train(&w, id, 26, 300);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void move_clock(struct world *w, int64_t by)
{
	w->now += by;
	world_step(w, &(struct core_input){ .type = IN_CLOCK,
					    .clock = &(struct in_clock){
						    .boot_id = (char *)"boot",
						    .boottime_us = w->now,
						    .shift_us = by,
					    } });
}

static void a_clock_that_jumps_is_no_hang(void **state)
{
	struct world w;
	int64_t id = start(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	move_clock(&w, 86400 * S);
	train(&w, id, 26, 40);
	move_clock(&w, -86400 * S);
	train(&w, id, 41, 60);
	expect(&w, 0, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* Nobody heard of what moved meanwhile. */
static void a_controller_that_was_away_begins_to_wait_anew(void **state)
{
	struct world w;
	int64_t id = start(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	world_tick(&w, 0);
	w.now += 3600 * S;
	world_crash(&w);
	world_hello(&w, 0);
	world_run(&w, 9 * S);
	expect(&w, 0, 0, 0);
	world_run(&w, 60 * S);
	assert_int_equal(world_events(&w, "hang.confirmed"), 1);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	world_done(&w);
}

static void a_silent_node_is_not_judged(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 2, 4, "auto");

	train(&w, id, 1, 25);
	w.toys[1].deaf = true;
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	world_run(&w, 60 * MINUTE);
	assert_int_equal(world_events(&w, "hang.confirmed"), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* Its agent died and is back before it looked again: while nobody told, ranks computed on. */
static void what_nobody_told_is_no_rest(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	world_run(&w, 20 * S);
	expect(&w, 1, 0, 0);
	w.toys[0].deaf = true;
	world_run(&w, 4 * S);
	w.toys[0].watched_since = 0;
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "again");
	w.toys[0].beat = 0;
	world_hello(&w, 0);
	world_tick(&w, S / 2);
	w.toys[0].deaf = false;
	world_run(&w, 10 * S);
	expect(&w, 1, 0, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* What moves on a node whose agent does not tell is not known. */
static void without_motion_it_is_only_told(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 2, 4, "auto");

	w.toys[1].tells_motion = false;
	train(&w, id, 1, 25);
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	world_run(&w, 60 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_count(&w, 1, CMD_MOTION), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	assert_non_null(strstr(world_job(&w, id)->hang.text, "nothing follows"));
	world_done(&w);
}

/* A node that cannot be read says nothing for a hang either. */
static void what_cannot_be_read_is_no_evidence(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	train(&w, id, 1, 25);
	all_ranks(&w, (struct toy_motion){ MO_NONE, MO_NONE, MO_NONE, MO_NONE, -1 });
	world_run(&w, 60 * MINUTE);
	expect(&w, 1, 1, 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void report_counts_its_wrong_verdicts(void **state)
{
	struct world w;
	int64_t id = start(&w, 1, 2, "report");

	train(&w, id, 1, 25);
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	world_run(&w, 60 * S);
	expect(&w, 1, 1, 0);
	world_why_has(&w, id, "rank 0 on n0 is host-stuck");
	assert_int_equal(world_job(&w, id)->attempt, 1);
	w.toys[0].moves[0].state = PROCESS_RUNS;
	train(&w, id, 26, 40);
	expect(&w, 1, 1, 1);
	assert_int_equal(world_job(&w, id)->hang.n_confirmed, 1);
	assert_int_equal(world_job(&w, id)->hang.n_wrong, 1);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

static void off_says_nothing(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "off");

	train(&w, id, 1, 25);
	w.toys[0].moves[0].state = PROCESS_STOPPED;
	world_run(&w, 120 * MINUTE);
	expect(&w, 0, 0, 0);
	assert_int_equal(world_count(&w, 0, CMD_MOTION), 0);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* It may sleep for a day, and be well. */
static void a_program_that_never_tells_is_not_ended(void **state)
{
	struct world w;
	int64_t id = start_fast(&w, 1, 2, "auto");

	all_ranks(&w, (struct toy_motion){ 0, 0, 0, MO_NONE, PROCESS_RUNS });
	world_run(&w, 6 * 60 * MINUTE);
	assert_int_equal(world_job(&w, id)->attempt, 1);
	world_done(&w);
}

/* The ranks of another attempt, and of another node, are not its business. */
static void rank_two_lags(int64_t lag, int64_t first_rank)
{
	struct world w;
	int64_t id = start_fast(&w, 2, 4, "auto");
	struct agent_sync sync;

	train(&w, id, 1, 25);
	cards(&w, w.now);
	for (int64_t i = 0; i < 90 && world_job(&w, id)->attempt == 1; i++) {
		for (size_t t = 0; t < 2; t++) {
			struct step_report *rep;

			mo_desc_init(&agent_sync_desc, &sync);
			sync.node = mo_strdup(w.toys[t].name);
			sync.boot_id = mo_strdup(w.toys[t].boot);
			sync.instance = mo_strdup(w.toys[t].instance);
			sync.epoch = core_state(w.core)->epoch;
			sync.beat = ++w.toys[t].beat;
			sync.motion = true;
			rep = MO_ADD(&sync, steps, &step_report_desc);
			rep->job = id;
			rep->attempt = 1;
			rep->state = STEP_RUNNING;
			rep->written = w.toys[t].steps[0].written;
			for (int64_t k = 0; k < 2; k++) {
				struct rank_progress *p =
					MO_ADD(rep, progress, &rank_progress_desc);

				p->rank = 2 * (int64_t)t + k;
				p->iteration = p->rank == 2 ? 25 - lag : 25;
			}
			world_step(&w, &(struct core_input){
					       .type = IN_SYNC,
					       .sync = &(struct in_sync){ .message = &sync } });
			mo_desc_done(&agent_sync_desc, &sync);
		}
		world_run(&w, S);
	}
	assert_int_equal(world_job(&w, id)->attempt, 2);
	assert_int_equal(world_job(&w, id)->incidents[0].first_rank, first_rank);
	world_done(&w);
}

static void who_is_behind_stands_out(void **state)
{
	rank_two_lags(1, 2);
	/* what trains together is not ten iterations apart: it told of its saves alone */
	rank_two_lags(10, MO_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_rank_is_named_and_the_attempt_ends),
		cmocka_unit_test(the_ranks_say_where_they_stood),
		cmocka_unit_test(an_older_agent_kills_at_once),
		cmocka_unit_test(spinning_alone_takes_a_quarter_of_an_hour),
		cmocka_unit_test(the_network_tells_spinning_from_computing),
		cmocka_unit_test(what_polls_is_ended_in_the_end),
		cmocka_unit_test(cards_that_are_not_used_say_nothing),
		cmocka_unit_test(compiling_may_say_nothing_for_twenty_minutes),
		cmocka_unit_test(a_start_is_known_by_those_before),
		cmocka_unit_test(a_start_across_a_clock_that_is_set_back),
		cmocka_unit_test(another_node_may_compile_again),
		cmocka_unit_test(a_first_step_that_sleeps_is_a_hang),
		cmocka_unit_test(a_rank_that_is_stopped_compiles_nothing),
		cmocka_unit_test(a_save_may_take_half_an_hour),
		cmocka_unit_test(an_evaluation_may_take_an_hour),
		cmocka_unit_test(what_it_survived_it_may_do_again),
		cmocka_unit_test(a_disk_may_hang_for_minutes),
		cmocka_unit_test(a_rank_that_moves_contradicts_one_that_is_stopped),
		cmocka_unit_test(a_rank_that_lies_about_its_iteration_is_not_ended),
		cmocka_unit_test(a_clock_that_jumps_is_no_hang),
		cmocka_unit_test(a_controller_that_was_away_begins_to_wait_anew),
		cmocka_unit_test(a_silent_node_is_not_judged),
		cmocka_unit_test(what_nobody_told_is_no_rest),
		cmocka_unit_test(without_motion_it_is_only_told),
		cmocka_unit_test(what_cannot_be_read_is_no_evidence),
		cmocka_unit_test(report_counts_its_wrong_verdicts),
		cmocka_unit_test(off_says_nothing),
		cmocka_unit_test(a_program_that_never_tells_is_not_ended),
		cmocka_unit_test(who_is_behind_stands_out),
	};

	return cmocka_run_group_tests_name("dcore/hang", tests, NULL, NULL);
}
