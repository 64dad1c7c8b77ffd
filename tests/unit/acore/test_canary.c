/* A program that says a line of each GPU, and the orders that it runs for. */
#include "tests/unit/acore/health_bed.h"

#define WRONG "float32: element (2,1) is 8.5, should be 8"

static struct health *canary(int64_t when)
{
	static char program[] = "canary";
	static char *argv[] = { program };
	struct health_check c = bed_check(0, "gpu.canary", PROBE_GPU, when, NULL, MO_NONE_F);

	c.argv = argv;
	c.n_argv = 1;
	return bed_make(&c, 1, 1);
}

/* With one of the host that is slow, which is there before the GPUs are known. */
static struct health *canary_and_gemm(void)
{
	static char program[] = "program";
	static char *argv[] = { program };
	static char bdf[] = GPU0;
	struct health_check c[] = {
		bed_check(0, "perf.gemm", PROBE_HOST, WHEN_FAILURE, NULL, MO_NONE_F),
		bed_check(1, "gpu.collective", PROBE_GPU, WHEN_DOUBT, NULL, MO_NONE_F),
		bed_check(2, "gpu.canary", PROBE_GPU, WHEN_DOUBT, NULL, MO_NONE_F),
	};
	struct gpu_slot gpu;
	struct nodeinfo info;

	for (size_t i = 0; i < ELEMENTSOF(c); i++) {
		c[i].argv = argv;
		c[i].n_argv = 1;
	}
	struct health *h =
		health_new(&(struct health_checks){ c, ELEMENTSOF(c) }, "boot", &bed_every, 1);
	mo_desc_init(&nodeinfo_desc, &info);
	health_devices(h, &info, 0, START);
	mo_desc_init(&gpu_slot_desc, &gpu);
	gpu.bdf = bdf;
	info.gpus = &gpu;
	info.n_gpus = 1;
	health_devices(h, &info, 0, START);
	return h;
}

static void order(struct health *h, int64_t job, bool thorough, int64_t now)
{
	struct command c;

	mo_desc_init(&command_desc, &c);
	c.kind = CMD_CHECK;
	c.job = job;
	c.attempt = 2;
	c.thorough = thorough;
	health_orders(h, &c, 1, now);
	mo_desc_done(&command_desc, &c);
}

/* Probes are answered; the program that is named as due, NULL: none. */
static const char *which_runs(struct health *h, int64_t now)
{
	struct health_pass l;
	const char *program = NULL;

	while (health_due(h, now, &l)) {
		if (l.program)
			program = l.program->id;
		else
			bed_probe(h, l.area, l.object, NULL, "read_ms", 1, NULL, now);
	}
	return program;
}

static bool runs(struct health *h, int64_t now)
{
	return which_runs(h, now) != NULL;
}

static void says(struct health *h, const char *out, int code, const char *problem, int64_t now)
{
	health_program(h, "gpu.canary", code, out, strlen(out), problem, now);
}

static const char *text(struct health *h, const char *gpu)
{
	const struct check_result *r = bed_result(h, "gpu.canary", gpu);

	return r ? r->text : "";
}

static void each_gpu_by_its_line(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	says(h, GPU0 " ok 32 products\n" GPU1 " crit " WRONG "\n", 0, NULL, START);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_OK);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_CRIT);
	assert_string_equal(text(h, GPU1), "it is bad: " WRONG);
	/* what breaks says nothing: the finding stays, and nothing is found of the other */
	says(h, "Traceback\n", 1, NULL, START + 1);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_UNKNOWN);
	assert_string_equal(text(h, GPU0),
			    "canary says nothing of this GPU: it ended with status 1");
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_CRIT);
	/* what it said before it was late counts */
	says(h, GPU0 " crit " WRONG "\n" GPU1 "9 ok\n", 0, "killed", START + 2);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_CRIT);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_CRIT);
	says(h, GPU1 " ok\n" GPU0 " ok", 0, NULL, START + 3);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_OK);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_OK);
	says(h, GPU0 " perfect\n" GPU1 " ok", 0, NULL, START + 4);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_UNKNOWN);
}

