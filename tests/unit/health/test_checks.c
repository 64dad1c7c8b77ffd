/* Every check of config/health as it ships: a reading just inside each of its limits and one just
 * outside. And real recordings of GPUs under load. */
#include "tests/unit/unit.h"
#include <math.h>
#include <string.h>
#include "agent/core/health/gpu_metrics.h"
#include "agent/core/health/health.h"
#include "agent/core/health/reading.h"
#include "daemon/core/state/health.h"
#include "lib/base/fd.h"
#include "lib/recipe/health_file.h"

#define MINUTE 60000000LL
#define HOUR (60 * MINUTE)

static struct health_checks all;

static int load(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	mo_desc_init(&health_checks_desc, &all);
	if (health_checks_load(&all, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int unload(void **state)
{
	mo_desc_done(&health_checks_desc, &all);
	return 0;
}

/* ---- a node with three GPUs, one card, and one check that is looked at at every probe */
struct bed {
	struct health *h;
	struct health_check check;
	int64_t now;
};

static void bed_open(struct bed *b, const struct health_check *c)
{
	static char nic[] = "mlx5_0", *bdfs[] = { (char *)"0000:01:00.0", (char *)"0000:02:00.0",
						  (char *)"0000:03:00.0" };
	const struct health_intervals every = {
		.sensors_us = HOUR, .device_us = HOUR, .host_us = HOUR, .klog_us = HOUR
	};
	struct gpu_slot gpus[3];
	struct nic_info card;
	struct nodeinfo info;

	mo_desc_init(&nodeinfo_desc, &info);
	mo_desc_init(&nic_info_desc, &card);
	card.name = nic;
	for (size_t i = 0; i < 3; i++) {
		mo_desc_init(&gpu_slot_desc, &gpus[i]);
		gpus[i].index = (int64_t)i;
		gpus[i].bdf = bdfs[i];
		gpus[i].nic = nic;
	}
	info.gpus = gpus;
	info.n_gpus = 3;
	info.nics = &card;
	info.n_nics = 1;
	mo_desc_init(&health_check_desc, &b->check);
	mo_desc_copy(&health_check_desc, &b->check, c);
	b->check.when = WHEN_PERIODIC;
	b->check.consecutive = 1;
	b->check.enabled = true;
	b->now = HOUR;
	b->h = health_new(&(struct health_checks){ &b->check, 1 }, "boot", &every, 1);
	health_devices(b->h, &info, 0, b->now);
}

static void bed_close(struct bed *b)
{
	health_free(b->h);
	mo_desc_done(&health_check_desc, &b->check);
}

static const char *object_of(const struct bed *b, size_t i)
{
	static const char *const bdfs[] = { "0000:01:00.0", "0000:02:00.0", "0000:03:00.0" };
	return b->check.area == PROBE_GPU   ? bdfs[i]
	       : b->check.area == PROBE_NIC ? "mlx5_0"
					    : "host";
}

/* One look; text != NULL: the reading is it. */
static void look(struct bed *b, size_t object, double value, double of, const char *text)
{
	struct probe p;
	const char *reading = b->check.reading;
	size_t n = strlen(reading);
	_cleanup_(mo_freep) char *key = n > 2 && reading[n - 1] == '*'
						? mo_printf("%.*s0", (int)n - 1, reading)
						: mo_strdup(reading);

	mo_desc_init(&probe_desc, &p);
	p.area = b->check.area;
	p.object = mo_strdup(object_of(b, object));
	if (text && mo_streq(key, "problem"))
		p.problem = mo_strdup(text);
	else if (text && mo_streq(key, "discovery"))
		health_discovery(b->h, text, false, b->now);
	else if (text)
		reading_add_text(&p, key, text);
	else
		reading_add(&p, key, value);
	if (b->check.of && b->check.measure == MEASURE_TEXT)
		reading_add_text(&p, b->check.of, "as expected");
	else if (b->check.of)
		reading_add(&p, b->check.of, of);
	health_probe(b->h, &p, b->now);
	mo_desc_done(&probe_desc, &p);
}

static int state_of(struct bed *b)
{
	const struct node_health *n = health_results(b->h);
	return n->n_results ? n->results[0].state : CHECK_OK;
}

/* The state after readings whose measure is x. */
static int measured(const struct health_check *c, double x)
{
	struct bed b;

	bed_open(&b, c);
	switch (c->measure) {
	case MEASURE_SINCE_BOOT:
		look(&b, 0, c->area == PROBE_KLOG || c->history ? 0 : 1000, 0, NULL);
		b.now += MINUTE;
		look(&b, 0, c->area == PROBE_KLOG || c->history ? x : 1000 + x, 0, NULL);
		break;
	case MEASURE_PER_HOUR: {
		double growth = x * (double)c->window_us / HOUR;
		look(&b, 0, c->area == PROBE_KLOG ? 0 : 1000, 0, NULL);
		b.now += 10 * MINUTE;
		look(&b, 0, c->area == PROBE_KLOG ? growth : 1000 + growth, 0, NULL);
		break;
	}
	case MEASURE_SHARE:
		/* 100 % as an absolute value, as real firmware says at idle */
		look(&b, 0, 1e6, 1e6, NULL);
		assert_int_equal(state_of(&b), CHECK_OK);
		b.now += MINUTE;
		look(&b, 0, 1e6 + x * 1e6, 2e6, NULL);
		break;
	case MEASURE_LESS_OF: look(&b, 0, 1000 - x, 1000, NULL); break;
	case MEASURE_RATIO_OF: look(&b, 0, x * 100, 100, NULL); break;
	default: look(&b, 0, x, 0, NULL);
	}
	int state = state_of(&b);
	const struct node_health *n = health_results(b.h);
	if (state != CHECK_OK) {
		assert_string_equal(n->results[0].check, c->id);
		assert_non_null(n->results[0].text);
		assert_string_equal(n->results[0].next, c->next);
		assert_true(mo_starts_with(n->results[0].text, c->what));
	}
	bed_close(&b);
	return state;
}

static void limit(const struct health_check *c, double value, double direction, int beyond)
{
	double step = fmax(fabs(value) * 1e-5, 1e-4);

	if (value == MO_NONE_F)
		return;
	double inside = value - direction * step;
	if (c->measure == MEASURE_PER_HOUR || c->measure == MEASURE_SINCE_BOOT)
		inside = fmax(inside, 0); /* counters do not shrink */
	if (measured(c, inside) >= beyond)
		fail_msg("%s: %g is inside of %g", c->id, inside, value);
	if (measured(c, value + direction * step) < beyond)
		fail_msg("%s: %g is beyond %g", c->id, value + direction * step, value);
}

static void each_limit(void **state)
{
	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		if (c->n_argv || c->measure == MEASURE_SAME || c->measure == MEASURE_TEXT)
			continue;
		limit(c, c->warn_above, 1, CHECK_WARN);
		limit(c, c->crit_above, 1, CHECK_CRIT);
		limit(c, c->warn_below, -1, CHECK_WARN);
		limit(c, c->crit_below, -1, CHECK_CRIT);
	}
}

/* What a counter shows at the first look, and that it then stands still; a rise on top of it. */
static int history_of(const struct health_check *c, double first, double more)
{
	struct bed b;

	bed_open(&b, c);
	look(&b, 0, first, 0, NULL);
	b.now += MINUTE;
	look(&b, 0, first + more, 0, NULL);
	int state = state_of(&b);
	bed_close(&b);
	return state;
}

static void counters_begin_at_the_first_pass(void **state)
{
	static const struct {
		const char *id;
		int history, rise;
	} reported[] = {
		{ "gpu.ras_ue", CHECK_CRIT, CHECK_CRIT },
		{ "gpu.poison", CHECK_WARN, CHECK_CRIT },
		{ "gpu.pcie_nak", CHECK_WARN, CHECK_WARN },
		{ "gpu.pcie_recovery", CHECK_WARN, CHECK_WARN },
		{ "gpu.aer_nonfatal", CHECK_WARN, CHECK_WARN },
		{ "gpu.aer_fatal", CHECK_WARN, CHECK_CRIT },
		{ "gpu.xgmi_error", CHECK_WARN, CHECK_CRIT },
		{ "nic.flapped", CHECK_WARN, CHECK_WARN },
		{ "host.edac_ue", CHECK_CRIT, CHECK_CRIT },
	};
	/* kept over boots: how it is, not what happened */
	static const char *const states[] = { "bad_pages_pending", "bad_pages_failed",
					      "bad_pages_retired" };
	static const char *const counts[] = { "ras_",     "poison_",  "aer_",       "pcie_replay",
					      "pcie_nak", "pcie_l0",  "xgmi_error", "edac_",
					      "link_",    "carrier_", "symbol_",    "rcv_",
					      "out_of",   "local_ack" };
	size_t found = 0;

	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		for (size_t k = 0; c->reading && k < ELEMENTSOF(counts); k++)
			if (mo_starts_with(c->reading, counts[k]) &&
			    c->measure != MEASURE_SINCE_BOOT && c->measure != MEASURE_PER_HOUR)
				fail_msg("%s judges the counter %s by its absolute value", c->id,
					 c->reading);
		for (size_t k = 0; c->reading && k < ELEMENTSOF(states); k++)
			assert_true(!mo_streq(c->reading, states[k]) ||
				    c->measure == MEASURE_VALUE);
		if (c->measure != MEASURE_SINCE_BOOT || c->area == PROBE_KLOG)
			continue;
		size_t k = 0;
		while (k < ELEMENTSOF(reported) && !mo_streq(reported[k].id, c->id))
			k++;
		assert_true(k < ELEMENTSOF(reported));
		found++;
		assert_int_equal(history_of(c, 1000, 0), reported[k].history);
		assert_int_equal(history_of(c, 1000, 1000), reported[k].rise);
		assert_int_equal(history_of(c, 0, 0), CHECK_OK);
	}
	assert_int_equal(found, ELEMENTSOF(reported));
}

/* ---- after an undrain */

/* An operator gave the node back while the check found `then`: would what it finds now cordon
 * it? */
static bool cordons_again(const struct check_result *then, struct node_health *now)
{
	struct node n;
	bool again;

	mo_desc_init(&node_desc, &n);
	_cleanup_(mo_freep) char *name = finding_name(then);
	mo_strs_add(&n.findings.waived, &n.findings.n_waived, name);
	mo_ints_add(&n.findings.waived_counts, &n.findings.n_waived_counts, then->count);
	n.health = now;
	again = health_cordon_reason(&n) != NULL;
	n.health = NULL;
	mo_desc_done(&node_desc, &n);
	return again;
}

/* So that the check measures x; of the log, and what is missing, in its own way. */
static void look_at(struct bed *b, double x)
{
	if (b->check.measure == MEASURE_LESS_OF)
		look(b, 0, 1000 - x, 1000, NULL);
	else
		look(b, 0, x, 1000, NULL);
	b->now += MINUTE;
}

/* CRIT, an undrain, the same again; then one more, one less, and again one more. */
static void rise(const struct health_check *c, bool counts)
{
	const double worst = c->crit_above + 1, log = c->area == PROBE_KLOG;
	struct check_result then;
	struct bed b;

	bed_open(&b, c);
	mo_desc_init(&check_result_desc, &then);
	look_at(&b, 0);
	look_at(&b, worst);
	if (state_of(&b) != CHECK_CRIT)
		fail_msg("%s: %g is not CRIT", c->id, worst);
	mo_desc_copy(&check_result_desc, &then, &health_results(b.h)->results[0]);
	look_at(&b, log ? 0 : worst);
	if (cordons_again(&then, (struct node_health *)health_results(b.h)))
		fail_msg("%s cordons again although nothing happened", c->id);
	look_at(&b, log ? 1 : worst + 1);
	if (cordons_again(&then, (struct node_health *)health_results(b.h)) != counts)
		fail_msg("%s %s after one more", c->id,
			 counts ? "does not cordon again" : "cordons again");
	/* fewer: better than what the operator saw; then as bad, which is worse than it was */
	if (c->rises) {
		mo_desc_copy(&check_result_desc, &then, &health_results(b.h)->results[0]);
		look_at(&b, worst);
		assert_false(cordons_again(&then, (struct node_health *)health_results(b.h)));
		look_at(&b, worst + 1);
		assert_true(cordons_again(&then, (struct node_health *)health_results(b.h)));
	}
	mo_desc_done(&check_result_desc, &then);
	bed_close(&b);
}

/* Every check that cordons for a number says what one more means. Those that do not count are
 * measured anew at each look, and are what they are. */
static void one_more_after_an_undrain(void **state)
{
	static const char *const measured_anew[] = {
		"gpu.hot",
		"gpu.throttle_prochot",
		"gpu.throttle_socket",
		"gpu.throttle_vr",
		"gpu.throttle_hbm",
		"gpu.vram_held",
		"gpu.kfd_left",
		"nic.gid",
		"host.driver",
		"host.mem",
		"host.mem_total",
		"host.memlock",
		"host.shm",
		"host.disk",
		"host.disk_readonly",
	};
	size_t anew = 0, counted = 0;

	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		size_t k = 0;
		if (c->action != ACTION_CORDON || c->n_argv || c->measure == MEASURE_SAME ||
		    c->measure == MEASURE_TEXT)
			continue;
		while (k < ELEMENTSOF(measured_anew) && !mo_streq(measured_anew[k], c->id))
			k++;
		anew += k < ELEMENTSOF(measured_anew);
		counted += k == ELEMENTSOF(measured_anew);
		if (c->crit_above != MO_NONE_F && c->measure != MEASURE_SHARE)
			rise(c, k == ELEMENTSOF(measured_anew));
		else
			assert_true(k < ELEMENTSOF(measured_anew));
	}
	assert_int_equal(anew, ELEMENTSOF(measured_anew));
	assert_in_range(counted, 25, 60);
}

