/* Output lines and notify datagrams. Rules are written as engine files write them (megatron:
 * training_log of Megatron-LM d98e8a6). */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/text/lines.h"
#include "agent/core/text/notify.h"
#include "lib/model/limits.h"

static char megatron[] =
	"iteration\\s+(?<iteration>\\d+)\\s*/\\s*(?<steps>\\d+) "
	"\\|(?:(?!iteration\\s+\\d+\\s*/).)*?elapsed time per iteration \\(ms\\): "
	"(?<step_ms>[\\d.]+)"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?throughput per GPU \\(TFLOP/s/GPU\\): "
	"(?<tflops_per_gpu>[\\d.]+))?"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?learning rate: (?<lr>[\\d.E+-]+))?"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?lm loss: (?<loss>\\S+))?"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?grad norm: (?<grad_norm>\\S+))?"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?number of skipped iterations:\\s*(?<skipped>\\d+))?"
	"(?:(?:(?!iteration\\s+\\d+\\s*/).)*?number of nan iterations:\\s*(?<nan>\\d+))?";
static char save[] =
	"successfully saved checkpoint from iteration\\s+(?<iteration>\\d+) to (?<path>\\S+)";
static char saving[] = "saving checkpoint at iteration\\s+(?<iteration>\\d+) to (?<path>\\S+)";
static char place[] = "saved to (?<path>\\S+)";
static char training[] = "^training \\.\\.\\.";
static char titan[] =
	"step:\\s*(?<iteration>\\d+)\\s+loss:\\s*(?<loss>\\S+)\\s+grad_norm:\\s*(?<grad_norm>\\S+)"
	"\\s+memory:\\s*(?<mem_gb>[\\d.]+)GiB\\S*\\s+tps:\\s*(?<tokens_per_s_per_gpu>[\\d,]+)"
	"\\s+tflops:\\s*(?<tflops_per_gpu>[\\d,.]+)\\s+mfu:\\s*(?<mfu>\\S+)";
static char maxtext[] = "completed step: (?<iteration>\\d+), seconds: "
			"(?<step_s>[\\d.]+).*?Tokens/s: (?<tokens_per_s>[\\d.]+)";
static char train[] = "train";

struct got {
	struct line_fact facts[16];
	size_t n;
};

static void on_fact(void *arg, const struct line_fact *f)
{
	struct got *g = arg;

	assert_true(g->n < ELEMENTSOF(g->facts));
	g->facts[g->n++] = *f;
}

static struct lines *make(void)
{
	const struct line_rule rules[] = {
		{ .kind = LINE_SAMPLE, .pattern = megatron, .missing_loss_is_nan = true },
		{ .kind = LINE_SAVED, .pattern = save },
		{ .kind = LINE_SAVING, .pattern = saving },
		{ .kind = LINE_PHASE, .pattern = training, .phase = train },
		{ .kind = LINE_SAMPLE, .pattern = titan },
		{ .kind = LINE_SAMPLE, .pattern = maxtext },
		{ .kind = LINE_SAVING, .pattern = place },
	};
	struct lines *l = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	assert_int_equal(lines_new(rules, ELEMENTSOF(rules), &l, &err), 0);
	return l;
}

static struct got feed(const char *line, size_t n)
{
	_cleanup_(lines_freep) struct lines *l = make();
	struct got g = { .n = 0 };

	lines_feed(l, line, n, 4, on_fact, &g);
	return g;
}

static struct got line(const char *text)
{
	return feed(text, strlen(text));
}

/* A directory of all saves may end in digits: that is no iteration, or a job that begins would
 * write over checkpoint 100. */
static void test_where_saves_go(void **state)
{
	struct got g = line("Checkpoints will be loaded from and saved to /ckpt/run-100");

	assert_int_equal(g.n, 1);
	assert_int_equal(g.facts[0].kind, LINE_SAVING);
	assert_string_equal(g.facts[0].path, "/ckpt/run-100");
	assert_int_equal(g.facts[0].iteration, MO_NONE);
	assert_int_equal(line_path_number("/ckpt/run-100/"), 100);
}

