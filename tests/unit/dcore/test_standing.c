/* What no iteration explains is not productive: of a job whose ranks stand, while they stand, after
 * they went on, and when they never did. */
#include "tests/unit/dcore/world.h"

#include <signal.h>

#include "daemon/core/view/report.h"

/* One iteration each second; the median of them is one second. */
static int64_t trained(struct world *w, int64_t gpus)
{
	int64_t id;

	world_init(w, 1, gpus);
	id = world_submit_gpus(w, gpus);
	world_beat(w, 0);
	for (int64_t i = 1; i <= 20; i++) {
		world_tick(w, S);
		world_iteration(w, 0, id, i);
		world_beat(w, 0);
	}
	assert_int_equal(samples_step_us(world_job(w, id)), S);
	return id;
}

static struct report_view report(const struct world *w, int64_t id)
{
	struct report_view rep;

	mo_desc_init(&report_view_desc, &rep);
	job_report(core_state(w->core), world_job(w, id), w->now, &rep);
	const struct report_seconds *g = &rep.gpu_seconds;
	double sum = g->productive + g->launch + g->init + g->load + g->recompute + g->save +
		     g->hang + g->detect + g->drain + g->idle;
	assert_float_equal(sum, g->total, 1e-6);
	return rep;
}

static double shown_hang(const struct world *w, int64_t id)
{
	struct report_view rep = report(w, id);
	double hang = rep.gpu_seconds.hang;

	mo_desc_done(&report_view_desc, &rep);
	return hang;
}

/* Heard of all the time, and nothing comes: it is shown as it passes. */
static void stopped_ranks_are_no_progress(void **state)
{
	struct world w;
	int64_t id = trained(&w, 2), productive = world_job(&w, id)->ledger[GPU_PRODUCTIVE];

	world_run(&w, STALL_MIN_US);
	assert_float_equal(shown_hang(&w, id), 0, 1e-6);
	world_run(&w, 65 * S);
	assert_float_equal(shown_hang(&w, id), 2 * 65, 1e-6);
	world_iteration(&w, 0, id, 21);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 2 * 65 * S);
	assert_int_equal(world_job(&w, id)->ledger[GPU_PRODUCTIVE] - productive, 2 * STALL_MIN_US);
	assert_float_equal(shown_hang(&w, id), 2 * 65, 1e-6);
	world_done(&w);
}

/* The attempt ends instead: what was open within the limit was an iteration that nobody has. */
static void the_end_takes_what_was_open(void **state)
{
	struct world w;
	int64_t id = trained(&w, 2), productive = world_job(&w, id)->ledger[GPU_PRODUCTIVE];

	world_run(&w, 75 * S);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_PRODUCTIVE], productive);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 2 * (75 * S - STALL_MIN_US));
	assert_int_equal(world_job(&w, id)->ledger[GPU_DETECT], 2 * STALL_MIN_US);
	world_done(&w);
}

static void a_stop_of_standing_ranks(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1), productive = world_job(&w, id)->ledger[GPU_PRODUCTIVE];

	world_run(&w, 75 * S);
	world_verb(&w, IN_CANCEL, id);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 75 * S - STALL_MIN_US);
	assert_int_equal(world_job(&w, id)->ledger[GPU_PRODUCTIVE] - productive, STALL_MIN_US);
	world_done(&w);
}

/* Many iterations of one sample may take as long as so many of them. */
static void a_sparse_sample_explains_its_time(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_tick(&w, 40 * S);
	world_iteration(&w, 0, id, 60);
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 0);
	world_done(&w);
}

/* The first iteration of an attempt compiles; an evaluation is one; a save that was not announced
 * is told by its checkpoint. */
static void what_takes_long_for_a_reason(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1);

	world_note(&w, 0, id, NOTE_PHASE)->phase = PHASE_EVAL;
	world_beat(&w, 0);
	world_run(&w, 60 * S);
	assert_float_equal(shown_hang(&w, id), 0, 1e-6);
	world_note(&w, 0, id, NOTE_PHASE)->phase = PHASE_TRAIN;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 0);
	world_tick(&w, S);
	world_iteration(&w, 0, id, 21);
	world_beat(&w, 0);
	world_run(&w, 30 * S);
	world_note(&w, 0, id, NOTE_CHECKPOINT)->iteration = 21;
	world_beat(&w, 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_HANG], 0);
	assert_int_equal(world_job(&w, id)->ledger[GPU_SAVE], 30 * S - STALL_MIN_US);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_beat(&w, 0);
	world_beat(&w, 0);
	world_note(&w, 0, id, NOTE_PHASE)->phase = PHASE_TRAIN;
	world_beat(&w, 0);
	world_run(&w, 120 * S);
	assert_float_equal(shown_hang(&w, id), 0, 1e-6);
	world_done(&w);
}