static void all_gpus_alike_are_no_gpu(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	says(h, GPU0 " crit " WRONG "\n" GPU1 " crit " WRONG "\n", 0, NULL, START);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_UNKNOWN);
	assert_non_null(strstr(text(h, GPU1), "all 2 GPUs alike"));
	/* two that are broken each in its way */
	says(h, GPU0 " crit " WRONG "\n" GPU1 " crit " WRONG "0\n", 0, NULL, START + 1);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_CRIT);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_CRIT);
}

static void skipped_is_shown_and_never_a_failure(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	for (int i = 0; i < 5; i++)
		says(h, GPU0 " skipped no torch\n" GPU1 " unknown broken\n", 0, NULL, START + i);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_UNKNOWN);
	assert_int_equal(bed_result(h, "gpu.canary", GPU0)->action, ACTION_REPORT);
	assert_string_equal(text(h, GPU0), "skipped: no torch");
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_WARN);
	assert_int_equal(bed_result(h, "gpu.canary", GPU1)->action, ACTION_CORDON);
	assert_int_equal(health_results(h)->ok, 0);
}

/* What was found stands no longer than it can be tried: nothing would ever clear it. */
static void skipped_ends_what_was_found(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	says(h, GPU0 " crit " WRONG "\n" GPU1 " unknown broken\n", 0, NULL, START);
	for (int i = 0; i < 3; i++)
		says(h, GPU1 " unknown broken\n", 0, NULL, START + i);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_CRIT);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_WARN);
	says(h, GPU0 " skipped no torch\n" GPU1 " skipped no torch\n", 0, NULL, START + 3);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_UNKNOWN);
	assert_int_equal(bed_state(h, "gpu.canary", GPU1), CHECK_UNKNOWN);
	assert_int_equal(bed_result(h, "gpu.canary", GPU0)->action, ACTION_REPORT);
	assert_int_equal(bed_result(h, "gpu.canary", GPU1)->action, ACTION_REPORT);
	says(h, GPU0 " crit " WRONG "\n", 0, NULL, START + 4);
	assert_int_equal(bed_result(h, "gpu.canary", GPU0)->action, ACTION_CORDON);
}