static void test_megatron(void **state)
{
	struct got g = line(
		" [2025-12-25 08:40:22.123456] iteration        2/      50 | consumed samples:     "
		"     256 | elapsed time per iteration (ms): 6046.6 | "
		"throughput per GPU (TFLOP/s/GPU): 1255.4 | learning rate: 1.000000E-05 | global "
		"batch size:   128 | lm loss: 1.189062E+01 | loss scale: 1.0 | grad norm: 7.499 | "
		"number of skipped iterations:   0 | number of nan iterations:   0 |");
	const struct sample *s = &g.facts[0].sample;

	assert_int_equal(g.n, 1);
	assert_int_equal(g.facts[0].kind, LINE_SAMPLE);
	assert_int_equal(s->iteration, 2);
	assert_true(s->loss == 11.89062 && s->step_ms == 6046.6 && s->tflops_per_gpu == 1255.4 &&
		    s->lr == 1e-5 && s->grad_norm == 7.499);
	assert_int_equal(s->skipped, 0);
	assert_int_equal(s->nan, 0);
	assert_true(s->tokens == MO_NONE && s->mfu == MO_NONE_F);
}

static void test_missing_loss_is_nan(void **state)
{
	struct got g = line(
		" iteration       10/ 1000000 | consumed samples:           40 | elapsed time per "
		"iteration (ms): 356.2 | learning rate: 0.000E+00 | global batch size:     4 | "
		"loss scale: 8388608.0 | number of skipped iterations:  10 | number of nan "
		"iterations:   3 |");

	assert_int_equal(g.n, 1);
	assert_true(isnan(g.facts[0].sample.loss));
	assert_int_equal(g.facts[0].sample.skipped, 10);
	assert_int_equal(g.facts[0].sample.nan, 3);
	assert_true(g.facts[0].sample.grad_norm == MO_NONE_F);
	g = line("iteration 3/ 9 | elapsed time per iteration (ms): 1.5 | lm loss: nan | grad "
		 "norm: inf |");
	assert_true(isnan(g.facts[0].sample.loss) && isinf(g.facts[0].sample.grad_norm));
	g = line("iteration 3/ 9 | elapsed time per iteration (ms): 1.5 | lm loss: 1.234567E+400 | "
		 "grad norm: -9E+999 |");
	assert_true(g.n == 1 && g.facts[0].sample.loss == INFINITY &&
		    g.facts[0].sample.grad_norm == -INFINITY);
}

static void test_glued(void **state)
{
	struct got g =
		line("iteration 3/ 9 | elapsed time per iteration (ms): 1.5 | lm loss: 2.5 "
		     "|iteration 4/ 9 | elapsed time per iteration (ms): 2.5 | lm loss: 2.4 |"
		     "successfully saved checkpoint from iteration       4 to /ckpt/a [ t 1/2, p "
		     "1/1 ]saving checkpoint at iteration 5 to /ckpt/b in torch_dist format");

	assert_int_equal(g.n, 4);
	assert_int_equal(g.facts[0].sample.iteration, 3);
	assert_true(g.facts[0].sample.loss == 2.5);
	assert_int_equal(g.facts[1].sample.iteration, 4);
	assert_int_equal(g.facts[2].kind, LINE_SAVED);
	assert_int_equal(g.facts[2].iteration, 4);
	assert_string_equal(g.facts[2].path, "/ckpt/a");
	assert_int_equal(g.facts[3].kind, LINE_SAVING);
	assert_int_equal(g.facts[3].iteration, 5);
}

