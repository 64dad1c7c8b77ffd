/* What of a node's health is retained over restarts of the agent: counters, findings, how far the
 * kernel's log was judged. */
#include "tests/unit/acore/health_bed.h"

static char nak[] = "pcie_nak", pending[] = "bad_pages_pending", rule[] = "hang";

static void one_gpu(struct health *h, int64_t now)
{
	static char bdf[] = GPU0;
	struct gpu_slot gpu;
	struct nodeinfo info;

	mo_desc_init(&nodeinfo_desc, &info);
	mo_desc_init(&gpu_slot_desc, &gpu);
	gpu.index = 0;
	gpu.bdf = bdf;
	info.gpus = &gpu;
	info.n_gpus = 1;
	health_devices(h, &info, 0, now);
}

static struct health *reborn(const struct health_check *c, const struct health_memory *m,
			     const char *boot)
{
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)c, 1 }, boot,
				      &bed_every, 1);

	health_load(h, m);
	one_gpu(h, START);
	return h;
}

static struct health *restarted(const struct health_check *c, size_t n,
				const struct health_memory *m, const char *boot, int64_t now)
{
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)c, n }, boot,
				      &bed_every, 1);

	health_load(h, m);
	health_restore(h, m, now);
	one_gpu(h, now);
	return h;
}

static void baselines(void **unused)
{
	struct health_check c = bed_check(0, "gpu.nak", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_SINCE_BOOT;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1), *same = NULL, *other = NULL;
	struct health_memory m;

	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5000, NULL, START);
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5100, NULL, START + 1);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_OK);
	mo_desc_init(&health_memory_desc, &m);
	assert_true(health_unsaved(h));
	health_save(h, &m);
	assert_false(health_unsaved(h));
	assert_int_equal(m.n_counters, 1);
	same = reborn(&c, &m, "boot");
	bed_probe(same, PROBE_GPU, GPU0, "a", "pcie_nak", 5101, NULL, START + 2);
	/* growth since before the agent's restart */
	assert_int_equal(bed_state(same, "gpu.nak", GPU0), CHECK_CRIT);
	assert_true(health_results(same)->version > m.version);
	other = reborn(&c, &m, "another boot");
	bed_probe(other, PROBE_GPU, GPU0, "a", "pcie_nak", 5101, NULL, START + 2);
	assert_int_equal(bed_state(other, "gpu.nak", GPU0), CHECK_OK);
	/* went backwards: a reset, after which it counted 3 */
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 3, NULL, START + 3);
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 100, NULL, START + 4);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_OK);
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 101, NULL, START + 5);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_CRIT);
	assert_string_equal(bed_result(h, "gpu.nak", GPU0)->text,
			    "it is bad: pcie_nak grew by 101 in this boot, above 100; it began "
			    "anew at 0, 1 time");
	assert_int_equal(bed_result(h, "gpu.nak", GPU0)->count, 101);
	int64_t version = health_results(h)->version;
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 101, NULL, START + 5);
	assert_int_equal(health_results(h)->version, version);
	/* news at once: a person may have decided on 101 */
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 102, NULL, START + 5);
	assert_int_equal(bed_result(h, "gpu.nak", GPU0)->count, 102);
	assert_true(health_results(h)->version > version);
	/* the counter says nothing: that is not good news */
	bed_probe(h, PROBE_GPU, GPU0, "a", "another", 1, NULL, START + 5);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_CRIT);
	assert_int_equal(bed_result(h, "gpu.nak", GPU0)->count, 102);
	/* its name could not be read: the same one */
	bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", 90000, NULL, START + 6);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_CRIT);
	/* another GPU in its place */
	bed_probe(h, PROBE_GPU, GPU0, "b", "pcie_nak", 90000, NULL, START + 7);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_OK);
	_cleanup_(health_freep) struct health *swapped = reborn(&c, &m, "boot");
	/* it was changed while no agent ran */
	bed_probe(swapped, PROBE_GPU, GPU0, "b", "pcie_nak", 90000, NULL, START + 8);
	assert_int_equal(bed_state(swapped, "gpu.nak", GPU0), CHECK_OK);
	bed_probe(swapped, PROBE_GPU, GPU0, "b", "pcie_nak", 90101, NULL, START + 9);
	assert_int_equal(bed_state(swapped, "gpu.nak", GPU0), CHECK_CRIT);
	mo_desc_done(&health_memory_desc, &m);
}

/* What a person decided on before the restart is not reported after it, and what became worse
 * meanwhile is. */
