/* Which rank the others wait for, by what all of them do: traces of a synthetic training, made of
 * figures that were measured on two H200 (docs/measured.md: Who waits). */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "daemon/core/rules/activity_judge.h"
#include "daemon/core/state/job_straggler.h"

#define MINUTE 60000000LL
#define RANKS 32
#define PER_STAGE 16
#define STAYED 3 /* windows that a verdict lasts before it is one */

/* What happens to one rank in a window, in parts of a step that nothing happens to. */
struct fate {
	double work;    /* what its GPU has to do */
	double late;    /* its host is late, and the GPU idle */
	double threads; /* percent of a processor, of threads beside the training */
	double delay;   /* percent of the time */
};
static struct rank_acts acts[RANKS];
static struct fate fates[RANKS];
static double silicon[RANKS];
static int64_t now;
static uint64_t chance_state;
static bool gpus;

static double chance(void)
{
	chance_state = chance_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(chance_state >> 11) / 9007199254740992.0;
}

static double about(double value, double spread)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += chance();
	return value + spread * (sum - 6);
}

static void begin(uint64_t seed)
{
	memset(acts, 0, sizeof(acts));
	chance_state = seed;
	now = MINUTE;
	gpus = true;
	for (size_t i = 0; i < RANKS; i++) {
		fates[i] = (struct fate){ .work = 1 };
		silicon[i] = about(1, 0.03);
	}
}

static double least(double value, double limit)
{
	return value < limit ? limit : value;
}

/* What it does alone is not what it waits; all wait for the slowest, and pause for the rest. */
static void window(double pause, bool usual)
{
	double step = 0;

	for (size_t i = 0; i < RANKS; i++)
		step = MO_MAX(step, fates[i].work + fates[i].late);
	step += pause;
	for (size_t i = 0; i < RANKS; i++) {
		const struct fate *f = &fates[i];
		double stage = i / PER_STAGE ? 0.8 : 1;
		double computes = f->work / step;
		struct rank_activity a = { .rank = (int64_t)i, .window = acts[i].n + 1 };

		a.delay_pct = least(about(f->delay, 0.1), 0);
		a.cpu_pct = gpus ? about(100, 1) : about(100 * (f->work + f->late) / step, 1);
		a.cpu_pct = least(a.cpu_pct - f->delay, 5) + f->threads;
		a.busy_pct = a.mem_pct = a.power_w = MO_NONE_F;
		if (gpus) {
			a.busy_pct = 100 - least(about(100 * f->late / step + 0.5, 0.4), 0);
			a.mem_pct = about(65.6 * stage * computes, 0.8);
			a.power_w = silicon[i] * about(118 + 569 * stage * computes, 6);
		}
		acts_take(&acts[i], &a, usual, now);
	}
	now += MINUTE;
}

static struct activity_verdict judge(bool slow)
{
	struct rank_acted r[RANKS];

	for (size_t i = 0; i < RANKS; i++) {
		r[i] = (struct rank_acted){ .rank = (int64_t)i, .stage = (int64_t)i / PER_STAGE };
		acts_now(&acts[i], now, r[i].now);
		acts_usual(&acts[i], r[i].usual);
	}
	return activity_judge(r, RANKS, slow);
}

static void windows(int n, bool usual)
{
	for (int i = 0; i < n; i++)
		window(0, usual);
}

static void named(const struct activity_verdict *v, int sign, int64_t rank, bool alone)
{
	assert_int_equal(v->odd.rank, rank);
	assert_int_equal(v->sign, sign);
	assert_int_equal(v->alone, alone);
}

static void nobody(bool slow)
{
	assert_int_equal(judge(slow).odd.rank, MO_NONE);
}

/* A burst of others on its processor: it waits for that, its GPU for it, and all others too. */
static void who_waits_for_a_processor_is_named(void **state)
{
	struct activity_verdict v;

	begin(1);
	windows(20, true);
	nobody(false);
	fates[5] = (struct fate){ .work = 1, .late = 0.4, .delay = 60 };
	windows(1, true);
	nobody(false); /* one minute */
	windows(2, true);
	v = judge(false);
	named(&v, SIGN_PROCESSOR, 5, false);
	assert_true(v.lost_pct > 25 && v.lost_pct < 32); /* 0.4 of 1.4 */
	/* in that state from the beginning on, too */
	begin(2);
	fates[5] = (struct fate){ .work = 1, .late = 0.4, .delay = 60 };
	windows(6, false);
	v = judge(false);
	named(&v, SIGN_PROCESSOR, 5, false);
	assert_true(v.median[ACT_BUSY] > 98 && v.median[ACT_DELAY] < 102);
	/* its GPU is fed all the same: nobody waits for it */
	begin(2);
	fates[5] = (struct fate){ .work = 1, .delay = 60 };
	windows(6, false);
	nobody(false);
}

