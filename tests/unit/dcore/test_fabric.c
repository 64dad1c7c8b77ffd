/* What a check of the fabric found is a fact of the job, which why tells. */
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_view.h"
#include "tests/unit/dcore/world.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "daemon/core/state/fabric_check.h"

static void add_odd(struct fabric_result *f, const char *node, const char *peer,
		    const char *evidence)
{
	struct fabric_odd *o = MO_ADD(f, odd, &fabric_odd_desc);

	o->node = mo_strdup(node);
	o->peer = mo_strdup(peer);
	o->evidence = mo_strdup(evidence);
}

static void add_point(struct fabric_result *f, int64_t bytes, double gbs)
{
	struct fabric_point *p = MO_ADD(f, curve, &fabric_point_desc);

	*p = (struct fabric_point){ bytes, gbs };
}

/* 5 nodes, of which one is slow, and a link. */
static void slow(struct fabric_result *f)
{
	mo_desc_init(&fabric_result_desc, f);
	f->verdict = FABRIC_ODD;
	f->nodes = 5;
	f->all_gbs = 60;
	f->pair_gbs = 300;
	add_odd(f, "n2", NULL, "60.0 GB/s with n0 (j-8)");
	add_odd(f, "n3", "n4", "61.0 GB/s (j-9)");
	add_point(f, 1048576, 40);
	add_point(f, 67108864, 60);
}

static void fine(struct fabric_result *f)
{
	mo_desc_init(&fabric_result_desc, f);
	f->verdict = FABRIC_FINE;
	f->nodes = 2;
}

static int told(struct world *w, int64_t id, struct fabric_result *f)
{
	struct core_input in;

	core_input_init(&in, IN_FABRIC);
	in.by.user = mo_strdup("ann");
	in.fabric = mo_desc_new(&in_fabric_desc);
	in.fabric->job = id;
	mo_desc_copy(&fabric_result_desc, &in.fabric->found, f);
	world_step(w, &in);
	mo_desc_done(&core_input_desc, &in);
	mo_desc_done(&fabric_result_desc, f);
	return w->reply_status;
}

static void it_is_a_fact_of_the_job(void **state)
{
	struct world w;
	struct fabric_result f;
	struct job_view v;
	int64_t id;

	world_init(&w, 1, 2);
	id = world_submit_running(&w, 2, 5);
	slow(&f);
	assert_int_equal(told(&w, id, &f), 200);
	assert_int_equal(world_events(&w, "fabric.odd"), 1);
	assert_int_equal(world_job(&w, id)->fabric->time, w.now);
	world_why_has(&w, id,
		      "fabric check over 5 nodes: n2, the link between n3 and n4 stand out; "
		      "pairs reach 300.0 GB/s, all together 60.0 GB/s");
	world_why_has(&w, id, "told by ann at");
	world_why_has(&w, id, "n2: 60.0 GB/s with n0 (j-8)");
	world_why_has(&w, id, "n3 with n4: 61.0 GB/s (j-9)");
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING); /* nothing follows */
	world_crash(&w);
	world_run(&w, S);
	world_why_has(&w, id, "n2: 60.0 GB/s with n0 (j-8)");
	mo_desc_init(&job_view_desc, &v);
	job_view(core_state(w.core), world_job(&w, id), w.now, &v);
	assert_int_equal(v.fabric->found.n_curve, 2);
	assert_true(v.fabric->found.curve[1].gbs == 60);
	mo_desc_done(&job_view_desc, &v);
	/* the newest counts */
	fine(&f);
	assert_int_equal(told(&w, id, &f), 200);
	assert_int_equal(world_events(&w, "fabric.fine"), 1);
	assert_int_equal(world_job(&w, id)->fabric->found.n_odd, 0);
	world_why_has(&w, id, "fabric check over 2 nodes: no node and no link stands out");
	fine(&f);
	assert_int_equal(told(&w, 99, &f), 404);
	world_done(&w);
}