static void rises_survive_restarts(void **unused)
{
	struct health_check c = bed_check(0, "gpu.pages", PROBE_GPU, WHEN_PERIODIC, pending, 0);
	c.rises = true;
	struct health *h = bed_make(&c, 1, 1);
	const struct {
		double pages;
		int64_t count;
	} looks[] = { { 3, 3 }, { 3, 3 }, { 1, 3 }, { 2, 4 }, { 5, 7 }, { 5, 7 } };
	struct health_memory m;

	bed_probe(h, PROBE_GPU, GPU0, "a", "bad_pages_pending", 0, NULL, START);
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	/* of what is fine nothing is kept */
	assert_int_equal(m.n_counters, 0);
	mo_desc_done(&health_memory_desc, &m);
	for (size_t i = 0; i < ELEMENTSOF(looks); i++) {
		bed_probe(h, PROBE_GPU, GPU0, "a", "bad_pages_pending", looks[i].pages, NULL,
			  START + (int64_t)i * MINUTE);
		assert_int_equal(bed_result(h, "gpu.pages", GPU0)->count, looks[i].count);
		mo_desc_init(&health_memory_desc, &m);
		health_save(h, &m);
		health_free(h);
		h = reborn(&c, &m, "boot");
		mo_desc_done(&health_memory_desc, &m);
	}
	/* another GPU in its place */
	bed_probe(h, PROBE_GPU, GPU0, "b", "bad_pages_pending", 1, NULL, START + 10 * MINUTE);
	assert_int_equal(bed_result(h, "gpu.pages", GPU0)->count, 1);
	health_free(h);
}

/* A table that is half written says less once, and then what it said before: that is no reset. */
static void one_pass_below_is_no_new_beginning(void **unused)
{
	struct health_check c = bed_check(0, "gpu.nak", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_SINCE_BOOT;
	struct health *h = bed_make(&c, 1, 1);
	struct health_memory m;

	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5000, NULL, START);
	for (int i = 0; i < 5; i++) {
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", i, NULL,
			  START + (3 * i + 1) * SECOND);
		mo_desc_init(&health_memory_desc, &m);
		health_save(h, &m);
		health_free(h);
		h = reborn(&c, &m, "boot");
		mo_desc_done(&health_memory_desc, &m);
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5000 + i, NULL,
			  START + (3 * i + 2) * SECOND);
		assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_OK);
	}
	/* from the first probe on */
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5101, NULL, START + MINUTE);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_CRIT);
	/* twice: it began anew */
	for (int i = 1; i <= 2; i++)
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 40, NULL, START + (1 + i) * MINUTE);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_OK);
	health_free(h);
}

static void what_was_before_the_first_pass(void **unused)
{
	struct health_check c = bed_check(0, "gpu.nak", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_SINCE_BOOT;
	c.history = CHECK_WARN;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1), *again = NULL;
	struct health_memory m;

	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 300, NULL, START);
	assert_int_equal(bed_state(h, "gpu.nak", GPU0), CHECK_WARN);
	assert_string_equal(bed_result(h, "gpu.nak", GPU0)->text,
			    "it is bad: pcie_nak stood at 300 when it was first looked at in this "
			    "boot, above 100; it has not grown since");
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	again = reborn(&c, &m, "boot");
	bed_probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 301, NULL, START + 1);
	/* still history, not a finding of its own */
	assert_int_equal(bed_state(again, "gpu.nak", GPU0), CHECK_WARN);
	bed_probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 401, NULL, START + 2);
	assert_int_equal(bed_state(again, "gpu.nak", GPU0), CHECK_CRIT);
	for (int i = 3; i <= 4; i++)
		/* a reset cleared it */
		bed_probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 0, NULL, START + i);
	assert_int_equal(bed_state(again, "gpu.nak", GPU0), CHECK_OK);
	mo_desc_done(&health_memory_desc, &m);
}

/* Not a restart of the agent makes a node that was probed one that was not, and not for a moment
 * a finding look gone. */
