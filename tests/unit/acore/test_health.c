/* Probes, findings and what is reported of them, in virtual time. */
#include "tests/unit/acore/health_bed.h"

static char ras_ue[] = "ras_ue", problem[] = "problem", vram[] = "vram_held_bytes",
	    nak[] = "pcie_nak", one[] = "x";

/* Answers everything that is due; how many probes that were. */
static size_t serve(struct health *h, int64_t now)
{
	struct health_pass l;
	size_t n = 0;

	health_tick(h, now);
	while (health_due(h, now, &l)) {
		n++;
		if (l.program)
			health_program(h, l.program->id, 0, "fine", 4, NULL, now);
		else
			bed_probe(h, l.area, l.object, NULL, "read_ms", 1, NULL, now);
	}
	return n;
}

static void findings_in_a_row(void **unused)
{
	struct health_check c =
		bed_check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC | WHEN_PREFLIGHT, ras_ue, 0);
	c.consecutive = 3;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);

	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 1);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_OK);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 2); /* begins anew */
	for (int i = 0; i < 2; i++)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 3 + i);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_OK);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 5);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_CRIT);
	assert_string_equal(bed_result(h, "gpu.ue", GPU0)->text, "it is bad: ras_ue is 1, above 0");
	assert_string_equal(bed_result(h, "gpu.ue", GPU0)->evidence[0], "ras_ue = 1");
	assert_int_equal(bed_result(h, "gpu.ue", GPU0)->when, WHEN_PERIODIC | WHEN_PREFLIGHT);
	assert_int_equal(bed_state(h, "gpu.ue", GPU1), CHECK_OK);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 6);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_OK);
}

static void a_finding_that_does_not_count_yet_is_looked_at_in_30_s(void **unused)
{
	struct health_check c = bed_check(0, "gpu.vram", PROBE_GPU, WHEN_PREFLIGHT, vram, 2e9);
	c.consecutive = 2;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	struct health_pass l;

	serve(h, START);
	assert_true(health_results(h)->preflight_done);
	while (!health_due(h, START + 50 * SECOND, &l) || l.sensors || !mo_streq(l.object, GPU0) ||
	       l.area != PROBE_GPU)
		bed_probe(h, l.area, l.object, NULL, NULL, 0, NULL, START + 50 * SECOND);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", 2.1e10, NULL, START + 50 * SECOND);
	assert_false(health_results(h)->preflight_done);
	assert_int_equal(bed_state(h, "gpu.vram", GPU0), CHECK_OK);
	serve(h, START + 50 * SECOND);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", 2.1e10, NULL, START + 80 * SECOND);
	assert_int_equal(bed_state(h, "gpu.vram", GPU0), CHECK_CRIT);
	assert_true(health_results(h)->preflight_done);
}

/* A GPU of slot 0 whose memory is held after a job: the check gives it 30 s. */
static struct health *left_by_a_job(double held_before)
{
	static char id[] = "gpu.vram_held";
	int64_t slot = 0;
	struct health_check c =
		bed_check(0, id, PROBE_GPU, WHEN_PREFLIGHT | WHEN_FAILURE | WHEN_EPILOG, vram, 2e9);
	c.consecutive = 2;
	c.settle_us = 30 * SECOND;
	struct health *h = bed_make(&c, 1, 1);

	serve(h, START);
	for (int i = 0; i < 2; i++)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", held_before, NULL,
			  START + i);
	health_busy(h, &slot, 1, 1, START + SECOND);
	health_busy(h, NULL, 0, 0, START + MINUTE);
	return h;
}

/* Probes what is due of the GPU; false: nothing is. */
static bool read_vram(struct health *h, double bytes, int64_t now)
{
	struct health_pass l;
	bool any = false;

	while (health_due(h, now, &l)) {
		bool own = l.area == PROBE_GPU && !strcmp(l.object, GPU0);

		any |= own && !l.sensors;
		bed_probe(h, l.area, l.object, NULL, own ? "vram_used_bytes" : "x", own ? bytes : 1,
			  NULL, now);
	}
	return any;
}

static enum health_release asked(struct health *h, int64_t since, int64_t now, const char *says)
{
	int64_t slot = 0;
	_cleanup_(mo_freep) char *text = NULL;
	enum health_release r = health_release(h, &slot, 1, since, now, &text);

	assert_int_equal(text == NULL, r == RELEASE_DONE);
	if (says)
		assert_non_null(strstr(text, says));
	return r;
}