static void each_text(void **state)
{
	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		struct bed b;
		if (c->measure != MEASURE_TEXT || c->n_argv)
			continue;
		for (size_t k = 0; k < c->n_expect; k++) {
			bed_open(&b, c);
			look(&b, 0, 0, 0, c->expect[k]);
			assert_int_equal(state_of(&b), CHECK_OK);
			bed_close(&b);
		}
		if (c->of) {
			bed_open(&b, c);
			look(&b, 0, 0, 0, "as expected");
			assert_int_equal(state_of(&b), CHECK_OK);
			bed_close(&b);
		}
		bed_open(&b, c);
		look(&b, 0, 0, 0, "something else");
		assert_int_equal(state_of(&b), c->otherwise);
		bed_close(&b);
	}
}

static void each_same(void **state)
{
	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		struct bed b;
		if (c->measure != MEASURE_SAME)
			continue;
		assert_int_equal(c->area, PROBE_GPU);
		bed_open(&b, c);
		/* the first to answer is the odd one */
		look(&b, 0, 0, 0, "odd");
		look(&b, 1, 0, 0, "usual");
		assert_int_equal(state_of(&b), CHECK_OK); /* not before all have answered */
		look(&b, 2, 0, 0, "usual");
		const struct node_health *n = health_results(b.h);
		assert_int_equal(n->n_results, 1);
		assert_int_equal(n->results[0].state, c->otherwise);
		assert_string_equal(n->results[0].object, "0000:01:00.0");
		look(&b, 0, 0, 0, "usual");
		assert_int_equal(state_of(&b), CHECK_OK);
		bed_close(&b);
	}
}