/* A hang in which no rank stood out, that ended the job. */
static int64_t hangs(struct world *w)
{
	static const struct toy_motion spins = { 0, 0, INT64_MAX, MO_NONE, PROCESS_RUNS };
	struct submit spec;
	int64_t id;

	world_init(w, 1, 2);
	w->core->config.hang_percent = 10;
	w->toys[0].tells_motion = true;
	for (size_t k = 0; k < ELEMENTSOF(w->toys[0].moves); k++)
		w->toys[0].moves[k] = spins;
	world_recipe(&spec, 2);
	spec.recipe.steps = 100000;
	spec.recipe.hang = mo_strdup("auto");
	id = world_submit(w, &spec);
	mo_desc_done(&submit_desc, &spec);
	world_run(w, S);
	for (int64_t i = 1; i <= 25; i++) {
		world_iteration(w, 0, id, i);
		world_run(w, S);
	}
	world_run(w, 110 * S);
	assert_int_equal(world_job(w, id)->attempt, 2);
	assert_string_equal(world_job(w, id)->incidents[0].class, "hang");
	assert_int_equal(world_job(w, id)->incidents[0].first_rank, MO_NONE);
	return id;
}

static bool next_says(const struct world *w, int64_t id, const char *text)
{
	struct why_view v;
	bool says;

	mo_desc_init(&why_view_desc, &v);
	job_why(core_state(w->core), world_job(w, id), w->now, &v);
	says = strstr(v.next, text) != NULL;
	mo_desc_done(&why_view_desc, &v);
	return says;
}

static void a_hang_without_a_cause_wants_one(void **state)
{
	struct world w;
	struct fabric_result f;
	int64_t id = hangs(&w);

	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	world_next_has(&w, id,
		       "if it hangs again, 'moectl pause j-1', then 'moectl fabric check "
		       "RECIPE --job j-1'");
	world_verb(&w, IN_PAUSE, id);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_PAUSED);
	world_next_has(&w, id, "'moectl fabric check RECIPE --job j-1' looks");
	fine(&f);
	told(&w, id, &f);
	world_next_has(&w, id, "moectl resume");
	assert_false(next_says(&w, id, "fabric check")); /* it was looked into */
	world_done(&w);
}

static void problem(struct fabric_result *f, const char *words)
{
	_cleanup_(mo_freep) char *text = fabric_result_problem(f);

	mo_desc_done(&fabric_result_desc, f);
	if (!words)
		assert_null(text);
	else if (!text || !strstr(text, words))
		fail_msg("it says: %s", text ? text : "nothing");
}

static void what_is_no_result(void **state)
{
	struct fabric_result f;

	slow(&f);
	problem(&f, NULL);
	fine(&f);
	problem(&f, NULL);
	fine(&f);
	f.verdict = -1;
	problem(&f, "verdict: say fine, odd");
	fine(&f);
	f.nodes = 1025;
	problem(&f, "nodes: must be from 1 to 1024");
	fine(&f);
	f.nodes = MO_NONE;
	problem(&f, "nodes: must be");
	fine(&f);
	f.all_gbs = -1;
	problem(&f, "all_gbs, pair_gbs: must be from 0");
	fine(&f);
	f.pair_gbs = NAN;
	problem(&f, "all_gbs, pair_gbs: must be from 0");
	fine(&f);
	f.verdict = FABRIC_ODD;
	problem(&f, "odd: nodes and links stand here");
	fine(&f);
	add_odd(&f, "n1", NULL, "slow");
	problem(&f, "odd: nodes and links stand here");
	slow(&f);
	add_odd(&f, "n1", "n1", "slow");
	problem(&f, "odd[2]: name its node");
	slow(&f);
	add_odd(&f, "n1\nnext  nothing to do", NULL, "slow");
	problem(&f, "odd[2]: name its node");
	slow(&f);
	add_odd(&f, NULL, NULL, "slow");
	problem(&f, "odd[2]: name its node");
	slow(&f);
	add_odd(&f, "n1", NULL, NULL);
	problem(&f, "odd[2]: evidence");
	slow(&f);
	add_point(&f, 67108864, 1);
	problem(&f, "curve[2]: bytes: sizes must ascend");
	slow(&f);
	add_point(&f, 67108865, INFINITY);
	problem(&f, "curve[2]: gbs: must be");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_a_fact_of_the_job),
		cmocka_unit_test(a_hang_without_a_cause_wants_one),
		cmocka_unit_test(what_is_no_result),
	};

	return cmocka_run_group_tests_name("dcore/fabric", tests, NULL, NULL);
}