static void a_gpu_is_given_back_late(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
	int64_t left = START + MINUTE;

	assert_int_equal(asked(h, left, left, "not looked at yet"), RELEASE_WAITS);
	for (int64_t s = 0; s < 20; s++) {
		assert_true(read_vram(h, 2.1e10, left + s * SECOND)); /* each second */
		assert_int_equal(asked(h, left, left + s * SECOND, GPU0), RELEASE_WAITS);
		assert_int_equal(bed_state(h, "gpu.vram_held", GPU0), CHECK_OK);
	}
	assert_true(read_vram(h, 3e8, left + 20 * SECOND));
	assert_int_equal(asked(h, left, left + 20 * SECOND, NULL), RELEASE_DONE);
	assert_false(read_vram(h, 3e8, left + 22 * SECOND));
}

static void a_gpu_is_not_given_back(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
	int64_t left = START + MINUTE, late = left + 40 * SECOND;

	for (int64_t s = 0; s < 30; s++) {
		read_vram(h, 2.1e10, left + s * SECOND);
		assert_int_equal(asked(h, left, left + s * SECOND, "19.6 GiB"), RELEASE_WAITS);
	}
	assert_true(read_vram(h, 2.1e10, left + 30 * SECOND));
	assert_int_equal(bed_state(h, "gpu.vram_held", GPU0), CHECK_CRIT);
	assert_int_equal(asked(h, left, left + 30 * SECOND, "after 30 s: "), RELEASE_NOT);
	/* the controller knows; a launch that comes all the same is wanted */
	assert_int_equal(asked(h, late, late, NULL), RELEASE_DONE);
}

/* Nobody asked while it was found; who asks later gets the word of now. */
static void who_comes_late_gets_the_word_of_now(void **unused)
{
	for (int given_back = 0; given_back < 2; given_back++) {
		_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
		int64_t left = START + MINUTE, late = left + 40 * SECOND;

		for (int64_t s = 0; s < 32; s++)
			read_vram(h, 2.1e10, left + s * SECOND);
		assert_int_equal(bed_state(h, "gpu.vram_held", GPU0), CHECK_CRIT);
		assert_int_equal(asked(h, late, late, GPU0), RELEASE_WAITS);
		assert_true(read_vram(h, given_back ? 3e8 : 2.1e10, late));
		if (given_back)
			assert_int_equal(asked(h, late, late, NULL), RELEASE_DONE);
		else
			assert_int_equal(asked(h, late, late, "19.6 GiB"), RELEASE_NOT);
	}
}

/* The next job takes the GPU, with what nobody gave back before: that is no longer news. */
static void what_was_refused_is_asked_anew_after_the_next_job(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
	int64_t slot = 0, left = START + MINUTE;

	for (int64_t s = 0; s < 32; s++)
		read_vram(h, 2.1e10, left + s * SECOND);
	assert_int_equal(asked(h, left, left + 32 * SECOND, GPU0), RELEASE_NOT);
	read_vram(h, 3e8, left + 2 * MINUTE);
	health_busy(h, &slot, 1, 1, left + 3 * MINUTE);
	health_busy(h, NULL, 0, 0, left + 4 * MINUTE);
	read_vram(h, 2.1e10, left + 4 * MINUTE);
	assert_int_equal(asked(h, left + 4 * MINUTE, left + 4 * MINUTE, GPU0), RELEASE_WAITS);
}

static void what_was_held_before_a_job_is_not_left_by_it(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(2.1e10);
	int64_t left = START + MINUTE;

	read_vram(h, 2.1e10, left);
	assert_int_equal(asked(h, left, left, NULL), RELEASE_DONE);
}

static void what_cannot_be_read_holds_nothing_up(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8), *other = left_by_a_job(3e8),
					      *third = left_by_a_job(3e8);
	int64_t left = START + MINUTE, slot = 0;

	health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", true, left);
	assert_int_equal(asked(h, left, left, NULL), RELEASE_DONE);
	/* nor what could be read before, and now cannot */
	read_vram(third, 2.1e10, left);
	assert_int_equal(asked(third, left, left, GPU0), RELEASE_WAITS);
	health_failed(third, PROBE_GPU, GPU0, "moe-probe did not finish", false, left + SECOND);
	assert_int_equal(asked(third, left, left + SECOND, NULL), RELEASE_DONE);
	/* nor does the GPU of a job that runs */
	health_busy(other, &slot, 1, 1, left);
	assert_int_equal(asked(other, left, left, NULL), RELEASE_DONE);
}