static void only_for_thorough_orders(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	assert_true(health_doubts(h));
	assert_false(runs(h, START));
	order(h, 7, false, START + SECOND);
	assert_false(runs(h, START + SECOND));
	assert_int_equal(health_results(h)->n_checked, 1);
	order(h, 8, true, START + 2 * SECOND);
	/* once for both GPUs */
	assert_true(runs(h, START + 2 * SECOND));
	assert_false(runs(h, START + 3 * SECOND));
	assert_int_equal(health_results(h)->n_checked, 0);
	says(h, GPU0 " ok\n" GPU1 " ok\n", 0, NULL, START + 4 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
	assert_false(runs(h, START + 5 * SECOND));
}

/* Two minutes are enough for the shipped ones at their worst (50 and 40 s); how fast the GPUs are
 * is asked in what is left. */
static void doubt_goes_first_and_has_the_time(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary_and_gemm();
	int64_t at = START + SECOND;

	runs(h, START);
	order(h, 8, true, at);
	assert_string_equal(which_runs(h, at), "gpu.collective");
	health_program(h, "gpu.collective", 0, GPU0 " ok", strlen(GPU0 " ok"), NULL,
		       at + 40 * SECOND);
	assert_string_equal(which_runs(h, at + 40 * SECOND), "gpu.canary");
	assert_null(which_runs(h, at + 89 * SECOND));
	assert_int_equal(health_results(h)->n_checked, 0);
	says(h, GPU0 " crit " WRONG, 0, NULL, at + 90 * SECOND);
	assert_int_equal(bed_state(h, "gpu.canary", GPU0), CHECK_CRIT);
	assert_string_equal(which_runs(h, at + 90 * SECOND), "perf.gemm");
	health_tick(h, at + 119 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	assert_true(health_deadline(h) <= at + 120 * SECOND);
	health_tick(h, at + 120 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
	/* without a doubt it is one */
	order(h, 9, false, at + 200 * SECOND);
	health_tick(h, at + 259 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 0);
	health_tick(h, at + 260 * SECOND);
	assert_int_equal(health_results(h)->n_checked, 1);
}

/* A program of ours has memory of the GPU that no job gives back. */
static void what_it_holds_itself_is_no_finding(void **unused)
{
	static char program[] = "canary", held[] = "vram_held_bytes", used[] = "vram_used_bytes";
	static char *argv[] = { program };
	struct health_check c[] = {
		bed_check(0, "gpu.canary", PROBE_GPU, WHEN_DOUBT, NULL, MO_NONE_F),
		bed_check(1, "gpu.vram_held", PROBE_GPU, WHEN_PREFLIGHT | WHEN_FAILURE, held, 100),
	};
	int64_t at = START + SECOND;

	c[0].argv = argv;
	c[0].n_argv = 1;
	c[0].needs = NEEDS_GPU;
	c[1].consecutive = 2;
	c[1].settle_us = 30 * SECOND;
	_cleanup_(health_freep) struct health *h = bed_make(c, 2, 1);
	runs(h, START);
	order(h, 8, true, at);
	assert_true(runs(h, at));
	for (int i = 0; i < 40; i += 10)
		bed_probe(h, PROBE_GPU, GPU0, NULL, used, 500, NULL, at + i * SECOND);
	says(h, GPU0 " ok\n" GPU1 " ok\n", 0, NULL, at + 40 * SECOND);
	for (int i = 41; i < 70; i += 10)
		bed_probe(h, PROBE_GPU, GPU0, NULL, used, 500, NULL, at + i * SECOND);
	assert_int_equal(bed_state(h, "gpu.vram_held", GPU0), CHECK_OK);
	/* what is there later is somebody else's */
	for (int i = 71; i < 103; i += 30)
		bed_probe(h, PROBE_GPU, GPU0, NULL, used, 500, NULL, at + i * SECOND);
	assert_int_equal(bed_state(h, "gpu.vram_held", GPU0), CHECK_CRIT);
}

/* What a node's way back waits for is answered by a run, never by time or by a job. */
static void before_a_node_comes_back_it_has_run(void **unused)
{
	_cleanup_(health_freep) struct health *h = canary(WHEN_DOUBT);

	runs(h, START);
	order(h, 0, true, START + SECOND);
	assert_true(runs(h, START + SECOND));
	assert_true(health_deadline(h) > START + SECOND);
	health_tick(h, START + 10 * MINUTE);
	assert_int_equal(health_results(h)->n_checked, 0);
	health_cancel(h, "gpu.canary", START + 10 * MINUTE);
	health_busy(h, (int64_t[]){ 0 }, 1, 1, START + 10 * MINUTE);
	assert_int_equal(health_results(h)->n_checked, 0);
	health_busy(h, NULL, 0, 0, START + 11 * MINUTE);
	assert_true(runs(h, START + 11 * MINUTE));
	says(h, GPU0 " crit " WRONG "\n" GPU1 " ok\n", 0, NULL, START + 12 * MINUTE);
	assert_int_equal(health_results(h)->n_checked, 1);
	assert_int_equal(health_results(h)->checked[0].job, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gpu_by_its_line),
		cmocka_unit_test(all_gpus_alike_are_no_gpu),
		cmocka_unit_test(skipped_is_shown_and_never_a_failure),
		cmocka_unit_test(skipped_ends_what_was_found),
		cmocka_unit_test(only_for_thorough_orders),
		cmocka_unit_test(doubt_goes_first_and_has_the_time),
		cmocka_unit_test(what_it_holds_itself_is_no_finding),
		cmocka_unit_test(before_a_node_comes_back_it_has_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
