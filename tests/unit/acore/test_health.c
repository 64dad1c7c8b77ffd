/* Looks, findings and what is told of them, in virtual time. */
#include "tests/unit/unit.h"
#include <string.h>
#include "agent/core/health.h"
#include "agent/core/reading.h"
#include "lib/model/limits.h"

#define SECOND 1000000LL
#define MINUTE (60 * SECOND)
#define START (1000 * MINUTE)
#define GPU0 "0000:01:00.0"
#define GPU1 "0000:02:00.0"

static const struct health_intervals every = { .sensors_us = 5 * SECOND, .device_us = 30 * SECOND, .host_us = MINUTE, .klog_us = 10 * SECOND };
static char ids[8][32], what[] = "it is bad", next[] = "look";

static struct health_check check(int i, const char *id, int area, int64_t when, char *reading, double crit_above) {
	struct health_check c;

	mo_desc_init(&health_check_desc, &c);
	strncpy(ids[i], id, sizeof(ids[i]) - 1);
	c.id = ids[i];
	c.what = what;
	c.next = next;
	c.area = area;
	c.when = when;
	c.reading = reading;
	c.measure = MEASURE_VALUE;
	c.crit_above = crit_above;
	c.otherwise = CHECK_UNKNOWN;
	c.absent = CHECK_OK;
	c.needs = NEEDS_NOTHING;
	c.consecutive = 1;
	c.window_us = 3600 * SECOND;
	c.action = ACTION_CORDON;
	c.enabled = true;
	return c;
}

static char ras_ue[] = "ras_ue", problem[] = "problem", vram[] = "vram_held_bytes", nak[] = "pcie_nak", rule[] = "hang", one[] = "x";

static struct health *make(const struct health_check *checks, size_t n, int64_t version) {
	static char bdf0[] = GPU0, bdf1[] = GPU1;
	struct gpu_slot gpus[2];
	struct nodeinfo info;
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)checks, n }, "boot", &every, version);

	mo_desc_init(&nodeinfo_desc, &info);
	for (size_t i = 0; i < 2; i++) {
		mo_desc_init(&gpu_slot_desc, &gpus[i]);
		gpus[i].index = (int64_t)i;
		gpus[i].bdf = i ? bdf1 : bdf0;
	}
	info.gpus = gpus;
	info.n_gpus = 2;
	health_devices(h, &info, 0, START);
	return h;
}

static void probe(struct health *h, int area, const char *object, const char *identity, const char *key, double value, const char *trouble, int64_t now) {
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = area;
	p.object = mo_strdup(object);
	p.identity = mo_strdup(identity);
	p.problem = mo_strdup(trouble);
	if (key)
		reading_add(&p, key, value);
	health_probe(h, &p, now);
	mo_desc_done(&probe_desc, &p);
}

static const struct check_result *result(struct health *h, const char *id, const char *object) {
	const struct node_health *n = health_results(h);

	for (size_t i = 0; i < n->n_results; i++)
		if (mo_streq(n->results[i].check, id) && mo_streq(n->results[i].object, object))
			return &n->results[i];
	return NULL;
}

static int state(struct health *h, const char *id, const char *object) {
	const struct check_result *r = result(h, id, object);
	return r ? r->state : CHECK_OK;
}

/* Answers everything that is due; how many looks that were. */
static size_t serve(struct health *h, int64_t now) {
	struct health_look l;
	size_t n = 0;

	health_tick(h, now);
	while (health_due(h, now, &l)) {
		n++;
		if (l.program)
			health_program(h, l.program->id, 0, "fine", 4, NULL, now);
		else
			probe(h, l.area, l.object, NULL, "read_ms", 1, NULL, now);
	}
	return n;
}

