/* Engine files: what is refused in one, and the shipped line rules and checkpoint layouts against lines as the engines print them. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "tests/unit/recipe/read.h"

static const char head[] = "engine: 1\nkind: x\nsource: s\nargv: [a]\n";
static const struct { const char *lines, *expected; } bad[] = {
	{ "lines: [{kind: sample, pattern: 'iter (\\d+'}]\n", "5:33 pattern: missing closing parenthesis, at its character 10" },
	{ "lines: [{kind: sample, pattern: 'iter \\d+'}]\n", "5:33 pattern: it needs a group (?<iteration>...)" },
	{ "lines: [{kind: sample, pattern: '(?<iteration>1)(?<los>2)'}]\n", "5:33 pattern: unknown group 'los'" },
	{ "lines: [{kind: samples, pattern: a}]\n", "5:16 kind: expected one of sample, phase, saved, saving, resumed, ended, got 'samples' [did you mean 'sample'?]" },
	{ "lines: [{kind: phase, pattern: a}]\n", "5:9 a phase rule needs 'phase'" },
	{ "lines: [{kind: phase, pattern: a, phase: begin}]\n", "5:42 phase: expected one of init, load, train, save, eval, got 'begin'" },
	{ "lines: {kind: phase}\n", "5:8 lines: expected a list" },
	{ "layout: {markers: [a]}\n", "5:9 missing key 'layout.entry'" },
	{ "layout: {entry: 'iter_\\d+'}\n", "5:17 pattern: it needs a group (?<iteration>...)" },
	{ "flags: {parallelismm.tp: --tp}\n", "5:9 flags: 'parallelismm.tp' is no value of a recipe" },
	{ "env: [{name: A, value: b}]\n", "5:7 missing key 'reason'" },
	{ "env: [{name: RANK, value: b, reason: c}]\n", "5:14 env: RANK is set by the launcher" },
	{ "env: [{name: A, value: b, reason: c}, {name: A, value: d, reason: e}]\n", "5:46 env: A is given twice" },
	{ "metrics_rank: middle\n", "5:15 metrics_rank: expected one of first, last, any" },
	{ "flag: {}\n", "5:1 unknown key 'flag' [did you mean 'flags'?]" },
};

static void test_bad_files(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("%s%s", head, bad[i].lines);
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_parse(text, strlen(text), &e, &errors), -22);
		_cleanup_(mo_freep) char *said = errors_text(&errors);

		if (strncmp(said, bad[i].expected, strlen(bad[i].expected)) != 0)
			fail_msg("%s\nexpected: %s\n     got: %s", bad[i].lines, bad[i].expected, said);
		assert_null(e.kind);
		mo_desc_done(&engine_desc, &e);
	}
}

static struct engine load(const char *kind)
{
	struct mo_error err = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(kind, &e, &err) < 0)
		fail_msg("%s", err.text);
	return e;
}

/* The pattern's first match at or behind *at: "name=value ..." of all named groups that matched, in the order of the names; NULL = none. Moves *at behind it. */
static char *groups_of(const char *pattern, const char *line, size_t *at)
{
	int code;
	PCRE2_SIZE offset;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_DUPNAMES, &code, &offset, NULL);
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	struct mo_buf b = { 0 };
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;

	pcre2_set_match_limit(context, 100000);     /* what the agent allows */
	int r = pcre2_match(re, (PCRE2_SPTR)line, strlen(line), *at, 0, data, context);

	if (r < -1)
		fail_msg("match error %d on %s", r, line);
	pcre2_pattern_info(re, PCRE2_INFO_NAMECOUNT, &n);
	pcre2_pattern_info(re, PCRE2_INFO_NAMEENTRYSIZE, &size);
	pcre2_pattern_info(re, PCRE2_INFO_NAMETABLE, &table);
	PCRE2_SIZE *v = pcre2_get_ovector_pointer(data);

	for (uint32_t i = 0; r > 0 && i < n; i++) {
		size_t g = (size_t)(table[i * size] << 8 | table[i * size + 1]);

		if (v[2 * g] != PCRE2_UNSET)
			mo_buf_printf(&b, "%s%s=%.*s", b.len ? " " : "", (const char *)table + i * size + 2, (int)(v[2 * g + 1] - v[2 * g]), line + v[2 * g]);
	}
	if (r > 0)
		*at = v[1] > v[0] ? v[1] : v[1] + 1;
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	pcre2_code_free(re);
	return r > 0 ? mo_buf_take(&b) : NULL;
}