static void test_ansi_and_carriage_returns(void **state)
{
	struct got g = line("\x1b[31mstep: \x1b[1m10\x1b[0m  loss: \x1b[38;5;2m2.25\x1b[0m  "
			    "grad_norm: 1.5  memory: 30.5GiB(63.2%)  tps: 7,318  tflops: 4,122.75  "
			    "mfu: 41.25%\x1b]8;;http://x\x07");

	assert_int_equal(g.n, 1);
	assert_int_equal(g.facts[0].sample.iteration, 10);
	assert_true(g.facts[0].sample.loss == 2.25 &&
		    g.facts[0].sample.tokens_per_s_per_gpu == 7318 &&
		    g.facts[0].sample.tflops_per_gpu == 4122.75);
	assert_true(fabs(g.facts[0].sample.mfu - 0.4125) < 1e-12);
	g = line("step: 1 loss: 2 grad_norm: 1 memory: 3GiB(6%) tps: 7 tflops: 4 mfu: N/A");
	assert_true(g.facts[0].sample.mfu == MO_NONE_F);
	g = line("  3%|#  | 3/100\rcompleted step: 3, seconds: 0.5, x, Tokens/s: 4096\rcompleted "
		 "step: 4, seconds: 0.25, Tokens/s: 8192");
	assert_int_equal(g.n, 2);
	assert_true(g.facts[0].sample.step_ms == 500 &&
		    g.facts[0].sample.tokens_per_s_per_gpu == 1024);
	assert_int_equal(g.facts[1].sample.iteration, 4);
	g = line("\x1b");
	assert_int_equal(g.n, 0);
	g = line("\x1b[31");
	assert_int_equal(g.n, 0);
	g = line("\x1b(Btraining ...\x1b]0;t\x1b\\");
	assert_int_equal(g.n, 1);
	assert_int_equal(g.facts[0].phase, PHASE_TRAIN);
}

static void test_limits(void **state)
{
	_cleanup_(mo_freep) char *big = mo_alloc(MO_LINE_MAX * 2);
	static const char tail[] = "completed step: 3, seconds: 0.5, Tokens/s: 4096";

	memset(big, 'x', MO_LINE_MAX * 2);
	/* beyond the limit: not read */
	memcpy(big + MO_LINE_MAX - 10, tail, sizeof(tail) - 1);
	assert_int_equal(feed(big, MO_LINE_MAX * 2).n, 0);
	memcpy(big + 10, tail, sizeof(tail) - 1);
	assert_int_equal(feed(big, MO_LINE_MAX * 2).n, 1);
	struct got g = line("completed step: 99999999999999999999999999, seconds: 1, Tokens/s: 1");
	assert_true(g.n == 1 && g.facts[0].sample.iteration == MO_NONE);
	assert_int_equal(feed("training ...\0training", 21).n, 1);
}

static void test_bad_rules(void **state)
{
	static char open[] = "(?<iteration>\\d+", unknown[] = "(?<losss>\\d+)", any[] = "x";
	const struct line_rule bad[] = {
		{ .kind = LINE_SAMPLE, .pattern = open },
		{ .kind = LINE_SAMPLE, .pattern = unknown },
		{ .kind = LINE_PHASE, .pattern = any },
		{ .kind = LINE_SAMPLE },
	};
	static const char *const want[] = { "missing closing parenthesis", "losss", "phase",
					    "no pattern" };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		struct lines *l = NULL;
		assert_int_equal(lines_new(&bad[i], 1, &l, &err), -EINVAL);
		assert_null(l);
		assert_non_null(strstr(err.text, want[i]));
	}
}