static void findings_in_a_row(void **unused) {
	struct health_check c = check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC | WHEN_PREFLIGHT, ras_ue, 0);
	c.consecutive = 3;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);

	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 1);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 2);         /* begins anew */
	for (int i = 0; i < 2; i++)
		probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 3 + i);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 5);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_CRIT);
	assert_string_equal(result(h, "gpu.ue", GPU0)->text, "it is bad: ras_ue is 1, above 0");
	assert_string_equal(result(h, "gpu.ue", GPU0)->evidence[0], "ras_ue = 1");
	assert_int_equal(result(h, "gpu.ue", GPU0)->when, WHEN_PERIODIC | WHEN_PREFLIGHT);
	assert_int_equal(state(h, "gpu.ue", GPU1), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 6);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_OK);
}

static void a_finding_that_does_not_count_yet_is_looked_at_in_30_s(void **unused) {
	struct health_check c = check(0, "gpu.vram", PROBE_GPU, WHEN_PREFLIGHT, vram, 2e9);
	c.consecutive = 2;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	struct health_look l;

	serve(h, START);
	assert_true(health_results(h)->preflight_done);
	while (!health_due(h, START + 50 * SECOND, &l) || l.sensors || !mo_streq(l.object, GPU0) || l.area != PROBE_GPU)
		probe(h, l.area, l.object, NULL, NULL, 0, NULL, START + 50 * SECOND);
	probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", 2.1e10, NULL, START + 50 * SECOND);
	assert_false(health_results(h)->preflight_done);
	assert_int_equal(state(h, "gpu.vram", GPU0), CHECK_OK);
	serve(h, START + 50 * SECOND);
	probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", 2.1e10, NULL, START + 80 * SECOND);
	assert_int_equal(state(h, "gpu.vram", GPU0), CHECK_CRIT);
	assert_true(health_results(h)->preflight_done);
}

static void unknown_never_acts_alone(void **unused) {
	const struct health_check c[] = { check(0, "gpu.read", PROBE_GPU, WHEN_PERIODIC, problem, MO_NONE_F), check(1, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0) };
	struct health_check checks[2] = { c[0], c[1] };
	checks[0].measure = MEASURE_TEXT;
	checks[0].action = ACTION_CORDON;
	_cleanup_(health_freep) struct health *h = make(checks, 2, 1);

	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 2, NULL, START);
	for (int i = 0; i < 2; i++) {
		health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false, START + i);
		assert_int_equal(state(h, "gpu.read", GPU0), CHECK_UNKNOWN);
	}
	health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false, START + 2);
	assert_int_equal(state(h, "gpu.read", GPU0), CHECK_WARN);              /* and never more */
	for (int i = 3; i < 30; i++)
		health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false, START + i);
	assert_int_equal(state(h, "gpu.read", GPU0), CHECK_WARN);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_CRIT);                /* an earlier finding stays */
	probe(h, PROBE_GPU, GPU0, NULL, "power_w", 5, "ras: Device or resource busy", START + 40);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_CRIT);                /* unreadable for the moment is not fine */
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 41);
	assert_int_equal(state(h, "gpu.read", GPU0), CHECK_OK);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_OK);
}

static void versions(void **unused) {
	struct health_check c = check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = make(&c, 1, 50);
	int64_t v;

	serve(h, START);
	v = health_results(h)->version;
	assert_true(v >= 50 && health_untold(h));
	health_acked(h, v);
	assert_false(health_untold(h));
	for (int i = 1; i < 100; i++)
		probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + i * SECOND);
	assert_int_equal(health_results(h)->version, v);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 200 * SECOND);
	assert_int_equal(health_results(h)->version, v + 1);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 2, NULL, START + 230 * SECOND);      /* its text is not news yet */
	assert_int_equal(health_results(h)->version, v + 1);
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 3, NULL, START + 900 * SECOND);
	assert_int_equal(health_results(h)->version, v + 2);
	assert_non_null(strstr(result(h, "gpu.ue", GPU0)->text, "is 3"));
	health_acked(h, MO_NONE);
	assert_true(health_untold(h));
}

static void one_gpu(struct health *h, int64_t now) {
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

static struct health *reborn(const struct health_check *c, const struct health_memory *m, const char *boot) {
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)c, 1 }, boot, &every, 1);

	health_load(h, m);
	one_gpu(h, START);
	return h;
}

