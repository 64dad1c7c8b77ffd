/* What ranks did with processors and GPUs, in windows: what is told of which, and to whom. */
#include "agent/core/agent/activity.h"
#include "tests/unit/acore/agent_bed.h"
#include "tests/unit/unit.h"

#define SEC 1000000LL
#define W ACTIVITY_WINDOW_US

static struct activity_reading reading(int64_t cpu, int64_t delay, int64_t us, double sum)
{
	return (struct activity_reading){ .rank = 4,
					  .pid = 100,
					  .cpu_us = cpu,
					  .delay_us = delay,
					  .gpu = {
						  { us, sum }, { us, sum / 2 }, { us, 7 * sum } } };
}

static void take(struct activity_marks *m, struct activity_reading r, int64_t now)
{
	activity_take(m, &r, now);
}

static void means_of_a_window(void **state)
{
	struct activity_marks m = { 0 };

	take(&m, reading(500, 300, 10, 20), SEC);
	assert_false(activity_untold(&m)); /* since when, nobody knows */
	take(&m, reading(500 + W / 2, 300 + W / 10, 10 + W, 20 + 80.0 * W), SEC + W);
	assert_true(activity_untold(&m));
	struct rank_activity a = activity_tell(&m);
	assert_int_equal(a.rank, 4);
	assert_int_equal(a.window, 1);
	assert_true(a.cpu_pct == 50 && a.delay_pct == 10);
	assert_true(a.busy_pct == 80 && a.mem_pct == 40 && a.power_w == 560);
	assert_true(activity_untold(&m));
	m.acked = m.sent;
	assert_false(activity_untold(&m));
}

/* Threads ended, nothing can be read, the GPU was not for most of it. */
static void what_is_not_whole_is_unknown(void **state)
{
	struct activity_marks m = { 0 };

	take(&m, reading(9000, MO_NONE, 0, 0), SEC);
	take(&m, reading(8000, 300, W / 3, 50), SEC + W);
	struct rank_activity a = activity_tell(&m);
	assert_int_equal(a.window, 1);
	assert_true(a.cpu_pct == MO_NONE_F && a.delay_pct == MO_NONE_F);
	assert_true(a.busy_pct == MO_NONE_F && a.power_w == MO_NONE_F);
}

static void late_and_early_ones_begin_anew(void **state)
{
	struct activity_marks m = { 0 };
	int64_t now = SEC;

	take(&m, reading(0, 0, 0, 0), now);
	take(&m, reading(9, 9, 9, 9), now += 3 * W);
	take(&m, reading(99, 99, 99, 99), now += W / 4);
	take(&m, reading(999, 999, 999, 999), now -= SEC);
	assert_int_equal(m.now.window, 0);
	/* another process */
	struct activity_reading other = reading(2000, 2000, 2000, 2000);
	other.pid = 101;
	take(&m, other, now += W);
	assert_int_equal(m.now.window, 0);
	other.cpu_us = other.delay_us = 3000;
	take(&m, other, now += W);
	assert_int_equal(m.now.window, 1);
}

static void welcomed(struct bed *b, bool reads)
{
	struct step_ack ack = { .job = 7, .attempt = 1, .through = 0, .known = true };
	struct agent_welcome wel = {
		.epoch = 3, .beat_ms = 1000, .steps = &ack, .n_steps = 1, .activity = reads
	};

	give(b, (struct agent_event){ .type = AE_NO_ANSWER, .ok = true });
	give(b, (struct agent_event){ .type = AE_WELCOME, .welcome = &wel });
	said(b);
}

static size_t told(struct bed *b, struct rank_activity *ret)
{
	struct agent_sync s;
	size_t n;

	mo_desc_init(&agent_sync_desc, &s);
	agent_core_sync(b->core, &s);
	n = s.steps[0].n_activity;
	if (n)
		*ret = s.steps[0].activity[0];
	mo_desc_done(&agent_sync_desc, &s);
	return n;
}

static void looked(struct bed *b, int64_t at)
{
	struct activity_reading r = reading(at, at, at, (double)at);

	give(b, (struct agent_event){ .type = AE_ACTIVITY,
				      .job = 7,
				      .attempt = 1,
				      .activities = &r,
				      .n_activities = 1 });
}

static bool looks(struct bed *b)
{
	reply_full(b, true, 3, 0, NULL, 0, NULL, 0);
	return strstr(said(b), "activity:7.1") != NULL;
}

/* One of before refuses a message with a key that it does not know. */
static void who_reads_it_is_told(void **state)
{
	struct bed *b = *state;
	struct rank_activity a;

	running(b);
	said(b);
	assert_false(looks(b));
	looked(b, 0);
	b->now += W;
	looked(b, W);
	assert_int_equal(told(b, &a), 0);
	welcomed(b, true);
	assert_true(looks(b));
	assert_int_equal(told(b, &a), 1);
	assert_int_equal(a.rank, 4);
	assert_int_equal(told(b, &a), 1); /* until it is acknowledged */
	assert_false(looks(b));           /* once in a window */
	assert_int_equal(told(b, &a), 0);
	b->now += W;
	assert_true(looks(b));
	looked(b, 2 * W);
	assert_int_equal(told(b, &a), 1);
	assert_int_equal(a.window, 2);
	welcomed(b, false);
	assert_int_equal(told(b, &a), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_of_a_window),
		cmocka_unit_test(what_is_not_whole_is_unknown),
		cmocka_unit_test(late_and_early_ones_begin_anew),
		T(who_reads_it_is_told),
	};

	return cmocka_run_group_tests_name("acore/activity", tests, NULL, NULL);
}