/* Nobody waits on a GPU: it stands beside the sum. */
static void queue_is_no_gpu_time(void **state)
{
	struct report_view rep;
	struct world w;
	int64_t first = trained(&w, 2), id = world_submit_gpus(&w, 2);

	world_run(&w, 50 * S);
	rep = report(&w, id);
	assert_float_equal(rep.gpu_seconds.queue, 2 * 50, 1e-6);
	assert_float_equal(rep.gpu_seconds.total, 0, 1e-6);
	mo_desc_done(&report_view_desc, &rep);
	assert_true(first != id);
	world_done(&w);
}

static int64_t sum_of(const struct waterfall *w)
{
	return w->unfinished + w->detect + w->stop + w->place + MO_MAX(w->image, 0) + w->launch +
	       w->init + w->load + w->recompute;
}

/* What a restart took is what the ledger has beside first passes; the part that lasts is named, and
 * what it took so far is in it. */
static void a_waterfall_adds_up_to_the_ledger(void **state)
{
	struct world w;
	int64_t id = trained(&w, 2);
	const int64_t *l = world_job(&w, id)->ledger;
	int64_t before = l[GPU_LAUNCH] + l[GPU_INIT] + l[GPU_LOAD] + l[GPU_DETECT];

	world_run(&w, 40 * S);
	world_exit(&w, 0, id, 0, 0, SIGKILL);
	world_run(&w, 2 * S);
	struct report_view rep = report(&w, id);
	assert_int_equal(rep.n_incidents, 1);
	assert_non_null(rep.incidents[0].open);
	assert_int_equal(rep.restart_parts[0].n, 1);
	mo_desc_done(&report_view_desc, &rep);
	for (int64_t i = 1; i <= 25; i++) {
		world_iteration(&w, 0, id, i);
		world_run(&w, S);
		rep = report(&w, id);
		if (i == 10) {
			assert_string_equal(rep.incidents[0].open, "recompute");
			assert_true(rep.incidents[0].waterfall.recompute >= 9 * 1000);
			assert_int_equal(rep.restart_parts[8].n, 0);
		}
		mo_desc_done(&report_view_desc, &rep);
	}
	rep = report(&w, id);
	assert_null(rep.incidents[0].open);
	l = world_job(&w, id)->ledger;
	assert_int_equal(2 * sum_of(&rep.incidents[0].waterfall) * 1000,
			 l[GPU_LAUNCH] + l[GPU_INIT] + l[GPU_LOAD] + l[GPU_DETECT] +
				 l[GPU_RECOMPUTE] + l[GPU_HANG] - before);
	assert_string_equal(rep.restart_parts[rep.n_restart_parts - 1].part, "total");
	assert_int_equal(rep.restart_parts[rep.n_restart_parts - 1].p95_ms,
			 sum_of(&rep.incidents[0].waterfall));
	assert_true(rep.ettr_saving_each > rep.ettr);
	mo_desc_done(&report_view_desc, &rep);
	world_done(&w);
}

/* A bad first hour is over after the second. */
static void the_last_hour_forgets(void **state)
{
	struct world w;
	int64_t id = trained(&w, 1), i = 21;

	world_run(&w, 1800 * S);
	for (int64_t until = w.now + 3 * 3600 * S; w.now < until; i += 5) {
		world_tick(&w, 5 * S);
		world_iteration(&w, 0, id, i + 4);
		world_beat(&w, 0);
	}
	struct report_view rep = report(&w, id);
	assert_float_equal(rep.ettr_hour, 1, 1e-6);
	assert_true(rep.ettr < 0.9);
	mo_desc_done(&report_view_desc, &rep);
	assert_true(world_job(&w, id)->n_ledger_marks <= 45);
	world_run(&w, 600 * S);
	rep = report(&w, id);
	assert_true(rep.ettr_hour < 0.9 && rep.ettr_hour > 0.8);
	assert_float_equal(rep.overdue_s, 600 - STALL_MIN_US / S, 6);
	mo_desc_done(&report_view_desc, &rep);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_ranks_are_no_progress),
		cmocka_unit_test(the_end_takes_what_was_open),
		cmocka_unit_test(a_stop_of_standing_ranks),
		cmocka_unit_test(a_sparse_sample_explains_its_time),
		cmocka_unit_test(what_takes_long_for_a_reason),
		cmocka_unit_test(queue_is_no_gpu_time),
		cmocka_unit_test(a_waterfall_adds_up_to_the_ledger),
		cmocka_unit_test(the_last_hour_forgets),
	};

	return cmocka_run_group_tests_name("standing", tests, NULL, NULL);
}
