/* What only beats tell: it is read through the state, belongs to one attempt, and no record knows
 * of it. */
#include "tests/unit/unit.h"

#include "daemon/core/core.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/live.h"

#define S 1000000LL

static struct job *job_add(struct core *c, int64_t id, size_t ranks)
{
	struct job *j = MO_INSERT(&c->owned, jobs, c->owned.n_jobs, &job_desc);

	j->id = id;
	j->attempt = 1;
	j->progress.at = 10 * S;
	for (size_t i = 0; i < ranks; i++)
		MO_ADD(&j->run, ranks, &rank_desc)->iteration = 5;
	return j;
}

static void rank_is(const struct core *c, const struct job *j, size_t rank, int64_t iteration,
		    double step_ms)
{
	int64_t is;
	double ms;

	rank_progress_of(&c->state, j, rank, &is, &ms);
	assert_int_equal(is, iteration);
	assert_true(ms == step_ms);
}

static void a_beat_is_seen_and_not_stored(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	struct job *j = job_add(c, 7, 2);

	assert_int_equal(job_progress_at(&c->state, j), 10 * S);
	assert_true(core_beat(c, j, 1, 8, 250, 20 * S));
	assert_int_equal(job_progress_at(&c->state, j), 20 * S);
	rank_is(c, j, 0, 5, MO_NONE_F);
	rank_is(c, j, 1, 8, 250);
	assert_int_equal(j->progress.at, 10 * S);
	assert_int_equal(j->run.ranks[1].iteration, 5);
	assert_true(j->run.ranks[1].step_ms == MO_NONE_F);
	(void)state;
}

static void only_what_advances_moves_the_job(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	struct job *j = job_add(c, 7, 1);

	assert_false(core_beat(c, j, 0, 5, 300, 20 * S));
	assert_int_equal(job_progress_at(&c->state, j), 10 * S);
	assert_true(core_beat(c, j, 0, 6, MO_NONE_F, 30 * S));
	assert_false(core_beat(c, j, 0, 6, MO_NONE_F, 40 * S));
	assert_int_equal(job_progress_at(&c->state, j), 30 * S);
	rank_is(c, j, 0, 6, 300);
	/* a record that tells more, and later, is believed */
	j->run.ranks[0].iteration = 9;
	j->run.ranks[0].step_ms = 100;
	j->progress.at = 50 * S;
	rank_is(c, j, 0, 9, 100);
	assert_int_equal(job_progress_at(&c->state, j), 50 * S);
	(void)state;
}

static void another_attempt_begins_without(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	struct job *j = job_add(c, 7, 2);

	core_beat(c, j, 0, 80, 250, 20 * S);
	j->attempt = 2;
	rank_is(c, j, 0, 5, MO_NONE_F);
	assert_int_equal(job_progress_at(&c->state, j), 10 * S);
	assert_true(core_beat(c, j, 0, 6, MO_NONE_F, 30 * S));
	rank_is(c, j, 0, 6, MO_NONE_F);
	(void)state;
}

/* In whatever order they are heard first. */
static void each_job_has_its_own(void **state)
{
	static const int64_t ids[] = { 3, 9, 5, 1 };
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);

	for (int64_t id = 0; id < 10; id++)
		job_add(c, id, 1);
	for (size_t i = 0; i < ELEMENTSOF(ids); i++)
		assert_true(core_beat(c, job_find(&c->state, ids[i]), 0, 100 + ids[i], MO_NONE_F,
				      (20 + ids[i]) * S));
	core_beats_drop(c, 5);
	core_beats_drop(c, 6);
	for (int64_t id = 0; id < 10; id++) {
		bool heard = id == 1 || id == 3 || id == 9;
		const struct job *j = job_find(&c->state, id);

		rank_is(c, j, 0, heard ? 100 + id : 5, MO_NONE_F);
		assert_int_equal(job_progress_at(&c->state, j), heard ? (20 + id) * S : 10 * S);
	}
	(void)state;
}

static void node_add(struct core *c, const char *name, int64_t time)
{
	struct record r;

	record_init(&r, REC_NODE);
	r.hello->said.node = mo_strdup(name);
	r.hello->said.boot_id = mo_strdup(name);
	r.time = time;
	assert_int_equal(core_update(c, &r), 0);
	mo_desc_done(&record_desc, &r);
}

static int64_t heard(const struct core *c, const char *name)
{
	return node_heard_at(&c->state, node_find(&c->state, name));
}

static void nodes_keep_theirs_when_others_come(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	struct state copy;

	node_add(c, "n5", 10 * S);
	node_add(c, "n9", 20 * S);
	node_add(c, "n1", 30 * S);
	node_add(c, "n7", 40 * S);
	assert_int_equal(heard(c, "n5"), 10 * S);
	assert_int_equal(heard(c, "n9"), 20 * S);
	assert_int_equal(heard(c, "n1"), 30 * S);
	assert_int_equal(heard(c, "n7"), 40 * S);
	/* of a copy nothing was heard */
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, &c->state);
	assert_int_equal(node_heard_at(&copy, copy.nodes[0]), 0);
	mo_desc_done(&state_desc, &copy);
	(void)state;
}

static void they_move_with_the_clock(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default);
	struct job *j = job_add(c, 7, 1);

	node_add(c, "n1", 10 * S);
	core_beat(c, j, 0, 8, MO_NONE_F, 20 * S);
	job_add(c, 8, 1);
	core_beat(c, job_find(&c->state, 8), 0, 1, MO_NONE_F, 20 * S); /* advances nothing */
	core_live_shift(c, 100 * S);
	assert_int_equal(heard(c, "n1"), 110 * S);
	assert_int_equal(job_progress_at(&c->state, job_find(&c->state, 7)), 120 * S);
	assert_int_equal(job_progress_at(&c->state, job_find(&c->state, 8)), 10 * S);
	(void)state;
}

/* A state that comes from elsewhere: nobody is silent because of what was not heard here. */
static void a_loaded_state_was_heard_at_its_last_record(void **state)
{
	_cleanup_(core_freep) struct core *c = core_new(&core_config_default),
					  *other = core_new(&core_config_default);
	struct state copy;

	node_add(c, "n1", 10 * S);
	node_add(c, "n2", 30 * S);
	core_beat(c, job_add(c, 7, 1), 0, 8, MO_NONE_F, 20 * S);
	mo_desc_init(&state_desc, &copy);
	mo_desc_copy(&state_desc, &copy, &c->state);
	core_load(other, &copy);
	assert_int_equal(heard(other, "n1"), 30 * S);
	assert_int_equal(heard(other, "n2"), 30 * S);
	rank_is(other, job_find(&other->state, 7), 0, 5, MO_NONE_F);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_beat_is_seen_and_not_stored),
		cmocka_unit_test(only_what_advances_moves_the_job),
		cmocka_unit_test(another_attempt_begins_without),
		cmocka_unit_test(each_job_has_its_own),
		cmocka_unit_test(nodes_keep_theirs_when_others_come),
		cmocka_unit_test(they_move_with_the_clock),
		cmocka_unit_test(a_loaded_state_was_heard_at_its_last_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
