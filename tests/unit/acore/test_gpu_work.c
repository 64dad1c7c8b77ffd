/* Since when a GPU only spins, and when it computed last: by figures as two H200 gave them. */
#include "agent/core/health/gpu_work.h"
#include "tests/unit/acore/health_bed.h"

static int64_t now;

static void take(struct gpu_work *w, double busy, double memory, double power)
{
	gpu_work_take(w, busy, memory, power, now += 5 * SECOND);
}

static void trains(struct gpu_work *w)
{
	take(w, 93, 27, 700);
}

static void spins(struct gpu_work *w)
{
	take(w, 100, 0, 119);
}

static struct gpu_work trained(void)
{
	struct gpu_work w;

	now = START;
	gpu_work_begin(&w);
	for (int i = 0; i < 10; i++)
		trains(&w);
	return w;
}

static void a_collective_that_waits_is_told_from_one_that_computes(void **state)
{
	struct gpu_work w = trained();
	int64_t worked = now;

	assert_int_equal(w.worked_at, now);
	assert_int_equal(w.spins_since, MO_NONE);
	for (int i = 0; i < 20; i++)
		spins(&w);
	assert_int_equal(w.worked_at, worked);
	assert_int_equal(w.spins_since, worked + 5 * SECOND);
	take(&w, 80, 21, 670); /* it evaluates alone */
	assert_int_equal(w.worked_at, now);
	assert_int_equal(w.spins_since, MO_NONE);
}

static void an_idle_gpu_neither_computes_nor_spins(void **state)
{
	struct gpu_work w = trained();
	int64_t worked = now;

	for (int i = 0; i < 10; i++)
		take(&w, 0, 0, 117);
	assert_int_equal(w.worked_at, worked);
	assert_int_equal(w.spins_since, MO_NONE);
	spins(&w);
	spins(&w);
	assert_int_equal(w.spins_since, now - 5 * SECOND);
}

/* In registers and caches it computes too: not in a third of the power. */
static void a_kernel_that_touches_no_memory_draws_power(void **state)
{
	struct gpu_work w = trained();

	take(&w, 100, 0, 300);
	assert_int_equal(w.worked_at, now);
	assert_int_equal(w.spins_since, MO_NONE);
}

static void what_lies_between_computes(void **state)
{
	static const struct {
		double busy, memory, power;
	} rows[] = { { 60, 0, 118 }, { 100, 2, 118 }, { 3, 0, 118 }, { 0, 5, 118 } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct gpu_work w = trained();

		take(&w, rows[i].busy, rows[i].memory, rows[i].power);
		assert_int_equal(w.worked_at, now);
		assert_int_equal(w.spins_since, MO_NONE);
	}
}

/* Sensors that always say the same, and memory that nobody fills in. */
static void what_never_worked_its_memory_is_not_known(void **state)
{
	struct gpu_work w = trained();

	gpu_work_begin(&w); /* another job comes */
	for (int i = 0; i < 20; i++)
		spins(&w);
	assert_int_equal(w.worked_at, MO_NONE);
	for (int i = 0; i < 20; i++)
		take(&w, 93, 0, 700);
	assert_int_equal(w.worked_at, MO_NONE);
	trains(&w);
	assert_int_equal(w.worked_at, now);
}

/* It may have computed meanwhile. */
static void what_was_not_seen_begins_anew(void **state)
{
	static const struct {
		double busy, memory, power;
	} rows[] = { { MO_NONE_F, 0, 119 }, { 100, MO_NONE_F, 119 }, { 100, 0, MO_NONE_F } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct gpu_work w = trained();

		spins(&w);
		spins(&w);
		take(&w, rows[i].busy, rows[i].memory, rows[i].power);
		assert_int_equal(w.read_at, MO_NONE);
		assert_int_equal(w.spins_since, MO_NONE);
		spins(&w);
		assert_int_equal(w.read_at, now);
		assert_int_equal(w.worked_at, now);
		assert_int_equal(w.spins_since, now);
		spins(&w);
		now += MINUTE;
		spins(&w);
		assert_int_equal(w.worked_at, now);
		assert_int_equal(w.spins_since, now);
	}
}

static void probed(struct health *h, double busy, double memory, double power)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = PROBE_GPU;
	p.object = mo_strdup(GPU0);
	reading_add(&p, "busy_pct", busy);
	reading_add(&p, "mem_busy_pct", memory);
	reading_add(&p, "power_w", power);
	health_probe(h, &p, now += 5 * SECOND);
	mo_desc_done(&probe_desc, &p);
}

static void probes_tell_it_of_each_gpu(void **state)
{
	_cleanup_(health_freep) struct health *h = bed_make(NULL, 0, 1);

	now = START;
	health_busy(h, (int64_t[]){ 0 }, 1, 1, now);
	assert_int_equal(health_work(h, GPU0).read_at, MO_NONE);
	assert_int_equal(health_work(h, "0000:99:00.0").read_at, MO_NONE);
	probed(h, 93, 27, 700);
	probed(h, 100, 0, 119);
	assert_int_equal(health_work(h, GPU0).worked_at, now - 5 * SECOND);
	assert_int_equal(health_work(h, GPU0).spins_since, now);
	assert_int_equal(health_work(h, GPU1).read_at, MO_NONE);
	health_busy(h, NULL, 0, 0, now);
	health_busy(h, (int64_t[]){ 0 }, 1, 1, now); /* the next job */
	assert_int_equal(health_work(h, GPU0).worked_at, MO_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collective_that_waits_is_told_from_one_that_computes),
		cmocka_unit_test(an_idle_gpu_neither_computes_nor_spins),
		cmocka_unit_test(a_kernel_that_touches_no_memory_draws_power),
		cmocka_unit_test(what_lies_between_computes),
		cmocka_unit_test(what_never_worked_its_memory_is_not_known),
		cmocka_unit_test(what_was_not_seen_begins_anew),
		cmocka_unit_test(probes_tell_it_of_each_gpu),
	};

	return cmocka_run_group_tests_name("acore/gpu_work", tests, NULL, NULL);
}