static void baselines(void **unused) {
	struct health_check c = check(0, "gpu.nak", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_SINCE_BOOT;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1), *same = NULL, *other = NULL;
	struct health_memory m;

	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5000, NULL, START);
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 5100, NULL, START + 1);
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_OK);
	mo_desc_init(&health_memory_desc, &m);
	assert_true(health_unsaved(h));
	health_save(h, &m);
	assert_false(health_unsaved(h));
	assert_int_equal(m.n_counters, 1);
	same = reborn(&c, &m, "boot");
	probe(same, PROBE_GPU, GPU0, "a", "pcie_nak", 5101, NULL, START + 2);
	assert_int_equal(state(same, "gpu.nak", GPU0), CHECK_CRIT);            /* growth since before the agent's restart */
	assert_true(health_results(same)->version > m.version);
	other = reborn(&c, &m, "another boot");
	probe(other, PROBE_GPU, GPU0, "a", "pcie_nak", 5101, NULL, START + 2);
	assert_int_equal(state(other, "gpu.nak", GPU0), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 3, NULL, START + 3);        /* went backwards: a reset, after which it counted 3 */
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 100, NULL, START + 4);
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 101, NULL, START + 5);
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_CRIT);
	assert_string_equal(result(h, "gpu.nak", GPU0)->text, "it is bad: pcie_nak grew by 101 in this boot, above 100; it began anew at 0, 1 time");
	assert_int_equal(result(h, "gpu.nak", GPU0)->count, 101);
	int64_t version = health_results(h)->version;
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 101, NULL, START + 5);
	assert_int_equal(health_results(h)->version, version);
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 102, NULL, START + 5);      /* news at once: a person may have decided on 101 */
	assert_int_equal(result(h, "gpu.nak", GPU0)->count, 102);
	assert_true(health_results(h)->version > version);
	probe(h, PROBE_GPU, GPU0, "a", "another", 1, NULL, START + 5);         /* the counter says nothing: that is not good news */
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_CRIT);
	assert_int_equal(result(h, "gpu.nak", GPU0)->count, 102);
	probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", 90000, NULL, START + 6);   /* its name could not be read: the same one */
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_CRIT);
	probe(h, PROBE_GPU, GPU0, "b", "pcie_nak", 90000, NULL, START + 7);    /* another GPU in its place */
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_OK);
	_cleanup_(health_freep) struct health *swapped = reborn(&c, &m, "boot");
	probe(swapped, PROBE_GPU, GPU0, "b", "pcie_nak", 90000, NULL, START + 8);      /* it was changed while no agent ran */
	assert_int_equal(state(swapped, "gpu.nak", GPU0), CHECK_OK);
	probe(swapped, PROBE_GPU, GPU0, "b", "pcie_nak", 90101, NULL, START + 9);
	assert_int_equal(state(swapped, "gpu.nak", GPU0), CHECK_CRIT);
	mo_desc_done(&health_memory_desc, &m);
}

static void what_was_before_the_first_look(void **unused) {
	struct health_check c = check(0, "gpu.nak", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_SINCE_BOOT;
	c.history = CHECK_WARN;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1), *again = NULL;
	struct health_memory m;

	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 300, NULL, START);
	assert_int_equal(state(h, "gpu.nak", GPU0), CHECK_WARN);
	assert_string_equal(result(h, "gpu.nak", GPU0)->text, "it is bad: pcie_nak stood at 300 when it was first looked at in this boot, above 100; it grew by 0 since");
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	again = reborn(&c, &m, "boot");
	probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 301, NULL, START + 1);
	assert_int_equal(state(again, "gpu.nak", GPU0), CHECK_WARN);           /* still history, not a finding of its own */
	probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 401, NULL, START + 2);
	assert_int_equal(state(again, "gpu.nak", GPU0), CHECK_CRIT);
	probe(again, PROBE_GPU, GPU0, "a", "pcie_nak", 0, NULL, START + 3);    /* reading cleared it */
	assert_int_equal(state(again, "gpu.nak", GPU0), CHECK_OK);
	mo_desc_done(&health_memory_desc, &m);
}