static void preflight_is_made_once_a_boot(void **unused)
{
	static char width[] = "pcie_width", ue[] = "ras_ue";
	struct health_check c[2] = {
		bed_check(0, "gpu.ue", PROBE_GPU, WHEN_PREFLIGHT | WHEN_PERIODIC, ue, 0),
		bed_check(1, "gpu.width", PROBE_GPU, WHEN_PREFLIGHT, width, 100)
	};
	struct health_memory m;
	c[0].consecutive = 2;
	_cleanup_(health_freep) struct health *h = restarted(c, 1,
							     &(struct health_memory){
								     .version = MO_NONE },
							     "boot", START),
					      *same = NULL, *boot = NULL, *late = NULL,
					      *more = NULL;

	assert_false(health_results(h)->preflight_done);
	bed_probe(h, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START);
	bed_probe(h, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START + 1);
	bed_probe(h, PROBE_HOST, "host", NULL, "x", 1, NULL, START + 1);
	bed_probe(h, PROBE_KLOG, "host", NULL, "x", 1, NULL, START + 1);
	bed_probe(h, PROBE_STACK, "host", NULL, "x", 1, NULL, START + 1);
	assert_true(health_results(h)->preflight_done);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_CRIT);
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	health_keep(h, &m);
	same = restarted(c, 1, &m, "boot", START + MINUTE);
	assert_true(health_results(same)->preflight_done);
	assert_int_equal(bed_state(same, "gpu.ue", GPU0), CHECK_CRIT);
	assert_string_equal(bed_result(same, "gpu.ue", GPU0)->text,
			    bed_result(h, "gpu.ue", GPU0)->text);
	assert_int_equal(bed_result(same, "gpu.ue", GPU0)->since,
			 bed_result(h, "gpu.ue", GPU0)->since);
	bed_probe(same, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START + MINUTE);
	/* it counts already: no second probe is waited for */
	assert_true(health_results(same)->preflight_done);
	assert_int_equal(bed_state(same, "gpu.ue", GPU0), CHECK_CRIT);
	bed_probe(same, PROBE_GPU, GPU0, "a", "ras_ue", 0, NULL, START + 2 * MINUTE);
	/* the next probe judges */
	assert_int_equal(bed_state(same, "gpu.ue", GPU0), CHECK_OK);
	boot = restarted(c, 1, &m, "another boot", START + MINUTE);
	assert_false(health_results(boot)->preflight_done);
	assert_int_equal(bed_state(boot, "gpu.ue", GPU0), CHECK_OK);
	late = restarted(c, 1, &m, "boot", START + 16 * MINUTE);
	assert_false(health_results(late)->preflight_done);
	/* a check that is new */
	more = restarted(c, 2, &m, "boot", START + MINUTE);
	assert_false(health_results(more)->preflight_done);
	assert_int_equal(bed_state(more, "gpu.ue", GPU0), CHECK_CRIT);
	mo_desc_done(&health_memory_desc, &m);
}

/* An agent that ended while a launch waited does not leave the GPU to the next one unseen. What was
 * found before is known, what was only suspected is not. */
static void what_a_job_left_is_looked_at_again(void **unused)
{
	static char held[] = "vram_held_bytes";
	struct health_check c = bed_check(0, "gpu.vram_held", PROBE_GPU, WHEN_PREFLIGHT, held, 2e9);
	c.consecutive = 2;
	c.settle_us = 30 * SECOND;

	static const struct {
		double held;
		int probes;
		bool known;
	} rows[] = { { 0, 2, false }, { 9e9, 1, false }, { 9e9, 2, true } };

	for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
		struct health_memory none = { .version = MO_NONE };
		_cleanup_(health_freep) struct health *h = restarted(&c, 1, &none, "boot", START),
						      *same = NULL;
		_cleanup_(mo_freep) char *first = NULL, *second = NULL, *text = NULL;
		int64_t slot = 0, later = START + MINUTE;
		struct health_memory m;
		struct health_pass l;

		for (int i = 0; i < rows[k].probes; i++)
			bed_probe(h, PROBE_GPU, GPU0, "a", held, rows[k].held, NULL, START + i);
		bed_probe(h, PROBE_HOST, "host", NULL, "x", 1, NULL, START + 1);
		bed_probe(h, PROBE_KLOG, "host", NULL, "x", 1, NULL, START + 1);
		bed_probe(h, PROBE_STACK, "host", NULL, "x", 1, NULL, START + 1);
		mo_desc_init(&health_memory_desc, &m);
		health_save(h, &m);
		health_keep(h, &m);
		same = restarted(&c, 1, &m, "boot", later);
		mo_desc_done(&health_memory_desc, &m);
		assert_int_equal(health_release(same, &slot, 1, later, later, &first),
				 RELEASE_WAITS);
		assert_non_null(strstr(first, "not looked at yet"));
		while (health_due(same, later, &l))
			;
		bed_probe(same, PROBE_GPU, GPU0, "a", held, 9e9, NULL, later);
		assert_int_equal(health_release(same, &slot, 1, later, later, &second),
				 rows[k].known ? RELEASE_DONE : RELEASE_WAITS);
		assert_int_equal(health_release(same, &slot, 1, later, later + 31 * SECOND, &text),
				 rows[k].known ? RELEASE_DONE : RELEASE_WAITS);
	}
}

/* The store is a file of one host: what is in it stays small, however long it runs and whatever
 * comes and goes. */
