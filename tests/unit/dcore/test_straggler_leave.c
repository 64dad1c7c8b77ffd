/* recovery.straggler: drain: when a job leaves the node of the rank that makes it slow, and all
 * that keeps it where it is. */
#include "tests/unit/dcore/world.h"

#define STEP 200.0
#define GRACE 10

static struct world w;
static int64_t id;

/* Four ranks on nodes of two GPUs. */
static void begin_without(const char *node, size_t nodes, const char *straggler, int64_t steps)
{
	struct submit spec;

	world_init(&w, nodes, 2);
	world_recipe(&spec, 4);
	spec.recipe.steps = steps;
	if (node)
		mo_strs_add(&spec.recipe.exclude, &spec.recipe.n_exclude, node);
	spec.recipe.hang = mo_strdup("off");
	spec.recipe.straggler = mo_strdup(straggler);
	spec.recipe.checkpoint.dir = mo_strdup("/ckpt");
	spec.recipe.stop_grace_us = GRACE * S;
	spec.engine.layout.announced_is_complete = true;
	mo_strs_add(&spec.engine.resume, &spec.engine.n_resume, "--load={iteration}");
	id = world_submit(&w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(&w, 5 * S);
}

static void begin_as(size_t nodes, const char *straggler, int64_t steps)
{
	begin_without(NULL, nodes, straggler, steps);
}

static void begin(void)
{
	begin_as(3, "drain", 100000);
}

static size_t toy_of(int64_t rank)
{
	const struct job *j = world_job(&w, id);

	for (size_t i = 0; i < w.n_toys; i++)
		if (mo_streq(j->run.ranks[rank].node, w.toys[i].name))
			return i;
	fail_msg("no node of rank %lld", (long long)rank);
	return 0;
}

/* One iteration a second; slow takes twice as long as its peers. */
static void train(int64_t from, int64_t to, int64_t slow)
{
	for (int64_t i = from; i <= to && world_job(&w, id)->run.n_places; i++) {
		struct toy_step *s = world_toy_step(&w, toy_of(0), id);

		world_iteration(&w, toy_of(0), id, i);
		s->notes[s->n_notes - 1].sample->step_ms = STEP * (slow < 0 ? 1 : 2);
		for (size_t t = 0; t < w.n_toys; t++)
			w.toys[t].n_progress = 0;
		for (int64_t k = 0; k < 4; k++) {
			struct toy *toy = &w.toys[toy_of(k)];

			toy->progress[toy->n_progress++] =
				(struct rank_progress){ .rank = k,
							.iteration = i,
							.step_ms = STEP * (k == slow ? 2 : 1) +
								   (double)((i + k) % 5),
							.busy_ms = MO_NONE_F,
							.phase = PHASE_TRAIN };
		}
		world_run(&w, S);
	}
	for (size_t t = 0; t < w.n_toys; t++)
		w.toys[t].n_progress = 0;
}

static void save(int64_t iteration)
{
	struct note *n = world_note(&w, toy_of(0), id, NOTE_CHECKPOINT);

	n->iteration = iteration;
	n->path = mo_printf("/ckpt/%lld", (long long)iteration);
	world_found(&w, iteration, true);
	world_run(&w, 10 * S);
}

static int64_t attempt(void)
{
	return world_job(&w, id)->attempt;
}

static void stays(const char *why)
{
	assert_int_equal(attempt(), 1);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	world_why_has(&w, id, why);
	save(500);
	assert_int_equal(attempt(), 1);
	assert_false(world_event_seen(&w, "straggler.left"));
	assert_int_equal(world_cordoned(&w), 0);
	world_done(&w);
}

static void it_leaves_at_its_next_checkpoint(void **state)
{
	begin();
	train(1, 120, 3);
	assert_int_equal(attempt(), 1);
	world_why_has(&w, id, "moves to another node as soon as its next checkpoint is complete");
	save(120);
	assert_int_equal(attempt(), 2);
	assert_int_equal(world_job(&w, id)->restarts, 0);
	assert_int_equal(world_job(&w, id)->run.resume, 120);
	assert_string_equal(world_job(&w, id)->run.ranks[3].node, "n2");
	assert_int_equal(world_events(&w, "straggler.left"), 1);
	assert_int_equal(world_cordoned(&w), 1);
	assert_string_equal(world_node(&w, 1)->drain.cordon, "straggler j-1");
	assert_true(world_job(&w, id)->straggler.found[0].left);
	world_crash(&w);
	train(121, 200, -1);
	save(200);
	assert_int_equal(attempt(), 2);
	world_done(&w);
}

static void it_is_asked_for(void **state)
{
	begin_as(3, "report", 100000);
	train(1, 120, 3);
	save(120);
	assert_int_equal(attempt(), 1);
	assert_int_equal(world_cordoned(&w), 0);
	world_done(&w);
}

/* As long as it has cost less than the restart does. */
static void a_restart_must_be_worth_it(void **state)
{
	begin();
	train(1, 40, 3);
	stays("and a restart costs up to");
	begin_as(3, "drain", 130);
	train(1, 120, 3);
	stays("ahead it would win");
}

static void a_checkpoint_of_before_is_none(void **state)
{
	begin();
	train(1, 3, -1);
	save(3);
	train(4, 120, 3);
	assert_int_equal(attempt(), 1);
	world_done(&w);
}

/* With so many iterations to make anew it waits for the next one. */
static void what_is_lost_behind_a_checkpoint_counts(void **state)
{
	begin();
	train(1, 40, 3);
	save(40);
	train(41, 300, 3);
	assert_int_equal(attempt(), 1);
	save(300);
	assert_int_equal(attempt(), 2);
	world_done(&w);
}

static void nobody_moves_without_room(void **state)
{
	begin_as(2, "drain", 100000);
	train(1, 120, 3);
	stays("there is no room for it without n1");
	/* nor to where others wait to go */
	begin();
	world_submit_gpus(&w, 4);
	train(1, 120, 3);
	stays("j-2 waits for GPUs, and would get them first");
	/* nor more often than the cap of cordons allows */
	begin_as(4, "drain", 100000);
	world_tells(&w, 3);
	world_finding(&w, 3, "gpu.hot", CHECK_CRIT, ACTION_CORDON);
	train(1, 120, 3);
	assert_int_equal(world_cordoned(&w), 1);
	world_why_has(&w, id, "as many nodes are cordoned already");
	save(120);
	assert_int_equal(attempt(), 1);
	world_done(&w);
}

static void who_drains_it_says_when(void **state)
{
	begin();
	train(1, 120, 3);
	world_node_verb(&w, IN_DRAIN, 1, "idle");
	stays("n1 is drained already (idle)");
}

/* What a rank does makes it slow wherever it is. */
static void the_same_rank_again_is_no_node(void **state)
{
	begin_as(4, "drain", 100000);
	train(1, 120, 3);
	save(120);
	assert_int_equal(attempt(), 2);
	world_node_verb(&w, IN_UNDRAIN, 1, NULL);
	train(121, 300, 3);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	world_why_has(&w, id, "rank 3 was as slow on n1: it is what the rank does, no node");
	save(300);
	assert_int_equal(attempt(), 2);
	world_done(&w);
}

/* A verdict that is wrong each time ends by its number, and begins anew the next day. */
static void wrong_verdicts_end(void **state)
{
	int64_t at = 0;

	begin_as(8, "drain", 100000);
	for (int64_t k = 0; k < 4; k++, at += 300) {
		train(at + 1, at + 200, k);
		save(at + 200);
		for (size_t i = 0; i < w.n_toys; i++)
			if (world_node(&w, i)->drain.asked)
				world_node_verb(&w, IN_UNDRAIN, i, NULL);
	}
	assert_int_equal(attempt(), 4);
	assert_int_equal(world_job(&w, id)->straggler.rank, 3);
	world_why_has(&w, id, "it has left 3 nodes within a day");
	world_done(&w);
}

static void excludes_nobody(struct core *c)
{
	const struct job *j = job_find(&c->owned, id);

	j->spec.recipe.exclude[0][0] = 'x';
}

/* A search costs a pass over all nodes: not in each turn. That it has room now, nobody was told. */
static void room_is_searched_when_something_changed(void **state)
{
	begin_without("n2", 3, "drain", 100000);
	train(1, 120, 3);
	save(120);
	assert_int_equal(attempt(), 1);
	world_why_has(&w, id, "room is searched again when nodes change");
	excludes_nobody(w.core);
	excludes_nobody(w.shadow);
	train(121, 130, 3);
	assert_int_equal(attempt(), 1);
	assert_int_equal(world_submit_gpus(&w, 6), 2); /* it is judged, and waits */
	world_verb(&w, IN_CANCEL, 2);
	train(131, 135, 3);
	world_run(&w, 10 * S);
	assert_int_equal(attempt(), 2);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_leaves_at_its_next_checkpoint),
		cmocka_unit_test(it_is_asked_for),
		cmocka_unit_test(a_restart_must_be_worth_it),
		cmocka_unit_test(a_checkpoint_of_before_is_none),
		cmocka_unit_test(what_is_lost_behind_a_checkpoint_counts),
		cmocka_unit_test(nobody_moves_without_room),
		cmocka_unit_test(room_is_searched_when_something_changed),
		cmocka_unit_test(who_drains_it_says_when),
		cmocka_unit_test(the_same_rank_again_is_no_node),
		cmocka_unit_test(wrong_verdicts_end),
	};

	return cmocka_run_group_tests_name("dcore/straggler_leave", tests, NULL, NULL);
}