static struct health *restarted(const struct health_check *c, size_t n, const struct health_memory *m, const char *boot, int64_t now) {
	struct health *h = health_new(&(struct health_checks){ (struct health_check *)c, n }, boot, &every, 1);

	health_load(h, m);
	health_restore(h, m, now);
	one_gpu(h, now);
	return h;
}

/* Not a restart of the agent makes a node that was looked at one that was not, and not for a moment a finding look gone. */
static void preflight_is_made_once_a_boot(void **unused) {
	static char width[] = "pcie_width", ue[] = "ras_ue";
	struct health_check c[2] = { check(0, "gpu.ue", PROBE_GPU, WHEN_PREFLIGHT | WHEN_PERIODIC, ue, 0), check(1, "gpu.width", PROBE_GPU, WHEN_PREFLIGHT, width, 100) };
	struct health_memory m;
	c[0].consecutive = 2;
	_cleanup_(health_freep) struct health *h = restarted(c, 1, &(struct health_memory){ .version = MO_NONE }, "boot", START), *same = NULL, *boot = NULL, *late = NULL, *more = NULL;

	assert_false(health_results(h)->preflight_done);
	probe(h, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START);
	probe(h, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START + 1);
	probe(h, PROBE_HOST, "host", NULL, "x", 1, NULL, START + 1);
	probe(h, PROBE_KLOG, "host", NULL, "x", 1, NULL, START + 1);
	probe(h, PROBE_STACK, "host", NULL, "x", 1, NULL, START + 1);
	assert_true(health_results(h)->preflight_done);
	assert_int_equal(state(h, "gpu.ue", GPU0), CHECK_CRIT);
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	health_keep(h, &m);
	same = restarted(c, 1, &m, "boot", START + MINUTE);
	assert_true(health_results(same)->preflight_done);
	assert_int_equal(state(same, "gpu.ue", GPU0), CHECK_CRIT);
	assert_string_equal(result(same, "gpu.ue", GPU0)->text, result(h, "gpu.ue", GPU0)->text);
	assert_int_equal(result(same, "gpu.ue", GPU0)->since, result(h, "gpu.ue", GPU0)->since);
	probe(same, PROBE_GPU, GPU0, "a", "ras_ue", 2, NULL, START + MINUTE);
	assert_true(health_results(same)->preflight_done);                     /* it counts already: no second look is waited for */
	assert_int_equal(state(same, "gpu.ue", GPU0), CHECK_CRIT);
	probe(same, PROBE_GPU, GPU0, "a", "ras_ue", 0, NULL, START + 2 * MINUTE);
	assert_int_equal(state(same, "gpu.ue", GPU0), CHECK_OK);               /* the next look judges */
	boot = restarted(c, 1, &m, "another boot", START + MINUTE);
	assert_false(health_results(boot)->preflight_done);
	assert_int_equal(state(boot, "gpu.ue", GPU0), CHECK_OK);
	late = restarted(c, 1, &m, "boot", START + 16 * MINUTE);
	assert_false(health_results(late)->preflight_done);
	more = restarted(c, 2, &m, "boot", START + MINUTE);                    /* a check that is new */
	assert_false(health_results(more)->preflight_done);
	assert_int_equal(state(more, "gpu.ue", GPU0), CHECK_CRIT);
	mo_desc_done(&health_memory_desc, &m);
}