/* However the driver's answer fails to come: who is to start does not wait for it without end. */
static void nobody_waits_for_a_look_without_end(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
	int64_t left = START + MINUTE;
	struct health_pass l;

	while (health_due(h, left, &l))
		;
	assert_int_equal(asked(h, left, left + 39 * SECOND, "not looked at"), RELEASE_WAITS);
	assert_int_equal(asked(h, left, left + 40 * SECOND, NULL), RELEASE_DONE);
}

/* A job that runs keeps what it has: whoever else ended does not count against its GPU, and what
 * was only suspected is no more. */
static void a_gpu_in_use_is_not_judged(void **unused)
{
	struct health_check c =
		bed_check(0, "gpu.kfd_left", PROBE_GPU, WHEN_PREFLIGHT | WHEN_FAILURE, one, 0);
	const struct command order = { .kind = CMD_CHECK, .job = 7, .attempt = 1 };
	int64_t slot = 0;
	c.consecutive = 2;
	c.settle_us = 30 * SECOND;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);

	bed_probe(h, PROBE_GPU, GPU1, NULL, "x", 0, NULL, START);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "x", 1, NULL, START);
	assert_false(health_results(h)->preflight_done);
	health_busy(h, &slot, 1, 1, START + SECOND);
	health_orders(h, &order, 1, START + MINUTE);
	for (int i = 0; i < 3; i++)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "x", 1, NULL, START + (2 + i) * MINUTE);
	assert_int_equal(bed_state(h, "gpu.kfd_left", GPU0), CHECK_OK);
	assert_true(health_results(h)->preflight_done);
}

/* What is looked at every second does not keep the other GPUs from being looked at. */
static void who_is_due_longest_is_next(void **unused)
{
	_cleanup_(health_freep) struct health *h = left_by_a_job(3e8);
	int64_t left = START + MINUTE;
	struct health_pass l;
	size_t n = 0;

	read_vram(h, 2.1e10, left);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "vram_used_bytes", 2.1e10, NULL, left + 20 * SECOND);
	while (health_due(h, left + 25 * SECOND, &l) && ++n)
		assert_int_equal(n == 3, l.area == PROBE_GPU && mo_streq(l.object, GPU0));
	assert_int_equal(n, 3);
}

/* A site's own words may be long: what is said of a wait, and of a refusal, is no longer than a
 * message takes. */
static void what_is_found_is_told_in_short(void **unused)
{
	static char words[4000];
	struct health_check c = bed_check(0, "gpu.left", PROBE_GPU, WHEN_PREFLIGHT, vram, 2e9);
	int64_t slot = 0, left = START + MINUTE;
	_cleanup_(mo_freep) char *text = NULL;

	memset(words, 'w', sizeof(words) - 1);
	c.what = words;
	c.consecutive = 2;
	c.settle_us = 30 * SECOND;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);

	serve(h, START);
	health_busy(h, &slot, 1, 1, START + SECOND);
	health_busy(h, NULL, 0, 0, left);
	read_vram(h, 2.1e10, left);
	assert_int_equal(health_release(h, &slot, 1, left, left, &text), RELEASE_WAITS);
	assert_true(strlen(text) <= MO_TEXT_MAX / 2);
}

static void unknown_never_acts_alone(void **unused)
{
	const struct health_check c[] = {
		bed_check(0, "gpu.read", PROBE_GPU, WHEN_PERIODIC, problem, MO_NONE_F),
		bed_check(1, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0)
	};
	struct health_check checks[2] = { c[0], c[1] };
	checks[0].measure = MEASURE_TEXT;
	checks[0].action = ACTION_CORDON;
	_cleanup_(health_freep) struct health *h = bed_make(checks, 2, 1);

	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 2, NULL, START);
	for (int i = 0; i < 2; i++) {
		health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false,
			      START + i);
		assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_UNKNOWN);
	}
	health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false, START + 2);
	/* and never more */
	assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_WARN);
	for (int i = 3; i < 30; i++)
		health_failed(h, PROBE_GPU, GPU0, "moe-probe did not finish in time", false,
			      START + i);
	assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_WARN);
	/* an earlier finding stays */
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_CRIT);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "power_w", 5, "ras: Device or resource busy",
		  START + 40);
	/* unreadable for the moment is not fine */
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_CRIT);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + 41);
	assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_OK);
	assert_int_equal(bed_state(h, "gpu.ue", GPU0), CHECK_OK);
}

