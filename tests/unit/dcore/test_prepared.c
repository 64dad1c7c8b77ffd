/* How long engine.prepare took, per node. */
#include "tests/unit/dcore/world.h"

#include <string.h>

#include "daemon/core/update/prepared.h"
#include "daemon/core/view/prepare.h"

static void reported(struct world *w, size_t toy, int64_t id, int64_t ms)
{
	world_note(w, toy, id, NOTE_RUNNING)->prepare_ms = ms;
	world_beat(w, toy);
}

static void the_slowest_comes_first(void **state)
{
	static const int64_t took[] = { 1000, 3000, 2000 };
	struct world w;

	world_init(&w, 3, 2);
	int64_t id = world_submit_gpus(&w, 6);

	world_run(&w, S);
	assert_null(prepare_view_of(world_job(&w, id)));
	for (size_t i = 0; i < 3; i++)
		reported(&w, i, id, took[i]);
	reported(&w, 0, id, 9000); /* once */
	world_crash(&w);
	struct prepare_view *v = prepare_view_of(world_job(&w, id));

	assert_int_equal(v->n_nodes, 3);
	assert_string_equal(v->nodes[0].node, "n1");
	assert_string_equal(v->nodes[2].node, "n0");
	assert_true(v->gpu_s == 12);
	assert_string_equal(v->text, "3.0 s on n1, the longest of 3 nodes; 1.0 s on n0");
	mo_desc_free(&prepare_view_desc, v);
	world_done(&w);
}

/* The next attempt has times of its own; what it costs adds up. */
static void each_attempt_has_its_own(void **state)
{
	struct world w;

	world_init(&w, 2, 2);
	int64_t id = world_submit_running(&w, 4, 3);

	reported(&w, 0, id, 500);
	world_exit(&w, 0, id, 0, 0, 9);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->attempt, 2);
	struct prepare_view *v = prepare_view_of(world_job(&w, id));

	assert_int_equal(v->n_nodes, 0);
	assert_string_equal(v->text, "not done in attempt 2");
	mo_desc_free(&prepare_view_desc, v);
	reported(&w, 1, id, 1500);
	v = prepare_view_of(world_job(&w, id));
	assert_string_equal(v->text, "1.5 s on n1");
	assert_true(v->gpu_s == 4);
	mo_desc_free(&prepare_view_desc, v);
	world_done(&w);
}

/* Of thousands of nodes the slowest are kept, and a node cannot make numbers without end. */
static void it_is_bounded(void **state)
{
	struct note n;
	struct job j;

	mo_desc_init(&note_desc, &n);
	mo_desc_init(&job_desc, &j);
	for (int64_t i = 0; i < 1000; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("n%lld", (long long)i);
		struct step st = { .node = name };
		struct place *p = MO_ADD(&j.run, places, &place_desc);

		p->node = mo_strdup(name);
		mo_ints_add(&p->gpus, &p->n_gpus, 0);
		n.prepare_ms = i % 2 ? 1000000000 : i;
		prepared_add(&j, &st, &n);
		int64_t sum = j.prepare_us;

		prepared_add(&j, &st, &n); /* also of one that is not in the list */
		assert_int_equal(j.prepare_us, sum);
	}
	assert_int_equal(j.run.n_prepared, 256);
	assert_int_equal(j.run.prepared[0].ms, 1000000000);
	assert_int_equal(j.run.prepared[255].ms, 1000000000);
	for (int64_t i = 0; i < 100000000; i += 1000000) {
		j.prepare_us = (1LL << 60) - i;
		mo_vec_clear(&prepared_desc, (void **)&j.run.prepared, &j.run.n_prepared);
		prepared_add(&j, &(struct step){ .node = j.run.places[1].node }, &n);
		assert_true(j.prepare_us > 0);
	}
	mo_desc_done(&job_desc, &j);
	mo_desc_done(&note_desc, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_comes_first),
		cmocka_unit_test(each_attempt_has_its_own),
		cmocka_unit_test(it_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