static void absent_readings_are_fine(void **state)
{
	for (size_t i = 0; i < all.n_checks; i++) {
		struct bed b;
		struct probe p;
		if (all.checks[i].n_argv)
			continue;
		bed_open(&b, &all.checks[i]);
		mo_desc_init(&probe_desc, &p);
		p.area = b.check.area;
		p.object = mo_strdup(object_of(&b, 0));
		health_probe(b.h, &p, b.now);
		mo_desc_done(&probe_desc, &p);
		/* nothing is expected */
		assert_int_equal(state_of(&b),
				 all.checks[i].of && all.checks[i].measure == MEASURE_TEXT
					 ? CHECK_OK
					 : all.checks[i].absent);
		bed_close(&b);
	}
}

static void about_forty_and_the_kernel_log(void **state)
{
	size_t cordon = 0, klog = 0;

	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		assert_true(c->what && c->next && c->source && c->when);
		cordon += c->action == ACTION_CORDON;
		klog += c->area == PROBE_KLOG && mo_starts_with(c->id, "klog.");
	}
	assert_in_range(all.n_checks - klog, 50, 90);
	assert_in_range(cordon, 30, 70);
	assert_in_range(klog, 20, 41);
}

/* No AMD GPU was there when these were written: what reads one does not cordon a new node. */
static void what_never_met_an_amd_gpu_says_so(void **state)
{
	size_t unproven = 0;

	for (size_t i = 0; i < all.n_checks; i++) {
		const struct health_check *c = &all.checks[i];
		bool of_gpu = c->area == PROBE_GPU || mo_starts_with(c->id, "perf.");

		unproven += !c->proven;
		if (c->action == ACTION_CORDON && of_gpu && c->proven)
			fail_msg("%s reads a GPU: it needs proven: false", c->id);
		if (!c->proven &&
		    (c->action != ACTION_CORDON || c->area == PROBE_KLOG || c->area == PROBE_NIC))
			fail_msg("%s: proven: false says nothing here", c->id);
	}
	assert_int_equal(unproven, 28);
}