static void versions(void **unused)
{
	struct health_check c = bed_check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 50);
	int64_t v;

	serve(h, START);
	v = health_results(h)->version;
	assert_true(v >= 50 && health_untold(h));
	health_acked(h, v);
	assert_false(health_untold(h));
	for (int i = 1; i < 100; i++)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 0, NULL, START + i * SECOND);
	assert_int_equal(health_results(h)->version, v);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 1, NULL, START + 200 * SECOND);
	assert_int_equal(health_results(h)->version, v + 1);
	/* its text is not news yet */
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 2, NULL, START + 230 * SECOND);
	assert_int_equal(health_results(h)->version, v + 1);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 3, NULL, START + 900 * SECOND);
	assert_int_equal(health_results(h)->version, v + 2);
	assert_non_null(strstr(bed_result(h, "gpu.ue", GPU0)->text, "is 3"));
	health_acked(h, MO_NONE);
	assert_true(health_untold(h));
}

static void rates(void **unused)
{
	struct health_check c = bed_check(0, "gpu.rate", PROBE_GPU, WHEN_PERIODIC, nak, 100);
	c.measure = MEASURE_PER_HOUR;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	int64_t now = START;
	double n = 1e6;

	/* 96 in an hour, for hours */
	for (int i = 0; i < 400; i++, now += 30 * SECOND, n += 0.8)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_OK);
	for (int i = 0; i < 60; i++, now += 30 * SECOND, n += 1.2)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_CRIT);
	for (int i = 0; i < 130; i++, now += 30 * SECOND) /* an hour of rest */
		bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n, NULL, now);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_OK);
	bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", n + 101, NULL, now);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_CRIT);
	for (int i = 1; i <= 2; i++)
		bed_probe(h, PROBE_GPU, GPU0, NULL, "pcie_nak", 0, NULL, now + i * SECOND);
	assert_int_equal(bed_state(h, "gpu.rate", GPU0), CHECK_OK);
}

static void looks_come_as_often_as_they_should(void **unused)
{
	struct health_check c = bed_check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	size_t total = 0, most = 0;
	int64_t now = START;

	serve(h, now);
	for (int64_t end = START + 20 * MINUTE; now < end;) {
		int64_t at = health_deadline(h);
		assert_true(at > now); /* never spins */
		now = at;
		size_t n = serve(h, now);
		total += n;
		most = MO_MAX(most, n);
	}
	/* 2 GPUs every 30 s, sensors between at 5 s; host 60 s, log 10 s, stack 10 min */
	assert_in_range(total, 2 * 200 + 120 + 20 - 40, 2 * 240 + 120 + 20 + 40);
	assert_in_range(most, 1, 4);
}

static void a_stuck_device_is_left_alone(void **unused)
{
	struct health_check c =
		bed_check(0, "gpu.read", PROBE_GPU, WHEN_PERIODIC, problem, MO_NONE_F);
	c.measure = MEASURE_TEXT;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	struct health_pass l;

	health_due(h, START, &l);
	assert_string_equal(l.object, GPU0);
	health_failed(h, PROBE_GPU, GPU0, "late", true, START + 5 * SECOND);
	for (int64_t now = START + 5 * SECOND; now < START + 5 * MINUTE; now += SECOND) {
		health_tick(h, now);
		while (health_due(h, now, &l)) {
			assert_false(l.area == PROBE_GPU && mo_streq(l.object, GPU0));
			bed_probe(h, l.area, l.object, NULL, NULL, 0, NULL, now);
		}
	}
	assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_WARN);
	health_unstuck(h, PROBE_GPU, GPU0, START + 5 * MINUTE);
	serve(h, START + 6 * MINUTE);
	assert_int_equal(bed_state(h, "gpu.read", GPU0), CHECK_OK);
}