/* The store is a file of one host: what is in it stays small, however long it runs and whatever comes and goes. */
static void baselines_are_bounded(void **unused) {
	struct health_check c = check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 1e18);
	c.measure = MEASURE_PER_HOUR;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	struct health_memory m;
	int64_t now = START;

	for (int i = 0; i < 3000; i++, now += (i % 7 + 1) * 11 * SECOND)
		probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", i / 3, NULL, now);
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	assert_int_equal(m.n_counters, 1);
	assert_in_range(m.counters[0].n_moments, 10, 70);
	for (int i = 0; i < MO_COUNTERS_MAX; i++) {                            /* of GPUs that are gone */
		struct health_counter *k = MO_ADD(&m, counters, &health_counter_desc);
		k->area = PROBE_GPU;
		k->object = mo_printf("gone %d", i);
		mo_str_set(&k->reading, "gpu.rate");
	}
	_cleanup_(health_freep) struct health *again = reborn(&c, &m, "boot");
	mo_desc_done(&health_memory_desc, &m);
	probe(again, PROBE_GPU, GPU0, "b", "pcie_nak", 1, NULL, now);
	mo_desc_init(&health_memory_desc, &m);
	health_save(again, &m);
	assert_in_range(m.n_counters, 1, MO_COUNTERS_MAX);
	assert_string_equal(m.counters[m.n_counters - 1].object, GPU0);
	mo_desc_done(&health_memory_desc, &m);
}

static void rates_survive_restarts(void **unused) {
	struct health_check c = check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 2);
	c.measure = MEASURE_PER_HOUR;
	struct health *h = make(&c, 1, 1);
	struct health_memory m;
	int64_t now = START;

	/* a flap each 20 minutes, and the agent starts anew after each look */
	for (int i = 0; i < 12; i++, now += 10 * MINUTE) {
		assert_int_equal(state(h, "gpu.rate", GPU0), i > 6 ? CHECK_CRIT : CHECK_OK);
		probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 7 + i / 2, NULL, now);
		mo_desc_init(&health_memory_desc, &m);
		assert_true(health_unsaved(h));
		health_save(h, &m);
		health_free(h);
		h = reborn(&c, &m, "boot");
		mo_desc_done(&health_memory_desc, &m);
		probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 7 + i / 2, NULL, now + SECOND);
	}
	/* four hours without an agent: what came meanwhile is spread over them */
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 7, NULL, now + 240 * MINUTE);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_OK);
	/* three at once are three, however long it stood still before */
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 7, NULL, now + 600 * MINUTE);
	probe(h, PROBE_GPU, GPU0, "a", "pcie_nak", 12 + 10, NULL, now + 601 * MINUTE);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_CRIT);
	health_free(h);
}

static void rates(void **unused) {
	struct health_check c = check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_PER_HOUR;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	int64_t now = START;
	double n = 1e6;

	for (int i = 0; i < 400; i++, now += 30 * SECOND, n += 0.8)            /* 96 in an hour, for hours */
		probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_OK);
	for (int i = 0; i < 60; i++, now += 30 * SECOND, n += 1.2)
		probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_CRIT);
	for (int i = 0; i < 130; i++, now += 30 * SECOND)                      /* an hour of rest */
		probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_OK);
	probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n + 101, NULL, now);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_CRIT);
	probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", 0, NULL, now + SECOND);
	assert_int_equal(state(h, "gpu.rate", GPU0), CHECK_OK);
}

static void the_log_adds_up_over_looks_and_restarts(void **unused) {
	struct health_check c = check(0, "klog.hang", PROBE_KLOG, WHEN_PERIODIC, rule, 0);
	c.measure = MEASURE_SINCE_BOOT;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1), *again = NULL;
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
	probe(h, PROBE_KLOG, "host", NULL, "hang", 0, NULL, START + MINUTE);
	assert_int_equal(state(h, "klog.hang", "host"), CHECK_CRIT);           /* it is not over because no more lines come */
	assert_string_equal(result(h, "klog.hang", "host")->evidence[0], "ring sdma timeout");
	mo_desc_init(&health_memory_desc, &m);
	health_save(h, &m);
	assert_int_equal(m.klog_seq, 77);
	again = reborn(&c, &m, "boot");
	struct health_look l;
	bool asked = false;
	while (health_due(again, START, &l)) {
		asked |= l.area == PROBE_KLOG && l.since == 77;
		probe(again, l.area, l.object, NULL, l.area == PROBE_KLOG ? "hang" : NULL, 0, NULL, START);
	}
	assert_true(asked);
	assert_int_equal(state(again, "klog.hang", "host"), CHECK_CRIT);
	assert_string_equal(result(again, "klog.hang", "host")->evidence[0], "ring sdma timeout");
	mo_desc_done(&health_memory_desc, &m);
}