static void test_hostile_pattern_ends(void **state)
{
	static char slow[] = "(a+)+$";
	const struct line_rule rule = { .kind = LINE_SAMPLE, .pattern = slow };
	char text[200];
	struct lines *l = NULL;
	struct got g = { .n = 0 };

	memset(text, 'a', sizeof(text));
	text[199] = 'b';
	assert_int_equal(lines_new(&rule, 1, &l, NULL), 0);
	lines_feed(l, text, sizeof(text), 1, on_fact, &g);
	assert_int_equal(g.n, 0);
	assert_int_equal(lines_gave_up(l), 1);
	_cleanup_(mo_freep) char *once = lines_gave_up_rules(l);
	assert_string_equal(once, "rule 1 of lines ((a+)+$) 1 times");
	for (int i = 0; i < 1000; i++)
		lines_feed(l, text, sizeof(text), 1, on_fact, &g);
	/* then it is left out: a bad rule costs no more than that */
	assert_int_equal(lines_gave_up(l), 100);
	_cleanup_(mo_freep) char *often = lines_gave_up_rules(l);
	assert_string_equal(often, "rule 1 of lines ((a+)+$) 100 times and is left out now");
	lines_free(l);
}

/* Words and their values in any order; what a record needs. */
static void test_words(void **state)
{
	static char begin[] = "(?i)\\bstep[ :=]+(?<iteration>\\d+)", blank[] = " ", loss[] = "loss",
		    lr[] = "lr", norm[] = "grad_norm", tokens[] = "tokens", per[] = "tokens_per_s";
	struct kv fields[] = {
		{ loss, loss }, { lr, lr }, { norm, norm }, { tokens, tokens }, { per, per }
	};
	char *needs[] = { loss };
	const struct line_rule rule = { .kind = LINE_SAMPLE,
					.begin = begin,
					.separator = blank,
					.fields = fields,
					.n_fields = ELEMENTSOF(fields),
					.needs = needs,
					.n_needs = 1 };
	static const struct {
		const char *line;
		double loss, lr;
	} cases[] = {
		{ "step 5 loss 2.5 lr 0.1", 2.5, 0.1 },
		{ "step 5, Loss: 2.5, LR=0.1", 2.5, 0.1 },
		{ "Step: 5 lr  =  1e-1 | train/loss: 2.5.", 2.5, 0.1 },
		{ "step 5 loss 2.5 loss 9", 2.5, MO_NONE_F },
		{ "step 5 lm_loss 7 lossy 3 loss 2.5", 2.5, MO_NONE_F },
		{ "step 5 loss nan", NAN, MO_NONE_F },
		{ "step 5 loss inf", INFINITY, MO_NONE_F },
		{ "step 5 loss 1e999", INFINITY, MO_NONE_F },
		{ "step 5 loss -1e999", -INFINITY, MO_NONE_F },
		{ "step 5 loss 1e-999", 0, MO_NONE_F },
	};
	static const char *const nothing[] = {
		"step 5 of the setup", "step 5 loss",    "step 5 loss:", "step 5 lm_loss 7",
		"step 5 loss is down", "step 5 loss2.5", "loss 2.5",     "step 5 lossless=1"
	};
	struct lines *l = NULL;

	assert_int_equal(lines_new(&rule, 1, &l, NULL), 0);
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct got g = { .n = 0 };

		lines_feed(l, cases[i].line, strlen(cases[i].line), 4, on_fact, &g);
		if (g.n != 1 || g.facts[0].sample.iteration != 5 ||
		    (g.facts[0].sample.loss != cases[i].loss && !isnan(cases[i].loss)) ||
		    g.facts[0].sample.lr != cases[i].lr)
			fail_msg("%s: %zu facts, loss %g, lr %g", cases[i].line, g.n,
				 g.facts[0].sample.loss, g.facts[0].sample.lr);
	}
	for (size_t i = 0; i < ELEMENTSOF(nothing); i++) {
		struct got g = { .n = 0 };

		lines_feed(l, nothing[i], strlen(nothing[i]), 4, on_fact, &g);
		if (g.n)
			fail_msg("%s: loss %g", nothing[i], g.facts[0].sample.loss);
	}
	struct got g = { .n = 0 };
	static const char glued[] =
		"step 1 loss 1 tokens 5 step 2 loading step 3 loss 3 tokens_per_s 8";

	lines_feed(l, glued, sizeof(glued) - 1, 4, on_fact, &g);
	assert_int_equal(g.n, 2); /* the second of three says no loss */
	assert_true(g.facts[0].sample.iteration == 1 && g.facts[0].sample.tokens == 5);
	assert_true(g.facts[1].sample.iteration == 3 &&
		    g.facts[1].sample.tokens_per_s_per_gpu == 2);
	lines_free(l);
}

