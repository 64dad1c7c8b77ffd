/* Scaling at a fixed global batch, and reliability: closed forms against published figures and
 * against a simulation of failures. */
#include <math.h>
#include <string.h>
#include "lib/plan/options.h"
#include "tests/unit/unit.h"

#include "lib/plan/plan_desc.h"
#include "lib/plan/reliability.h"
#include "lib/plan/shape.h"
#include "lib/recipe/model_file.h"

static void close_to(double value, double expected, double fraction)
{
	if (fabs(value - expected) > fraction * fabs(expected))
		fail_msg("%g is not within %g %% of %g", value, fraction * 100, expected);
}

/* Mean time to failure of Meta's RSC-1: 1.8 h on 16,384 GPUs, 0.23 h on 131,072 (Kokolis et al.
 * 2024). */
static void test_daly_and_young(void **state)
{
	double mttf = 86400 / (2048 * 6.5e-3);

	close_to(mttf / 3600, 1.8, 0.02);
	close_to(plan_young_s(10, 86400), sqrt(2 * 10 * 86400.0), 1e-12);
	close_to(plan_daly_s(10, 86400), sqrt(2 * 10 * 86400.0) - 10, 0.01);
	close_to(plan_daly_s(1000, 400), 400, 1e-9);
}

/* Daly's interval is the best one to within a tenth of a percent of useful time. */
static void test_interval_is_best(void **state)
{
	static const double mttfs[] = { 600, 3600, 86400 };

	for (size_t i = 0; i < ELEMENTSOF(mttfs); i++)
		for (double save = 1; save < mttfs[i] / 4; save *= 4) {
			double at = plan_daly_s(save, mttfs[i]),
			       taken = plan_ettr(at, save, 300, mttfs[i]);

			for (double f = 0.5; f < 2; f *= 1.1)
				assert_true(plan_ettr(at * f, save, 300, mttfs[i]) < taken * 1.001);
		}
}

/* A job that works, saves, fails at random and restarts, failures during restarts included; a fixed
 * generator. */
static double simulated(double interval, double save, double restart, double mttf)
{
	uint64_t seed = 88172645463325252;
	double time = 0, useful = 0, left = 0;

	for (int segment = 0; segment < 200000; segment++)
		for (bool restarting = false;;) {
			double need = restarting ? restart : interval + save;

			if (left == 0) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				left = -mttf *
				       log(((double)(seed >> 11) + 0.5) / 9007199254740992.0);
			}
			if (left > need) {
				left -= need;
				time += need;
				if (!restarting) {
					useful += interval;
					break;
				}
				restarting = false;
				continue;
			}
			time += left;
			left = 0;
			restarting = true;
		}
	return useful / time;
}