static void looks_come_as_often_as_they_should(void **unused) {
	struct health_check c = check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	size_t total = 0, most = 0;
	int64_t now = START;

	serve(h, now);
	for (int64_t end = START + 20 * MINUTE; now < end; ) {
		int64_t at = health_deadline(h);
		assert_true(at > now);                                         /* never spins */
		now = at;
		size_t n = serve(h, now);
		total += n;
		most = MO_MAX(most, n);
	}
	/* 2 GPUs every 30 s, sensors between at 5 s; host 60 s, log 10 s, stack 10 min */
	assert_in_range(total, 2 * 200 + 120 + 20 - 40, 2 * 240 + 120 + 20 + 40);
	assert_in_range(most, 1, 4);
}

static void a_stuck_device_is_left_alone(void **unused) {
	struct health_check c = check(0, "gpu.read", PROBE_GPU, WHEN_PERIODIC, problem, MO_NONE_F);
	c.measure = MEASURE_TEXT;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	struct health_look l;

	health_due(h, START, &l);
	assert_string_equal(l.object, GPU0);
	health_failed(h, PROBE_GPU, GPU0, "late", true, START + 5 * SECOND);
	for (int64_t now = START + 5 * SECOND; now < START + 5 * MINUTE; now += SECOND) {
		health_tick(h, now);
		while (health_due(h, now, &l)) {
			assert_false(l.area == PROBE_GPU && mo_streq(l.object, GPU0));
			probe(h, l.area, l.object, NULL, NULL, 0, NULL, now);
		}
	}
	assert_int_equal(state(h, "gpu.read", GPU0), CHECK_WARN);
	health_unstuck(h, PROBE_GPU, GPU0, START + 5 * MINUTE);
	serve(h, START + 6 * MINUTE);
	assert_int_equal(state(h, "gpu.read", GPU0), CHECK_OK);
}