static int notify(const char *text, struct line_fact *f)
{
	return notify_read(text, strlen(text), 4, f);
}

static void test_notify_sample(void **state)
{
	struct line_fact f;

	assert_int_equal(notify("PHASE=train\nITERATION=12\nLOSS=2.31\nSTEP_MS=500\nTOKENS=65,"
				"536\nGRAD_NORM=0.5\nLR=1e-3\nTFLOPS=412\nCOLOUR=red",
				&f),
			 0);
	assert_int_equal(f.kind, LINE_SAMPLE);
	assert_int_equal(f.phase, PHASE_TRAIN);
	assert_int_equal(f.iteration, 12);
	assert_int_equal(f.sample.iteration, 12);
	assert_int_equal(f.sample.tokens, 65536);
	assert_true(f.sample.loss == 2.31 && f.sample.tflops_per_gpu == 412 &&
		    f.sample.tokens_per_s_per_gpu == 32768 && f.sample.lr == 1e-3 &&
		    f.sample.grad_norm == 0.5);
	assert_false(f.ready);
	assert_true(f.busy_ms == MO_NONE_F);
	assert_int_equal(notify("ITERATION=6\nSTEP_MS=500\nBUSY_MS=120.5", &f), 0);
	assert_true(f.kind == LINE_SAMPLE && f.busy_ms == 120.5 && f.sample.step_ms == 500);
	assert_int_equal(notify("ITERATION=6\nBUSY_MS=-1", &f), 0);
	assert_true(f.busy_ms == MO_NONE_F);
	assert_int_equal(notify("ITERATION=5\n", &f), 0);
	assert_int_equal(f.kind, LINE_SAMPLE);
	assert_int_equal(notify("LOSS=nan", &f), 0);
	assert_true(f.kind == LINE_SAMPLE && isnan(f.sample.loss) && f.sample.iteration == MO_NONE);
}

static void test_notify_other(void **state)
{
	struct line_fact f;

	assert_int_equal(notify("READY=1\nPHASE=train\nITERATION=20", &f), 0);
	assert_int_equal(f.kind, LINE_PHASE); /* no iteration ended */
	assert_true(f.ready && f.iteration == 20);
	assert_int_equal(notify("CHECKPOINT=/c/iter_0000040\nITERATION=40", &f), 0);
	assert_int_equal(f.kind, -1);
	assert_true(f.checkpoint && f.iteration == 40);
	assert_string_equal(f.path, "/c/iter_0000040");
	assert_int_equal(notify("CHECKPOINT=/c/step-500/", &f), 0);
	assert_int_equal(f.iteration, 500);
	assert_int_equal(notify("CHECKPOINT=/c/final", &f), 0);
	assert_true(f.iteration == MO_NONE);
	assert_int_equal(notify("STATUS=importing torch", &f), 0);
	assert_int_equal(f.kind, -1);
	assert_string_equal(f.status, "importing torch");
}