/* What all rules of an engine say about a line: "kind groups; kind groups". */
static char *facts(const struct engine *e, const char *line)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < e->n_rules; i++) {
		size_t at = 0;
		char *groups;

		while (at <= strlen(line) && (groups = groups_of(e->rules[i].pattern, line, &at))) {
			mo_buf_printf(&b, "%s%s%s%s%s%s", b.len ? "; " : "", line_kind_names[e->rules[i].kind], e->rules[i].phase ? " " : "",
				      e->rules[i].phase ? e->rules[i].phase : "", *groups ? " " : "", groups);
			free(groups);
		}
	}
	return mo_buf_take(&b);
}

static const struct { const char *kind, *line, *facts; } printed[] = {
	{ "torch", "step 12/120 loss 2.3456 grad_norm 0.93 lr 1.00e-03 step_ms 171.2 tokens 2048 tokens_per_s 12000",
	  "sample grad_norm=0.93 iteration=12 loss=2.3456 lr=1.00e-03 step_ms=171.2 steps=120 tokens=2048 tokens_per_s=12000" },
	{ "torch", "step 1/120 loss nan grad_norm inf lr 0", "sample grad_norm=inf iteration=1 loss=nan lr=0 steps=120" },
	{ "torch", "step 5, loss 2.5.", "sample iteration=5 loss=2.5" },
	{ "torch", "Iter: 7, lr: 0.1, loss=-1.5e+3", "sample iteration=7 loss=-1.5e+3 lr=0.1" },
	{ "torch", "step 1/9 loss 1.0 step_ms 5step 2/9 loss 2.0", "sample iteration=1 loss=1.0 step_ms=5 steps=9; sample iteration=2 loss=2.0 steps=9" },
	{ "torch", "saved checkpoint 40 /path/iter_0000040", "saved iteration=40 path=/path/iter_0000040" },
	{ "torch", "failed to save checkpoint 40 /path/iter_0000040", "" },
	{ "torch", "resumed from iteration 40", "resumed iteration=40" },
	{ "torch", "SIGTERM: stopped after iteration 40 and saved", "" },
	{ "torch", "training 4 ranks, ep 4, gloo, 1000 parameters active per token, iterations 41 to 120", "" },
	{ "torch", "final loss 2.319187 unigram baseline 3.1332", "" },
	{ "command", "step=3 loss=2.5", "sample iteration=3 loss=2.5" },
	{ "megatron-lm",
	  " [2026-01-01 00:00:00.123456] iteration       12/     100 | consumed samples:          192 | elapsed time per iteration (ms): 171.2 | throughput per GPU (TFLOP/s/GPU): 412.3 | "
	  "learning rate: 1.000000E-03 | global batch size:    16 | lm loss: 2.345678E+00 | load_balancing_loss: 1.0E+00 | loss scale: 1.0 | grad norm: 0.932 | "
	  "number of skipped iterations:   1 | number of nan iterations:   0 |",
	  "sample grad_norm=0.932 iteration=12 loss=2.345678E+00 lr=1.000000E-03 nan=0 skipped=1 step_ms=171.2 steps=100 tflops_per_gpu=412.3" },
	{ "megatron-lm", " iteration 3/ 9 | consumed samples: 1 | elapsed time per iteration (ms): 10.0 | learning rate: 1.0E-03 | loss scale: 1.0 | number of nan iterations:   1 |",
	  "sample iteration=3 lr=1.0E-03 nan=1 step_ms=10.0 steps=9" },
	{ "megatron-lm",
	  " iteration 3/ 9 | elapsed time per iteration (ms): 10.0 | loss scale: 1.0 | iteration 4/ 9 | elapsed time per iteration (ms): 11.0 | lm loss: 2.0E+00 |",
	  "sample iteration=3 step_ms=10.0 steps=9; sample iteration=4 loss=2.0E+00 step_ms=11.0 steps=9" },
	{ "megatron-lm", "training ...INFO:megatron.core.timers", "phase train" },
	{ "megatron-lm", "> initializing torch distributed ...", "phase init" },
	{ "megatron-lm", "[2026-01-01 00:00:00.1] saving checkpoint at iteration      10 to /tmp/ckpt in torch_dist format", "saving iteration=10" },
	{ "megatron-lm", "  [2026-01-01 00:00:00.1] successfully saved checkpoint from iteration      10 to /tmp/ckpt [ t 1/1, p 1/1 ]", "saved iteration=10" },
	{ "megatron-lm", "  successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration 40", "resumed iteration=40" },
	{ "megatron-lm", "exiting program after receiving SIGTERM.", "ended" },
	{ "megatron-lm", "[exiting program at iteration 30] datetime: 2026", "ended iteration=30" },
};