static void baselines_are_bounded(void **unused)
{
	struct health_check c = bed_check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 1e18);
	c.measure = MEASURE_PER_HOUR;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	struct health_memory m;
	int64_t now = START;

	for (int i = 0; i < 3000; i++, now += (i % 7 + 1) * 11 * SECOND)
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", i / 3, NULL, now);
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	assert_int_equal(m.n_counters, 1);
	assert_in_range(m.counters[0].n_moments, 10, 70);
	/* of GPUs that are gone */
	for (int i = 0; i < MO_COUNTERS_MAX; i++) {
		struct health_counter *k = MO_ADD(&m, counters, &health_counter_desc);
		k->area = PROBE_GPU;
		k->object = mo_printf("gone %d", i);
		mo_str_set(&k->reading, "gpu.rate");
	}
	_cleanup_(health_freep) struct health *again = reborn(&c, &m, "boot");
	mo_desc_done(&health_memory_desc, &m);
	bed_probe(again, PROBE_GPU, GPU0, "b", "pcie_nak", 1, NULL, now);
	mo_desc_init(&health_memory_desc, &m);
	health_save(again, &m);
	assert_in_range(m.n_counters, 1, MO_COUNTERS_MAX);
	assert_string_equal(m.counters[m.n_counters - 1].object, GPU0);
	mo_desc_done(&health_memory_desc, &m);
}

static void rates_survive_restarts(void **unused)
{
	struct health_check c = bed_check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 2);
	c.measure = MEASURE_PER_HOUR;
	struct health *h = bed_make(&c, 1, 1);
	struct health_memory m;
	int64_t now = START;

	/* a flap each 20 minutes, and the agent starts anew after each probe */
	for (int i = 0; i < 12; i++, now += 10 * MINUTE) {
		assert_int_equal(bed_state(h, "gpu.rate", GPU0), i > 6 ? CHECK_CRIT : CHECK_OK);
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 7 + i / 2, NULL, now);
		mo_desc_init(&health_memory_desc, &m);
		assert_true(health_unsaved(h));
		health_save(h, &m);
		health_free(h);
		h = reborn(&c, &m, "boot");
		mo_desc_done(&health_memory_desc, &m);
		bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 7 + i / 2, NULL, now + SECOND);
	}
	/* four hours without an agent: what came meanwhile is spread over them */
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 7, NULL, now + 240 * MINUTE);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_OK);
	/* three at once are three, however long it stood still before */
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 7, NULL, now + 600 * MINUTE);
	bed_probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 10, NULL, now + 601 * MINUTE);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_CRIT);
	health_free(h);
}

static void the_log_adds_up_over_looks_and_restarts(void **unused)
{
	struct health_check c = bed_check(0, "klog.hang", PROBE_KLOG, WHEN_PERIODIC, rule, 0);
	c.measure = MEASURE_SINCE_BOOT;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1), *again = NULL;
	struct health_memory m;
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = PROBE_KLOG;
	p.object = mo_strdup("host");
	reading_add(&p, "last_seq", 77);
	reading_add(&p, "hang", 1);
	reading_add_text(&p, "line.hang.1", "ring sdma timeout");
	health_probe(h, &p, START);
	mo_desc_done(&probe_desc, &p);
	bed_probe(h, PROBE_KLOG, "host", NULL, "hang", 0, NULL, START + MINUTE);
	/* it is not over because no more lines come */
	assert_int_equal(bed_state(h, "klog.hang", "host"), CHECK_CRIT);
	assert_string_equal(bed_result(h, "klog.hang", "host")->evidence[0], "ring sdma timeout");
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	assert_int_equal(m.klog_seq, 77);
	again = reborn(&c, &m, "boot");
	struct health_pass l;
	bool asked = false;
	while (health_due(again, START, &l)) {
		asked |= l.area == PROBE_KLOG && l.since == 77;
		bed_probe(again, l.area, l.object, NULL, l.area == PROBE_KLOG ? "hang" : NULL, 0,
			  NULL, START);
	}
	assert_true(asked);
	assert_int_equal(bed_state(again, "klog.hang", "host"), CHECK_CRIT);
	assert_string_equal(bed_result(again, "klog.hang", "host")->evidence[0],
			    "ring sdma timeout");
	mo_desc_done(&health_memory_desc, &m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(baselines),
		cmocka_unit_test(what_was_before_the_first_pass),
		cmocka_unit_test(preflight_is_made_once_a_boot),
		cmocka_unit_test(what_a_job_left_is_looked_at_again),
		cmocka_unit_test(baselines_are_bounded),
		cmocka_unit_test(rises_survive_restarts),
		cmocka_unit_test(one_pass_below_is_no_new_beginning),
		cmocka_unit_test(rates_survive_restarts),
		cmocka_unit_test(the_log_adds_up_over_looks_and_restarts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
