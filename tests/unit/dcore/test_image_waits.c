/* Nodes that are kept for a job until they have its image: an account of its own, and a part of its
 * own of each restart. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>

#include "daemon/core/view/report.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void have(struct world *w, bool yes)
{
	for (size_t i = 0; i < w->n_toys; i++) {
		struct image_report *r = &w->toys[i].image;

		mo_desc_init(&image_report_desc, r);
		r->digest = (char *)A;
		r->ready = yes;
	}
}

/* Nodes with two GPUs that bring images, and a job that needs those of two of them. */
static int64_t begin_on(struct world *w, size_t nodes, int64_t spares)
{
	struct submit spec;

	world_init(w, nodes, 2);
	for (size_t i = 0; i < nodes; i++) {
		w->toys[i].brings = w->toys[i].images = true;
		snprintf(w->toys[i].instance, sizeof(w->toys[i].instance), "again-%zu", i);
		world_hello(w, i);
	}
	have(w, false);
	world_run(w, S);
	world_recipe(&spec, 4);
	spec.recipe.spares = spares;
	spec.recipe.engine.container = mo_desc_new(&recipe_container_desc);
	spec.recipe.engine.container->image = mo_strdup("r/a:v1");
	int64_t id = world_submit(w, &spec);

	mo_desc_done(&submit_desc, &spec);
	return id;
}

static int64_t begin(struct world *w)
{
	return begin_on(w, 2, 0);
}

/* GPU-seconds of the whole account as the report shows it, which must close. */
static struct report_seconds seconds(struct world *w, int64_t id)
{
	struct report_view v;

	mo_desc_init(&report_view_desc, &v);
	job_report(core_state(w->core), world_job(w, id), w->now, &v);
	struct report_seconds s = v.gpu_seconds;

	mo_desc_done(&report_view_desc, &v);
	assert_true(s.total == s.productive + s.image + s.launch + s.init + s.load + s.recompute +
				       s.save + s.hang + s.detect + s.drain + s.idle);
	return s;
}

static void kept_nodes_are_no_queue(void **state)
{
	struct world w;
	int64_t id = begin(&w);

	world_run(&w, 10 * S);
	struct report_seconds s = seconds(&w, id);

	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_true(s.image >= 36 && s.queue <= 4);
	world_crash(&w); /* it is recorded */
	assert_true(seconds(&w, id).image >= 36);
	world_run(&w, 3 * S);
	have(&w, true);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	s = seconds(&w, id);
	world_run(&w, 5 * S);
	assert_true(seconds(&w, id).image == s.image);
	world_done(&w);
}

/* It has the image before a node is lost: the job that moves there waits for none. */
static void a_spare_has_the_image_before(void **state)
{
	struct world w;
	int64_t id = begin_on(&w, 3, 1);

	have(&w, true);
	w.toys[2].image.ready = false;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(world_node(&w, 2)->spare.job, id);
	assert_int_equal(w.toys[2].n_ordered, 1);
	assert_string_equal(w.toys[2].ordered[0].digest, A);
	world_why_has(&w, id, "node n2: checked, its image is not there yet");
	world_crash(&w);
	world_run(&w, 5 * S);
	assert_int_equal(w.toys[2].n_ordered, 1);
	/* it is there, and stays wanted: nothing removes it for room */
	w.toys[2].image.ready = true;
	world_run(&w, 5 * S);
	world_why_has(&w, id, "node n2: checked, its image is there");
	assert_int_equal(w.toys[2].n_ordered, 1);
	world_verb(&w, IN_CANCEL, id);
	world_run(&w, 5 * S);
	assert_int_equal(w.toys[2].n_ordered, 0);
	world_done(&w);
}

/* Who waits for its own nodes comes first, and pull_parallel holds. */
static void a_spare_comes_behind_jobs(void **state)
{
	struct world w;
	int64_t id = begin_on(&w, 3, 1);

	w.core->config.pull_parallel = 1;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_QUEUED);
	assert_int_equal(w.toys[2].n_ordered, 0); /* none is kept yet */
	w.toys[0].image.ready = w.toys[1].image.ready = true;
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RUNNING);
	assert_int_equal(w.toys[2].n_ordered, 1);
	/* the spare's takes the one place that there is; when it has it others are asked */
	w.toys[2].image.ready = true;
	world_run(&w, 5 * S);
	assert_int_equal(w.core->n_pulling, 0);
	world_done(&w);
}

static void a_restart_has_it_as_a_part(void **state)
{
	struct world w;
	int64_t id = begin(&w);

	have(&w, true);
	world_run(&w, 5 * S);
	world_iteration(&w, 0, id, 1);
	world_run(&w, S);
	double before = seconds(&w, id).image;

	have(&w, false);
	world_exit(&w, 0, id, 0, 1, MO_NONE);
	world_run(&w, 20 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_true(world_job(&w, id)->image.waits);
	have(&w, true);
	world_run(&w, 5 * S);
	const struct job *j = world_job(&w, id);

	assert_int_equal(j->run.n_places, 2);
	const struct waterfall *f = &j->incidents[0].waterfall;

	assert_true(f->image >= 10000 && f->image <= 25000);
	assert_true(f->place >= 0 && f->place < 5000);
	assert_true(f->launch >= 0 && f->launch < 5000);
	double charged = seconds(&w, id).image - before, shown = (double)f->image * 4 / 1000;

	assert_true(charged - shown < 0.01 && shown - charged < 0.01);
	world_done(&w);
}

/* A reason that reads the same, of an image that is refused: nothing is kept for it then. */
static void refused_keeps_nothing(void **state)
{
	struct world w;
	int64_t id = begin(&w);

	have(&w, true);
	world_run(&w, 5 * S);
	have(&w, false);
	world_exit(&w, 0, id, 0, 1, MO_NONE);
	world_run(&w, 10 * S);
	assert_true(world_job(&w, id)->image.waits);
	w.toys[0].image.refused = true;
	w.toys[0].image.error = (char *)"it is gone";
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, id)->state, JOB_RECOVERING);
	assert_false(world_job(&w, id)->image.waits);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_nodes_are_no_queue),
		cmocka_unit_test(a_spare_has_the_image_before),
		cmocka_unit_test(a_spare_comes_behind_jobs),
		cmocka_unit_test(a_restart_has_it_as_a_part),
		cmocka_unit_test(refused_keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