static void orders(void **unused) {
	struct health_check checks[] = { check(0, "gpu.ue", PROBE_GPU, WHEN_FAILURE, ras_ue, 0), check(1, "perf", PROBE_HOST, WHEN_FAILURE, NULL, MO_NONE_F) };
	char *argv[] = { one };
	struct command order;
	struct health_look l;

	checks[1].argv = argv;
	checks[1].n_argv = 1;
	_cleanup_(health_freep) struct health *h = make(checks, 2, 1);
	mo_desc_init(&command_desc, &order);
	order.kind = CMD_CHECK;
	order.job = 7;
	order.attempt = 2;
	serve(h, START);
	assert_true(health_results(h)->failure_checks);
	assert_int_equal(health_results(h)->n_checked, 0);
	health_orders(h, &order, 1, START + SECOND);
	health_orders(h, &order, 1, START + SECOND);                           /* repeated until it is answered */
	assert_true(health_deadline(h) <= START + SECOND);
	serve(h, START + SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
	assert_int_equal(health_results(h)->checked[0].job, 7);
	health_orders(h, NULL, 0, START + 2 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	/* nobody answers: what is known after a minute is the answer */
	order.attempt = 3;
	health_orders(h, &order, 1, START + 3 * SECOND);
	while (health_due(h, START + 3 * SECOND, &l))
		continue;
	health_tick(h, START + 62 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	health_tick(h, START + 63 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
	/* of another boot */
	order.attempt = 4;
	order.boot_id = mo_strdup("earlier boot");
	health_orders(h, &order, 1, START + 64 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	mo_desc_done(&command_desc, &order);
}

static void programs_wait_for_a_free_node(void **unused) {
	struct health_check c = check(0, "perf", PROBE_HOST, WHEN_PREFLIGHT, NULL, MO_NONE_F);
	static char match[] = "rate ([0-9.]+)";
	char *argv[] = { one };
	struct health_look l;

	c.argv = argv;
	c.n_argv = 1;
	c.match = match;
	c.crit_below = 3;
	c.consecutive = 2;
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);
	bool found = false;
	health_busy(h, (int64_t[]){ 0 }, 1, 1, START);
	assert_true(health_results(h)->preflight_done);                        /* the node's other GPU may be used */
	assert_true(serve(h, START) > 0);
	health_busy(h, NULL, 0, 0, START + MINUTE);
	while (health_due(h, START + MINUTE, &l)) {
		found |= l.program && l.exclusive;
		if (!l.program)
			probe(h, l.area, l.object, NULL, NULL, 0, NULL, START + MINUTE);
		else
			health_program(h, "perf", 0, "rate 3.5\nrate 2.5\n", 18, NULL, START + MINUTE);
	}
	assert_true(found);
	assert_int_equal(state(h, "perf", "host"), CHECK_CRIT);                /* asked again at once, because it takes two */
	assert_non_null(strstr(result(h, "perf", "host")->text, "2.5"));
	health_program(h, "perf", 9, "", 0, "it did not finish in time", START + 2 * MINUTE);
	assert_int_equal(state(h, "perf", "host"), CHECK_CRIT);
}

static void sensors(void **unused) {
	_cleanup_(health_freep) struct health *h = make(NULL, 0, 1);
	struct gpu_sensors *s = NULL;
	size_t n = 0;
	struct probe p;

	for (int i = 0; i < 2; i++) {
		mo_desc_init(&probe_desc, &p);
		p.area = PROBE_GPU;
		p.object = mo_strdup(GPU1);
		reading_add(&p, "temp_junction_c", 61);
		reading_add(&p, "metrics_counter", 1000 + i * 100);
		reading_add(&p, "ppt_residency", 900 + i * 90);
		reading_add(&p, "hbm_thm_residency", 50 + i * 2);
		reading_add(&p, "ras_ce", 12);
		health_probe(h, &p, START + i);
		mo_desc_done(&probe_desc, &p);
	}
	health_sensors(h, &s, &n);
	assert_int_equal(n, 1);
	assert_int_equal(s->slot, 1);
	assert_int_equal(s->ce, 12);
	assert_int_equal(s->ue, MO_NONE);
	assert_true(s->temp_c > 60 && s->throttle_pct > 1.99 && s->throttle_pct < 2.01);      /* heat, not the power limit */
	mo_vec_clear(&gpu_sensors_desc, (void **)&s, &n);
	health_sensors(h, &s, &n);
	assert_int_equal(n, 0);
}

static void kill_switch(void **unused) {
	struct health_check c = check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = make(&c, 1, 1);

	assert_false(health_disable(h, "gpu.eu"));
	assert_true(health_disable(h, "gpu.ue"));
	probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 5, NULL, START);
	assert_int_equal(health_results(h)->n_results, 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_in_a_row), cmocka_unit_test(a_finding_that_does_not_count_yet_is_looked_at_in_30_s), cmocka_unit_test(unknown_never_acts_alone), cmocka_unit_test(versions),
		cmocka_unit_test(preflight_is_made_once_a_boot), cmocka_unit_test(baselines), cmocka_unit_test(what_was_before_the_first_look), cmocka_unit_test(baselines_are_bounded), cmocka_unit_test(rates_survive_restarts), cmocka_unit_test(rates), cmocka_unit_test(the_log_adds_up_over_looks_and_restarts), cmocka_unit_test(looks_come_as_often_as_they_should),
		cmocka_unit_test(a_stuck_device_is_left_alone), cmocka_unit_test(orders), cmocka_unit_test(programs_wait_for_a_free_node), cmocka_unit_test(sensors), cmocka_unit_test(kill_switch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