static void test_ettr(void **state)
{
	static const struct {
		double interval, save, restart, mttf;
	} rows[] = { { 600, 10, 300, 86400 },
		     { 600, 30, 300, 6500 },
		     { 300, 30, 300, 800 },
		     { 60, 5, 60, 300 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		close_to(plan_ettr(rows[i].interval, rows[i].save, rows[i].restart, rows[i].mttf),
			 simulated(rows[i].interval, rows[i].save, rows[i].restart, rows[i].mttf),
			 0.01);
	assert_true(plan_ettr(600, 10, 60, 6500) > plan_ettr(600, 10, 300, 6500));
}

/* 1,024 nodes, 6.5 failures per 1000 node-days, repairs of 3 days: 28 spares for 95 % (P(X <= 28) =
 * 0.966). */
static void test_spares(void **state)
{
	assert_int_equal(plan_spares(1024 * 6.5e-3 * 3, 0.95), 28);
	assert_int_equal(plan_spares(1e-9, 0.95), 0);
	assert_int_equal(plan_spares(0.5, 0.99), 3);
	/* normal: 5000 + 1.645 sqrt(5000) = 5116 */
	int64_t many = plan_spares(5000, 0.95);

	assert_in_range(many, 5110, 5122);
}

static void test_spares_that_are_kept(void **state)
{
	struct gpu_type gpu = { .domain_gpus = 8 };
	const struct shape s = { .gpu = &gpu, .gpus = 48 };
	struct plan_reliability r;

	mo_desc_init(&plan_reliability_desc, &r);
	reliability_spares(&s, 0, &r);
	assert_int_equal(r.kept_nodes, MO_NONE);
	reliability_spares(&s, 2, &r);
	assert_int_equal(r.kept_nodes, 2);
	assert_int_equal(r.kept_gpus, 16);
	close_to(r.kept_share, 0.25, 1e-9);
	gpu.domain_gpus = 72; /* a rack is not a node */
	reliability_spares(&s, 1, &r);
	assert_int_equal(r.kept_gpus, 8);
	close_to(plan_spares_share(0, 48), 0, 1e-9);
	mo_desc_done(&plan_reliability_desc, &r);
}

/* What the user says of failures replaces what is assumed, all of it. */
static void test_failures_given(void **state)
{
	struct recipe_model m;
	struct mo_error err = { 0 };
	struct plan_failures f;
	struct gpu_type gpu = { .domain_gpus = 8 };
	struct plan_reliability is, given;

	mo_desc_init(&recipe_model_desc, &m);
	assert_int_equal(model_load("moe-2t", &m, &err), 0);
	const struct shape s = { .model = &m, .gpu = &gpu, .gpus = 8192 };

	mo_desc_init(&plan_reliability_desc, &is);
	mo_desc_init(&plan_reliability_desc, &given);
	reliability_of(&s, 10, &(struct plan_failures){ 0 }, &is);
	close_to(is.failures_per_day, 1024 * 6.5e-3, 1e-9);
	assert_int_equal(is.spare_nodes, 28);
	assert_true(is.restarts[0].restart_s == 300 && is.restarts[0].gpu_hours_per_day == 0 &&
		    is.restarts[0].ettr == is.ettr);
	for (size_t i = 1; i < is.n_restarts; i++)
		assert_true(is.restarts[i].restart_s < is.restarts[i - 1].restart_s &&
			    is.restarts[i].ettr > is.restarts[i - 1].ettr);
	assert_int_equal(plan_failures_parse("rate=13,restart=30s,repair=1d,spares=99.9%,save=10",
					     &f, &err),
			 0);
	reliability_of(&s, 10, &f, &given);
	close_to(given.failures_per_day, 1024 * 13e-3, 1e-9);
	assert_int_equal(given.spare_nodes, plan_spares(1024 * 13e-3, 0.999));
	close_to(given.checkpoint_every_s, plan_daly_s(10, 86400 / (1024 * 13e-3)), 1e-9);
	close_to(given.ettr, plan_ettr(given.checkpoint_every_s, 10, 30, 86400 / (1024 * 13e-3)),
		 1e-9);
	assert_true(given.n_restarts == 2 && given.restarts[0].restart_s == 30 &&
		    given.restarts[1].restart_s == 10);
	assert_non_null(strstr(given.notes[0], "13 failures per 1000 node-days, a save blocks 10 s "
					       "(as given), a restart takes 30 s"));
	mo_desc_done(&plan_reliability_desc, &is);
	mo_desc_done(&plan_reliability_desc, &given);
	mo_desc_done(&recipe_model_desc, &m);
}

static void test_failures_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "", "nothing is none of rate=" },
		{ "rate", "rate is none of" },
		{ "speed=3", "speed is none of" },
		{ "rate=0", "rate=0: must be failures per 1000" },
		{ "rate=nan", "rate=nan" },
		{ "rate=1e300", "rate=1e300" },
		{ "restart=0s", "restart=0s: must be a time" },
		{ "restart=-5s", "restart=-5s" },
		{ "repair=soon", "repair=soon" },
		{ "spares=100%", "spares=100%" },
		{ "spares=0", "spares=0" },
		{ "spares=inf", "spares=inf" },
		{ "save=1e99d", "save=1e99d" },
		{ "rate=1,,save=1", "nothing is none of" },
	};
	struct plan_failures f = { .rate = 7 };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct mo_error err = { 0 };

		assert_true(plan_failures_parse(rows[i].text, &f, &err) < 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("'%s': %s", rows[i].text, err.text);
		mo_error_done(&err);
	}
	assert_true(f.rate == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_daly_and_young),
		cmocka_unit_test(test_interval_is_best),
		cmocka_unit_test(test_ettr),
		cmocka_unit_test(test_spares),
		cmocka_unit_test(test_spares_that_are_kept),
		cmocka_unit_test(test_failures_refused),
		cmocka_unit_test(test_failures_given),
		cmocka_unit_test(test_failures_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