/* It says that others wait for it only while the job is slower than it was. */
static void whose_gpu_is_idle_is_named_while_the_job_is_slow(void **state)
{
	struct activity_verdict v;

	begin(3);
	windows(20, true);
	fates[20].late = 0.4;
	windows(3, true);
	nobody(false);
	v = judge(true);
	named(&v, SIGN_IDLE, 20, true);
	/* what it does is as much as that of its peers */
	assert_true(v.median[ACT_MEM] > 0);
}

/* It was so before the job became slower: rank 0 has more to write, say. */
static void who_was_so_before_is_not_the_reason(void **state)
{
	begin(4);
	fates[0].late = 0.3;
	windows(20, true);
	for (int i = 0; i < 5; i++)
		window(0.3, false);
	nobody(true);
	/* nor is what comes beside it */
	fates[0].delay = 60;
	windows(5, false);
	nobody(false);
	/* nor is anything known of one without a past */
	begin(5);
	fates[0].late = 0.4;
	windows(20, false);
	nobody(true);
}

static void who_has_more_to_do_is_named(void **state)
{
	struct activity_verdict v;

	begin(6);
	windows(10, true);
	fates[9].work = 1.32;
	windows(3, true);
	v = judge(false);
	named(&v, SIGN_WORK, 9, true);
	assert_true(v.lost_pct > 20 && v.lost_pct < 29);
	/* not by its memory alone */
	silicon[9] = 0.8;
	windows(3, true);
	nobody(false);
	/* and a little is no reason */
	silicon[9] = 1;
	fates[9].work = 1.1;
	windows(3, true);
	nobody(false);
}

/* Ranks without GPUs sleep while they wait. */
static void without_gpus_it_is_known_by_the_processor_alone(void **state)
{
	struct activity_verdict v;

	begin(7);
	gpus = false;
	windows(20, true);
	fates[3] = (struct fate){ .work = 1, .late = 0.5, .delay = 33 };
	windows(3, false);
	nobody(false);
	v = judge(true);
	named(&v, SIGN_PROCESSOR, 3, true);
	assert_true(v.lost_pct == MO_NONE_F);
	/* as fast as its processor is: nobody takes it away */
	fates[3].delay = 0;
	windows(3, false);
	v = judge(true);
	named(&v, SIGN_PROCESSOR, 3, true);
	assert_int_equal(v.kind, ACT_WANTED);
}

/* A save in the background, of as many threads as there are. */
static void threads_beside_the_training_are_nobodys_business(void **state)
{
	begin(8);
	windows(20, true);
	fates[0] = (struct fate){ .work = 1, .threads = 3000, .delay = 900 };
	windows(5, false);
	nobody(false);
	nobody(true);
}

static void few_many_and_unknown_are_not_blamed(void **state)
{
	struct rank_acted r[2] = { { .rank = 0 }, { .rank = 1 } };

	begin(9);
	windows(20, true);
	for (size_t i = 0; i < PER_STAGE / 2; i++)
		fates[i] = (struct fate){ .work = 1.4, .late = 0.4, .delay = 60 };
	windows(3, false);
	nobody(true);
	/* two have no peers */
	for (int k = 0; k < _ACTIVITY_KIND_N; k++) {
		r[0].now[k] = r[0].usual[k] = r[1].usual[k] = 100;
		r[1].now[k] = 300;
	}
	assert_int_equal(activity_judge(r, 2, true).odd.rank, MO_NONE);
	assert_int_equal(activity_judge(r, 0, true).odd.rank, MO_NONE);
	begin(10);
	nobody(true);
	windows(4, true);
	nobody(true); /* not yet enough */
	fates[5] = (struct fate){ .work = 1, .late = 0.4, .delay = 60 };
	windows(5, true);
	assert_int_equal(judge(false).odd.rank, 5);
	now += 3 * MINUTE; /* and not heard of since */
	nobody(false);
}