static void orders(void **unused)
{
	struct health_check checks[] = { bed_check(0, "gpu.ue", PROBE_GPU, WHEN_FAILURE, ras_ue, 0),
					 bed_check(1, "perf", PROBE_HOST, WHEN_FAILURE, NULL,
						   MO_NONE_F) };
	char *argv[] = { one };
	struct command order;
	struct health_pass l;

	checks[1].argv = argv;
	checks[1].n_argv = 1;
	_cleanup_(health_freep) struct health *h = bed_make(checks, 2, 1);
	mo_desc_init(&command_desc, &order);
	order.kind = CMD_CHECK;
	order.job = 7;
	order.attempt = 2;
	serve(h, START);
	assert_true(health_results(h)->failure_checks);
	assert_int_equal(health_results(h)->n_checked, 0);
	/* preflight is done */
	assert_true(health_awaited(h));
	assert_false(health_awaited(h));
	health_orders(h, &order, 1, START + SECOND);
	/* repeated until it is answered */
	health_orders(h, &order, 1, START + SECOND);
	assert_true(health_deadline(h) <= START + SECOND);
	serve(h, START + SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
	assert_int_equal(health_results(h)->checked[0].job, 7);
	assert_true(health_awaited(h));
	health_orders(h, NULL, 0, START + 2 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	/* nobody waits for what is forgotten */
	assert_false(health_awaited(h));
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

static void programs_wait_for_a_free_node(void **unused)
{
	struct health_check c = bed_check(0, "perf", PROBE_HOST, WHEN_PREFLIGHT, NULL, MO_NONE_F);
	static char match[] = "rate ([0-9.]+)";
	char *argv[] = { one };
	struct health_pass l;

	c.argv = argv;
	c.n_argv = 1;
	c.match = match;
	c.crit_below = 3;
	c.consecutive = 2;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	bool found = false;
	health_busy(h, (int64_t[]){ 0 }, 1, 1, START);
	/* the node's other GPU may be used */
	assert_true(health_results(h)->preflight_done);
	assert_true(serve(h, START) > 0);
	health_busy(h, NULL, 0, 0, START + MINUTE);
	while (health_due(h, START + MINUTE, &l)) {
		found |= l.program && l.exclusive;
		if (!l.program)
			bed_probe(h, l.area, l.object, NULL, NULL, 0, NULL, START + MINUTE);
		else
			health_program(h, "perf", 0, "rate 3.5\nrate 2.5\n", 18, NULL,
				       START + MINUTE);
	}
	assert_true(found);
	/* asked again at once, because it takes two */
	assert_int_equal(bed_state(h, "perf", "host"), CHECK_CRIT);
	assert_non_null(strstr(bed_result(h, "perf", "host")->text, "2.5"));
	health_program(h, "perf", 9, "", 0, "it did not finish in time", START + 2 * MINUTE);
	assert_int_equal(bed_state(h, "perf", "host"), CHECK_CRIT);
}

static void sensors(void **unused)
{
	_cleanup_(health_freep) struct health *h = bed_make(NULL, 0, 1);
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
	/* heat, not the power limit */
	assert_true(s->temp_c > 60 && s->throttle_pct > 1.99 && s->throttle_pct < 2.01);
	mo_vec_clear(&gpu_sensors_desc, (void **)&s, &n);
	health_sensors(h, &s, &n);
	assert_int_equal(n, 0);
}

/* More than all of the time is nonsense: it neither clears nor finds, however often it comes. */
static void a_share_beyond_all_is_no_verdict(void **unused)
{
	static char residency[] = "prochot_residency", counter[] = "metrics_counter";
	struct health_check c =
		bed_check(0, "gpu.prochot", PROBE_GPU, WHEN_PERIODIC, residency, 0.05);
	c.measure = MEASURE_SHARE;
	c.of = counter;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);
	struct probe p;

	for (int i = 0; i < 10; i++) {
		mo_desc_init(&probe_desc, &p);
		p.area = PROBE_GPU;
		p.object = mo_strdup(GPU0);
		reading_add(&p, "metrics_counter", 1000 + i * 100);
		reading_add(&p, "prochot_residency", i < 5 ? i * 300 : 1200 + (i - 4) * 100);
		health_probe(h, &p, START + i * MINUTE);
		mo_desc_done(&probe_desc, &p);
		assert_int_equal(bed_state(h, "gpu.prochot", GPU0), i == 0  ? CHECK_OK
								    : i < 3 ? CHECK_UNKNOWN
								    : i < 5 ? CHECK_WARN
									    : CHECK_CRIT);
		if (i == 4)
			assert_non_null(strstr(bed_result(h, "gpu.prochot", GPU0)->text,
					       "prochot_residency grew by 300 while "
					       "metrics_counter grew by 100"));
	}
}

static void host_look(struct health *h, double pci, double off, int64_t now)
{
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	p.area = PROBE_HOST;
	p.object = mo_strdup("host");
	reading_add(&p, "gpus_pci", pci);
	reading_add(&p, "gpus_off_bus", off);
	health_probe(h, &p, now);
	mo_desc_done(&probe_desc, &p);
}

static bool rests_on(struct health *h, const char *evidence)
{
	const struct check_result *r = bed_result(h, "gpu.count", "host");
	bool found = false;

	for (size_t i = 0; r && i < r->n_evidence; i++)
		found |= mo_streq(r->evidence[i], evidence);
	return found;
}

/* Without what earlier probes of the bus saw (the file is gone): discovery found two, or the driver
 * lists them. */
static void a_missing_gpu_is_missed_by_several(void **unused)
{
	static char pci[] = "gpus_pci", expected[] = "gpus_expected";
	struct health_check c = bed_check(0, "gpu.count", PROBE_HOST, WHEN_PERIODIC, pci, 0);
	c.measure = MEASURE_LESS_OF;
	c.of = expected;
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1), *seen = bed_make(&c, 1, 1),
					      *driver = bed_make(&c, 1, 1);

	bed_probe(h, PROBE_GPU, GPU1, NULL, NULL, 0, GPU1 ": " PROBE_NO_DEVICE, START);
	host_look(h, 1, 0, START);
	assert_int_equal(bed_state(h, "gpu.count", "host"), CHECK_CRIT);
	assert_true(rests_on(h, "gpus_expected = 2") &&
		    rests_on(h, "gpus_expected.by = what was found of this machine earlier in this "
				"boot") &&
		    rests_on(h, "gpus_pci.missing = " GPU1));
	host_look(seen, 4, 0, START);
	host_look(seen, 3, 0, START + MINUTE);
	assert_true(rests_on(seen, "gpus_expected = 4") &&
		    rests_on(seen, "gpus_expected.by = the PCI bus, earlier in this boot"));
	host_look(driver, 2, 1, START);
	assert_true(rests_on(driver, "gpus_expected = 3") &&
		    rests_on(driver, "gpus_expected.by = the driver (KFD), which still lists it"));
	host_look(driver, 3, 0, START + MINUTE);
	assert_int_equal(bed_state(driver, "gpu.count", "host"), CHECK_OK);
}

static void kill_switch(void **unused)
{
	struct health_check c = bed_check(0, "gpu.ue", PROBE_GPU, WHEN_PERIODIC, ras_ue, 0);
	_cleanup_(health_freep) struct health *h = bed_make(&c, 1, 1);

	assert_false(health_disable(h, "gpu.eu"));
	assert_true(health_disable(h, "gpu.ue"));
	bed_probe(h, PROBE_GPU, GPU0, NULL, "ras_ue", 5, NULL, START);
	assert_int_equal(health_results(h)->n_results, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_in_a_row),
		cmocka_unit_test(a_finding_that_does_not_count_yet_is_looked_at_in_30_s),
		cmocka_unit_test(a_gpu_is_given_back_late),
		cmocka_unit_test(a_gpu_is_not_given_back),
		cmocka_unit_test(who_comes_late_gets_the_word_of_now),
		cmocka_unit_test(what_was_refused_is_asked_anew_after_the_next_job),
		cmocka_unit_test(what_was_held_before_a_job_is_not_left_by_it),
		cmocka_unit_test(what_cannot_be_read_holds_nothing_up),
		cmocka_unit_test(nobody_waits_for_a_look_without_end),
		cmocka_unit_test(a_gpu_in_use_is_not_judged),
		cmocka_unit_test(who_is_due_longest_is_next),
		cmocka_unit_test(what_is_found_is_told_in_short),
		cmocka_unit_test(unknown_never_acts_alone),
		cmocka_unit_test(versions),
		cmocka_unit_test(rates),
		cmocka_unit_test(looks_come_as_often_as_they_should),
		cmocka_unit_test(a_stuck_device_is_left_alone),
		cmocka_unit_test(orders),
		cmocka_unit_test(programs_wait_for_a_free_node),
		cmocka_unit_test(sensors),
		cmocka_unit_test(kill_switch),
		cmocka_unit_test(a_share_beyond_all_is_no_verdict),
		cmocka_unit_test(a_missing_gpu_is_missed_by_several),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
