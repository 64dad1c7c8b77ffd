/* The ledger of the last hour, day and month: what marks of it remember. */
#include "tests/unit/dcore/world.h"

#include <math.h>

#include "daemon/core/state/progress.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/view/report.h"

#define DAY (86400 * S)

static int64_t running(struct world *w)
{
	world_init(w, 1, 2);
	int64_t id = world_submit_gpus(w, 2);

	world_beat(w, 0);
	assert_int_equal(world_job(w, id)->state, JOB_RUNNING);
	return id;
}

static struct ledger_view window(const struct world *w, const struct job *j, int64_t us)
{
	struct ledger_view v;

	mo_desc_init(&ledger_view_desc, &v);
	job_ledger(core_state(w->core), j, j->ledger_at, us, &v);
	return v;
}

/* Ninety days, one minute in four saving: each window has all GPU-seconds that were charged in it,
 * begins where it should and costs few marks. */
static void a_window_has_all_that_passed_in_it(void **state)
{
	struct world w;
	int64_t id = running(&w);
	struct job *j = mo_desc_dup(&job_desc, world_job(&w, id));
	int64_t begin = j->ledger_at;

	for (int64_t i = 0; i * 60 * S < 90 * DAY; i++)
		ledger_charge_as(j, j->ledger_at + 60 * S, i % 4 ? GPU_PRODUCTIVE : GPU_SAVE);
	assert_true(j->n_ledger_marks > 60 && j->n_ledger_marks < 300);
	assert_int_equal(j->ledger_marks[0].at, j->created_at);
	for (int64_t us = 1800 * S; us < 80 * DAY; us *= 2) {
		struct ledger_view v = window(&w, j, us);
		double seconds = (double)(v.to - v.from) / 1e6;

		assert_int_equal(v.to, j->ledger_at);
		assert_true(v.to - v.from >= us);
		assert_true(v.to - v.from <= us + MO_MAX(300 * S, us / 10));
		assert_float_equal(v.gpu_seconds.total, 2 * seconds, 1e-6);
		assert_true(fabs(v.ettr - 0.75) < 0.05);
		assert_float_equal(v.gpu_seconds.productive + v.gpu_seconds.save,
				   v.gpu_seconds.total, 1e-6);
		assert_true(v.gpu_seconds.spare == MO_NONE_F);
	}
	struct ledger_view all = window(&w, j, MO_NONE), longer = window(&w, j, 400 * DAY);

	assert_int_equal(all.from, j->created_at);
	assert_int_equal(longer.from, j->created_at);
	assert_float_equal(all.gpu_seconds.total, longer.gpu_seconds.total, 1e-6);
	assert_true(all.gpu_seconds.total >= 2 * (double)(j->ledger_at - begin) / 1e6);
	mo_desc_free(&job_desc, j);
	world_done(&w);
}

/* A bad first hour is in no window that begins after it. */
static void a_window_forgets_what_was_before(void **state)
{
	struct world w;
	int64_t id = running(&w);
	struct job *j = mo_desc_dup(&job_desc, world_job(&w, id));

	for (int64_t i = 0; i < 180; i++)
		ledger_charge_as(j, j->ledger_at + 60 * S, i < 60 ? GPU_HANG : GPU_PRODUCTIVE);
	struct ledger_view hour = window(&w, j, 3600 * S), day = window(&w, j, DAY);

	assert_float_equal(hour.gpu_seconds.hang, 0, 1e-6);
	assert_float_equal(hour.ettr, 1, 1e-6);
	assert_float_equal(day.gpu_seconds.hang, 2 * 3600, 1e-6);
	assert_true(day.ettr < 0.7);
	mo_desc_free(&job_desc, j);
	world_done(&w);
}

/* One that ended keeps its last hour; time after its end is in no window. */
static void the_end_of_a_job_ends_its_window(void **state)
{
	struct world w;
	int64_t id = running(&w);
	struct job *j = mo_desc_dup(&job_desc, world_job(&w, id));

	ledger_charge_as(j, j->ledger_at + 7200 * S, GPU_PRODUCTIVE);
	j->state = JOB_COMPLETED;
	j->ended_at = j->ledger_at;
	struct ledger_view v;

	mo_desc_init(&ledger_view_desc, &v);
	job_ledger(core_state(w.core), j, j->ended_at + 30 * DAY, 60 * S, &v);
	assert_int_equal(v.to, j->ended_at);
	assert_true(v.gpu_seconds.productive > 0);
	mo_desc_free(&job_desc, j);
	world_done(&w);
}

/* Marks of a version that kept other numbers say nothing: what is known begins behind them. */
static void marks_of_before_say_nothing(void **state)
{
	struct world w;
	int64_t id = running(&w), before[_GPU_CATEGORY_N];
	struct job *j = mo_desc_dup(&job_desc, world_job(&w, id));

	mo_vec_clear(&ledger_mark_desc, (void **)&j->ledger_marks, &j->n_ledger_marks);
	assert_int_equal(ledger_until(j, j->ledger_at, before), j->created_at);
	MO_ADD(j, ledger_marks, &ledger_mark_desc)->at = j->ledger_at - 600 * S;
	assert_int_equal(ledger_until(j, j->ledger_at, before), j->created_at);
	int64_t updated = j->ledger_at;
	ledger_charge_as(j, j->ledger_at + 3600 * S, GPU_PRODUCTIVE);
	assert_int_equal(ledger_until(j, 0, before), updated);
	assert_int_equal(before[GPU_PRODUCTIVE], 0);
	mo_desc_free(&job_desc, j);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_has_all_that_passed_in_it),
		cmocka_unit_test(a_window_forgets_what_was_before),
		cmocka_unit_test(the_end_of_a_job_ends_its_window),
		cmocka_unit_test(marks_of_before_say_nothing),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