/* ---- recordings */

static bool recorded(const char *name, struct probe *p)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path =
		mo_printf("%s/../shared/data/hardware/gpu_metrics/%s", MO_SOURCE_DIR, name);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct gpu_metrics m;

	if (mo_read_file(path, GPU_METRICS_BYTES_MAX, &b) < 0)
		return false;
	gpu_metrics_decode(b.data, b.len, &m, &err);
	gpu_metrics_readings(&m, p);
	return true;
}

static size_t findings(const char *first, const char *second)
{
	const struct health_intervals every = {
		.sensors_us = HOUR, .device_us = MINUTE / 2, .host_us = HOUR, .klog_us = HOUR
	};
	const char *const names[] = { first, second };
	static char bdf[] = "0000:01:00.0";
	struct gpu_slot gpu;
	struct nodeinfo info;
	struct health *h = health_new(&all, "boot", &every, 1);
	size_t n = 0;

	mo_desc_init(&gpu_slot_desc, &gpu);
	mo_desc_init(&nodeinfo_desc, &info);
	gpu.bdf = bdf;
	gpu.index = 0;
	info.gpus = &gpu;
	info.n_gpus = 1;
	health_devices(h, &info, 0, HOUR);
	for (size_t i = 0; i < 2; i++) {
		struct probe p;
		mo_desc_init(&probe_desc, &p);
		p.area = PROBE_GPU;
		p.object = mo_strdup(bdf);
		reading_add(&p, "temp_junction_crit_c", 100);
		reading_add(&p, "power_cap_w", 750);
		if (recorded(names[i], &p))
			health_probe(h, &p, HOUR + (int64_t)i * MINUTE / 2);
		mo_desc_done(&probe_desc, &p);
	}
	n = health_results(h)->n_results;
	health_free(h);
	return n;
}

static void a_loaded_gpu_at_its_power_limit_is_normal(void **state)
{
	assert_int_equal(findings("recon-mi300x-v1_9-load_a.bin", "recon-mi300x-v1_9-load_b.bin"),
			 0);
	assert_int_equal(findings("recon-mi300x-v1_6-idle.bin", "recon-mi300x-v1_6-idle.bin"), 0);
	assert_int_equal(findings("recon-mi300x-v1_9-idle.bin", "recon-mi300x-v1_9-load_a.bin"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_limit),
		cmocka_unit_test(counters_begin_at_the_first_pass),
		cmocka_unit_test(one_more_after_an_undrain),
		cmocka_unit_test(each_text),
		cmocka_unit_test(each_same),
		cmocka_unit_test(absent_readings_are_fine),
		cmocka_unit_test(about_forty_and_the_kernel_log),
		cmocka_unit_test(what_never_met_an_amd_gpu_says_so),
		cmocka_unit_test(a_loaded_gpu_at_its_power_limit_is_normal),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