static void test_lines(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(printed); i++) {
		struct engine e = load(printed[i].kind);
		_cleanup_(mo_freep) char *said = facts(&e, printed[i].line);

		if (strcmp(said, printed[i].facts) != 0)
			fail_msg("%s: %s\nexpected: %s\n     got: %s", printed[i].kind, printed[i].line, printed[i].facts, said);
		mo_desc_done(&engine_desc, &e);
	}
}

/* Long lines without a match must not make the patterns backtrack beyond the agent's limit. */
static void test_long_lines(void **state)
{
	static const char *const kinds[] = { "torch", "megatron-lm" };
	static const char *const parts[] = { "step 1 ", "iteration 5/10 | ", "loss ", "x", "iteration 1/2 | elapsed time per iteration (ms): 3 | ", "step 3/9 loss 1.5 " };

	for (size_t k = 0; k < ELEMENTSOF(kinds); k++)
		for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
			struct engine e = load(kinds[k]);
			_cleanup_(mo_buf_done) struct mo_buf line = { 0 };

			while (line.len + strlen(parts[i]) < 8192)
				mo_buf_str(&line, parts[i]);
			free(facts(&e, line.data));
			mo_desc_done(&engine_desc, &e);
		}
}

static void test_layouts(void **state)
{
	static const struct { const char *kind, *entry, *found; } entries[] = {
		{ "torch", "iter_0000040", "iteration=0000040" }, { "torch", "step-7", "iteration=7" }, { "torch", "latest", NULL }, { "torch", "40.tmp", NULL },
		{ "command", "ck40", "iteration=40" },            { "megatron-lm", "iter_0000040", "iteration=0000040" }, { "megatron-lm", "iter_40", NULL },
		{ "megatron-lm", "release", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
		struct engine e = load(entries[i].kind);
		size_t at = 0;
		_cleanup_(mo_freep) char *found = groups_of(e.layout.entry, entries[i].entry, &at);

		if (!mo_streq(found, entries[i].found))
			fail_msg("%s %s: %s", entries[i].kind, entries[i].entry, found ? found : "nothing");
		mo_desc_done(&engine_desc, &e);
	}
}

/* A real run's log, where there is one beside the repository: 30 iterations, saves at 10, 20 and 30. */
static void test_real_log(void **state)
{
	FILE *f = fopen("../shared/data/engines/logs/megatron-01-ok-h200x2.log", "re");
	struct engine e = load("megatron-lm");
	char line[8192];
	int samples = 0, saved = 0;

	while (f && fgets(line, sizeof(line), f)) {
		_cleanup_(mo_freep) char *said = facts(&e, line);

		samples += mo_starts_with(said, "sample ") && strstr(said, " loss=") && strstr(said, " step_ms=");
		saved += mo_starts_with(said, "saved ");
	}
	if (f) {
		fclose(f);
		assert_int_equal(samples, 30);
		assert_int_equal(saved, 3);
	}
	mo_desc_done(&engine_desc, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files), cmocka_unit_test(test_lines), cmocka_unit_test(test_long_lines), cmocka_unit_test(test_layouts), cmocka_unit_test(test_real_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