static void values_that_cannot_be_say_nothing(void **state)
{
	static const double evil[] = { -1, 1e9, INFINITY, NAN, MO_NONE_F };

	for (size_t e = 0; e < ELEMENTSOF(evil); e++) {
		begin(11);
		for (int n = 0; n < 10; n++, now += MINUTE)
			for (size_t i = 0; i < RANKS; i++) {
				double x = i == 4 ? evil[e] : 50;
				struct rank_activity a = { (int64_t)i, n + 1, x, x, x, x, x };

				acts_take(&acts[i], &a, true, now);
			}
		nobody(false);
		nobody(true);
	}
}

static void it_ends(void **state)
{
	static const struct fate slow[] = {
		{ .work = 1, .late = 0.4, .delay = 60 },
		{ .work = 1, .late = 0.4 },
		{ .work = 1.4 },
	};

	for (size_t i = 0; i < ELEMENTSOF(slow); i++) {
		struct rank_acted r[RANKS];

		begin(12 + i);
		windows(20, true);
		for (int pass = 0; pass < 2; pass++) {
			fates[7] = slow[i];
			if (pass)
				fates[7] = (struct fate){ .work = 1 };
			windows(4, false);
			for (size_t k = 0; k < RANKS; k++) {
				r[k] = (struct rank_acted){ .rank = (int64_t)k,
							    .stage = (int64_t)k / PER_STAGE };
				acts_now(&acts[k], now, r[k].now);
			}
			assert_int_equal(activity_over(r, RANKS, 7, SIGN_PROCESSOR + (int)i), pass);
		}
	}
}

/* Weeks of what looks like it and is none: hiccups of loaders, saves of one rank, a slow network,
 * experts that more tokens go to for a while, threads beside it, a job that is slower for its own
 * reasons. One that happens in it is found each time. */
static void weeks_without_a_false_name(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		int64_t last = MO_NONE, lasted = 0, n_false = 0;
		int slow_left = 0, sign = -1;
		double network = 0;

		begin(100 + seed);
		for (int i = 0; i < 10000; i++) {
			struct activity_verdict v;

			if (slow_left-- <= 0) {
				network = chance() < 0.02 ? 0.2 + chance() : 0;
				slow_left = 5 + (int)(60 * chance());
			}
			for (size_t k = 0; k < RANKS; k++) {
				struct fate *f = &fates[k];

				f->work = 0.95 * f->work + 0.05 * about(1, 0.06);
				f->late =
					chance() < 0.002 ? chance() : least(about(0.01, 0.004), 0);
				f->delay = chance() < 0.002 ? 80 * chance() : 0.5 * chance();
				f->threads = chance() < 0.002 ? 2000 * chance() : 0;
			}
			if (i % 30 == 0)
				fates[0].late = 0.6;
			if (i % 90 < 4) {
				fates[0].threads = 2400;
				fates[0].delay = 800;
			}
			window(network, network == 0);
			v = judge(network > 0);
			lasted = v.odd.rank != MO_NONE && v.odd.rank == last && v.sign == sign
					 ? lasted + 1
					 : 1;
			last = v.odd.rank;
			sign = v.sign;
			n_false += last != MO_NONE && lasted >= STAYED;
		}
		assert_int_equal(n_false, 0);
		fates[11] = (struct fate){ .work = 1, .late = 0.5, .delay = 50 };
		for (size_t k = 0; k < RANKS; k++)
			fates[k].work = 1;
		windows(STAYED, false);
		assert_int_equal(judge(false).odd.rank, 11);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_a_processor_is_named),
		cmocka_unit_test(whose_gpu_is_idle_is_named_while_the_job_is_slow),
		cmocka_unit_test(who_was_so_before_is_not_the_reason),
		cmocka_unit_test(who_has_more_to_do_is_named),
		cmocka_unit_test(without_gpus_it_is_known_by_the_processor_alone),
		cmocka_unit_test(threads_beside_the_training_are_nobodys_business),
		cmocka_unit_test(few_many_and_unknown_are_not_blamed),
		cmocka_unit_test(values_that_cannot_be_say_nothing),
		cmocka_unit_test(it_ends),
		cmocka_unit_test(weeks_without_a_false_name),
	};

	return cmocka_run_group_tests_name("dcore/activity", tests, NULL, NULL);
}
