/* What a GPU does in all, by what its probes tell. */
#include "tests/unit/acore/health_bed.h"

static void probe(struct health *h, double busy, double watts, double joules, int64_t at)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = PROBE_GPU;
	p.object = mo_strdup(GPU0);
	reading_add(&p, "busy_pct", busy);
	reading_add(&p, "power_w", watts);
	reading_add(&p, "energy_j", joules);
	health_probe(h, &p, at);
	mo_desc_done(&probe_desc, &p);
}

static double mean(const struct health_sum *s)
{
	return s->us ? s->sum / (double)s->us : -1;
}

static void energy_says_more_than_what_power_is_at_a_moment(void **state)
{
	_cleanup_(health_freep) struct health *h = bed_make(NULL, 0, 1);
	const struct health_activity *a = health_activity(h, GPU0);

	assert_int_equal(a->busy_pct.us, 0);
	probe(h, 100, 100, 5000, START);
	assert_int_equal(a->power_w.us, 0);
	probe(h, 100, 100, 5000 + 600 * 5, START + 5 * SECOND);
	probe(h, 40, 100, 5000 + 600 * 10, START + 10 * SECOND);
	assert_int_equal(a->busy_pct.us, 10 * SECOND);
	assert_true(mean(&a->busy_pct) == 70 && mean(&a->power_w) == 600);
	assert_int_equal(a->mem_pct.us, 0); /* it is not told */
	/* the counter began anew, or is not there: what it is at a moment */
	probe(h, 40, 200, 7, START + 15 * SECOND);
	probe(h, 40, 300, MO_NONE_F, START + 20 * SECOND);
	assert_true(mean(&a->power_w) > 424 && mean(&a->power_w) < 426);
	/* nobody knows what was in a long pause */
	probe(h, 0, 0, MO_NONE_F, START + 10 * MINUTE);
	assert_int_equal(a->busy_pct.us, 20 * SECOND);
	assert_int_equal(health_activity(h, "0000:99:00.0")->busy_pct.us, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(energy_says_more_than_what_power_is_at_a_moment),
	};

	return cmocka_run_group_tests_name("acore/gpu_activity", tests, NULL, NULL);
}
