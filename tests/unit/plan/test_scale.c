/* Scaling at a fixed global batch, and reliability: closed forms against published figures and against a simulation of failures. */
#include <math.h>
#include <string.h>
#include "tests/unit/unit.h"

#include "lib/plan/plan.h"

static void close_to(double value, double expected, double fraction)
{
	if (fabs(value - expected) > fraction * fabs(expected))
		fail_msg("%g is not within %g %% of %g", value, fraction * 100, expected);
}

/* Mean time to failure of Meta's RSC-1: 1.8 h on 16,384 GPUs, 0.23 h on 131,072 (Kokolis et al. 2024). */
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
			double at = plan_daly_s(save, mttfs[i]), taken = plan_ettr(at, save, 300, mttfs[i]);

			for (double f = 0.5; f < 2; f *= 1.1)
				assert_true(plan_ettr(at * f, save, 300, mttfs[i]) < taken * 1.001);
		}
}

/* A job that works, saves, fails at random and restarts, failures during restarts included; a fixed generator. */
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
				left = -mttf * log(((double)(seed >> 11) + 0.5) / 9007199254740992.0);
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
	static const struct { double interval, save, restart, mttf; } rows[] = { { 600, 10, 300, 86400 }, { 600, 30, 300, 6500 }, { 300, 30, 300, 800 }, { 60, 5, 60, 300 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		close_to(plan_ettr(rows[i].interval, rows[i].save, rows[i].restart, rows[i].mttf), simulated(rows[i].interval, rows[i].save, rows[i].restart, rows[i].mttf), 0.01);
	assert_true(plan_ettr(600, 10, 60, 6500) > plan_ettr(600, 10, 300, 6500));
}

/* 1,024 nodes, 6.5 failures per 1000 node-days, repairs of 3 days: 28 spares for 95 % (P(X <= 28) = 0.966). */
static void test_spares(void **state)
{
	assert_int_equal(plan_spares(1024 * 6.5e-3 * 3, 0.95), 28);
	assert_int_equal(plan_spares(1e-9, 0.95), 0);
	assert_int_equal(plan_spares(0.5, 0.99), 3);
	int64_t many = plan_spares(5000, 0.95);          /* normal: 5000 + 1.645 sqrt(5000) = 5116 */

	assert_in_range(many, 5110, 5122);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_daly_and_young), cmocka_unit_test(test_interval_is_best), cmocka_unit_test(test_ettr), cmocka_unit_test(test_spares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