static void test_notify_bad(void **state)
{
	static const char *const bad[] = {
		"",         "\n\n",    "hello",       "=",       "LOSS=",
		"LOSS=abc", "loss=1",  "PHASE=party", "READY=0", "CHECKPOINT=",
		"STEPS=5",  "PATH=/x", "ITERATION=1x"
	};
	struct line_fact f;

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		assert_int_equal(notify(bad[i], &f), -EINVAL);
	assert_int_equal(notify_read("LOSS=1\0\nX=1", 11, 4, &f), -EINVAL);
	assert_int_equal(notify("ITERATION=-4\nLOSS=1", &f), 0);
	assert_true(f.sample.iteration == MO_NONE);
	_cleanup_(mo_freep) char *big = mo_alloc(9000);
	memset(big, 'x', 8999);
	memcpy(big, "LOSS=1\n", 7);
	assert_int_equal(notify_read(big, 8192, 4, &f), 0);
	assert_int_equal(notify_read(big, 8193, 4, &f), -EINVAL);
	memcpy(big, "CHECKPOINT=", 11);
	assert_int_equal(notify_read(big, 8192, 4, &f), -EINVAL);
}

/* What no machine does is left out and counted; the rest of the same datagram or line counts. */
static void test_impossible_values(void **state)
{
	static const struct {
		const char *text;
		int refused, kind;
	} cases[] = {
		{ "ITERATION=1\nSTEP_MS=-5", 1, LINE_SAMPLE },
		{ "ITERATION=1\nTFLOPS=1e308", 1, LINE_SAMPLE },
		{ "ITERATION=1\nTOKENS=-1\nMEM_GB=-0.1\nMFU=1e9\nSKIPPED=-1\nNAN=-2", 5,
		  LINE_SAMPLE },
		{ "ITERATION=-4", 1, -1 },
		{ "STEP_MS=-5", 1, -1 },
		{ "ITERATION=1e16\nLOSS=2", 1, LINE_SAMPLE },
		{ "ITERATION=1\nTOKENS_PER_S=inf", 1, LINE_SAMPLE },
		{ "ITERATION=1e999\nLOSS=2", 1, LINE_SAMPLE },
		{ "ITERATION=1\nSTEP_MS=1e999\nLOSS=1e999", 1, LINE_SAMPLE },
		{ "ITERATION=1\nMFU=nan", 0, LINE_SAMPLE },
		{ "ITERATION=1\nLOSS=-3\nGRAD_NORM=inf\nLR=-1e-3", 0, LINE_SAMPLE },
		{ "ITERATION=1\nSTEP_MS=0\nTFLOPS=0", 0, LINE_SAMPLE },
	};
	struct line_fact f;

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		assert_int_equal(notify(cases[i].text, &f), 0);
		assert_int_equal(f.refused, cases[i].refused);
		assert_int_equal(f.kind, cases[i].kind);
		assert_true(f.sample.tflops_per_gpu == MO_NONE_F || f.sample.tflops_per_gpu == 0);
		assert_true(f.sample.step_ms == MO_NONE_F || f.sample.step_ms == 0);
		assert_true(f.sample.tokens == MO_NONE && f.sample.mem_gb == MO_NONE_F &&
			    f.sample.mfu == MO_NONE_F && f.sample.skipped == MO_NONE &&
			    f.sample.nan == MO_NONE);
	}
	assert_int_equal(notify("ITERATION=1\nTOKENS=1000\nSTEP_MS=1e-300", &f), 0);
	assert_true(f.sample.tokens_per_s_per_gpu == MO_NONE_F);
	struct got g = line("completed step: 7, seconds: 99999999999.5, Tokens/s: 10");
	assert_int_equal(g.n, 1);
	assert_int_equal(g.facts[0].refused, 1);
	assert_int_equal(g.facts[0].iteration, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_saves_go),
		cmocka_unit_test(test_megatron),
		cmocka_unit_test(test_missing_loss_is_nan),
		cmocka_unit_test(test_glued),
		cmocka_unit_test(test_ansi_and_carriage_returns),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_bad_rules),
		cmocka_unit_test(test_hostile_pattern_ends),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_notify_sample),
		cmocka_unit_test(test_notify_other),
		cmocka_unit_test(test_notify_bad),
		cmocka_unit_test(test_impossible_values),
	};
	return cmocka_run_group_tests_name("acore/lines", tests, NULL, NULL);
}
