/* Engine files: what is refused in one, and the shipped checkpoint layouts. The line rules:
 * tests/unit/engine. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/engine_file.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/engine_load.h"

static const char head[] = "engine: 1\nkind: x\nsource: s\nargv: [a]\n";
static const struct {
	const char *lines, *expected;
} bad[] = {
	{ "lines: [{kind: sample, pattern: 'iter (\\d+'}]\n",
	  "5:33 pattern: missing closing parenthesis, at its character 10" },
	{ "lines: [{kind: sample, pattern: 'iter \\d+'}]\n",
	  "5:33 pattern: it needs a group (?<iteration>...)" },
	{ "lines: [{kind: sample, pattern: '(?<iteration>1)(?<los>2)'}]\n",
	  "5:33 pattern: unknown group 'los'" },
	{ "lines: [{kind: saved, pattern: '(a+)+$'}]\n",
	  "5:32 pattern: it backtracks without end on 64 equal characters [a repetition inside a "
	  "repetition" },
	{ "lines: [{kind: saved, pattern: 'saved: (x|x)*y'}]\n",
	  "5:32 pattern: it backtracks without end" },
	{ "lines: [{kind: saved, pattern: '(?:\\s*\\S*)*!'}]\n",
	  "5:32 pattern: it backtracks without end" },
	{ "lines: [{kind: sample, begin: '(?<iteration>1)', fields: {a: loss}, needs: [steps]}]\n",
	  "5:76 lines: needs: 'steps' is no value that a sample keeps" },
	{ "exit_codes: {\"999\": a}\n",
	  "5:14 exit_codes: '999' is no exit code of a program that failed: 1 to 255" },
	{ "exit_codes: {\"0\": a, \"-1\": b, x: c}\n", "5:14 exit_codes: '0' is no exit code" },
	{ "owned: [save]\n", "5:8 owned: expected a mapping" },
	{ "owned: {save=: a}\n", "5:9 owned: 'save=' is no flag: write its name alone" },
	{ "lines: [{kind: samples, pattern: a}]\n",
	  "5:16 kind: expected one of sample, phase, saved, saving, resumed, ended, got 'samples' "
	  "[did you mean 'sample'?]" },
	{ "lines: [{kind: phase, pattern: a}]\n", "5:9 a phase rule needs 'phase'" },
	{ "lines: [{kind: phase, pattern: a, phase: begin}]\n",
	  "5:42 phase: expected one of init, load, train, save, eval, got 'begin'" },
	{ "lines: [{kind: sample}]\n",
	  "5:9 lines: a rule needs either 'pattern', or 'begin' with 'fields'" },
	{ "lines: [{kind: sample, begin: '(?<iteration>\\d+)'}]\n",
	  "5:9 lines: 'begin' and 'fields' go together" },
	{ "lines: [{kind: sample, begin: a, fields: {loss: loss}}]\n",
	  "5:31 pattern: it needs a group (?<iteration>...)" },
	{ "lines: [{kind: sample, begin: '(?<iteration>1)', fields: {lm loss: grad_nrm}}]\n",
	  "5:68 fields: 'grad_nrm' is no value of a sample [did you mean 'grad_norm'?]" },
	{ "lines: [{kind: sample, pattern: '(?<iteration>1)', separator: '|'}]\n",
	  "5:63 lines: 'separator' is for 'fields'" },
	{ "processes: nodes\n", "5:12 processes: expected one of gpu, node" },
	{ "prepare: {limit: 0s}\n", "5:18 prepare.limit: expected" },
	{ "prepare: {script: none.sh}\n",
	  "5:19 prepare.script: 'none.sh' cannot be read from there" },
	{ "prepare: {script: ../engines/primus-hooks.sh}\n",
	  "5:19 prepare.script: '../engines/primus-hooks.sh' cannot" },
	{ "prepare: {script: primus-hooks.sh, argv: [x]}\n",
	  "5:42 prepare.argv: prepare.argv and prepare.script are both given" },
	{ "prepare: {argv: [x], script: primus-hooks.sh}\n",
	  "5:30 prepare.script: prepare.argv and prepare.script are both given" },
	{ "heartbeat: {dir: a, file: 'x\\.jsonl', iteration: step}\n",
	  "5:27 heartbeat.file: it needs {rank}" },
	{ "heartbeat: {dir: a, file: 'x{rank}', iteration: step, phases: {a: b}}\n",
	  "5:67 heartbeat.phases: expected one of init" },
	{ "may_change: [cluster.gpu_count]\n",
	  "5:14 may_change: 'cluster.gpu_count' is no value of a recipe" },
	{ "lines: {kind: phase}\n", "5:8 lines: expected a list" },
	{ "layout: {markers: [a]}\n", "5:9 missing key 'layout.entry'" },
	{ "layout: {entry: 'iter_\\d+'}\n", "5:17 pattern: it needs a group (?<iteration>...)" },
	{ "layout: {entry: '(?<iteration>1)', subdir: ../..}\n",
	  "5:44 layout.subdir: '../..' does not stay below the directory" },
	{ "layout: {entry: '(?<iteration>1)', subdir: /tmp}\n",
	  "5:44 layout.subdir: '/tmp' does not stay below the directory" },
	{ "layout: {entry: '(?<iteration>1)', subdir: a/../..}\n",
	  "5:44 layout.subdir: 'a/../..' does not stay below" },
	{ "layout: {entry: '(?<iteration>1)', tracker: ../latest}\n",
	  "5:45 layout.tracker: '../latest' does not stay below" },
	{ "layout:\n  entry: '(?<iteration>1)'\n  markers: [a, 'b|../../x']\n",
	  "7:16 layout.markers: '../../x' does not stay below the directory" },
	{ "layout: {entry: '(?<iteration>1)', markers: ['a|']}\n",
	  "5:46 layout.markers: '' does not stay below" },
	{ "layout: {entry: '(?<iteration>1)', needs: [{file: ../a}]}\n",
	  "5:51 file: '../a' does not stay below" },
	{ "layout: {entry: '(?<iteration>1)', needs: [{each: a}]}\n", "5:44 missing key 'file'" },
	{ "layout: {entry: '(?<iteration>1)', needs: [{file: a, unless: '('}]}\n",
	  "5:62 pattern: missing closing parenthesis" },
	{ "layout: {entry: '(?<iteration>1)', needs: {file: a}}\n",
	  "5:43 layout.needs: expected a list" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: 'a_\\d+'}]}\n",
	  "5:52 pattern: a grid needs one to 4 groups (\\d+), not 0" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(?<rank>1)'}]}\n",
	  "5:52 pattern: unknown group 'rank'" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(1)', count: ranks}]}\n",
	  "5:66 count: expected one of world, divides" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(\\d)', told_by: x, excused: {a b: "
	  "'!0', c: maybe}}]}\n",
	  "5:81 excused: 'maybe' is no number and no !number" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(\\d)', says: [a], tied: b}]}\n",
	  "5:77 tied: it wants two to 4 numbers of 'says'" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(\\d)', says: [a, b], tied: c, "
	  "fixes: [tp, ep]}]}\n",
	  "5:90 fixes: as many as 'says' and 'tied'" },
	{ "layout: {entry: '(?<iteration>1)', tracker: t, by_tracker: '('}\n",
	  "5:60 pattern: missing closing parenthesis" },
	{ "layout: {entry: '(?<iteration>1)', grids: [{files: '(\\d)', told_by: '('}]}\n",
	  "5:69 pattern: missing closing parenthesis" },
	{ "layout: {entry: '(?<iteration>1)', iterations: {'(': a b}}\n",
	  "5:49 pattern: missing closing parenthesis" },
	{ "layout: {entry: '(?<iteration>1)', formats: {'\\.pt$': zip}}\n",
	  "5:55 layout.formats: 'zip' is no format" },
	{ "layout: {entry: '(?<iteration>1)', formats: {'(': torch}}\n",
	  "5:46 pattern: missing closing parenthesis" },
	{ "layout: {entry: '(?<iteration>1)', markers: [a], members: {b: c}}\n",
	  "5:60 layout.members: 'b' is not among layout.markers" },
	{ "layout: {entry: '(?<iteration>1)', grid: a}\n",
	  "5:36 unknown key 'layout.grid' [did you mean 'grids'?]" },
	{ "resume: [--load, '{dir}', '{bogus}']\n",
	  "5:27 resume: unknown placeholder '{bogus}': expected {iteration} or {dir}" },
	{ "fresh: ['--x={checkpoint.dir}']\n",
	  "5:9 fresh: unknown placeholder '{checkpoint.dir}'" },
	{ "flags: {parallelismm.tp: --tp}\n",
	  "5:9 flags: 'parallelismm.tp' is no value of a recipe" },
	{ "env: [{name: A, value: b}]\n", "5:7 missing key 'reason'" },
	{ "env: [{name: RANK, value: b, reason: c}]\n", "5:14 env: RANK is set by the launcher" },
	{ "env: [{name: A, value: b, reason: c}, {name: A, value: d, reason: e}]\n",
	  "5:46 env: A is given twice" },
	{ "metrics_rank: middle\n", "5:15 metrics_rank: expected one of first, last, any" },
	{ "config: {words: dotted}\ninputs: {a: fil}\n",
	  "6:13 inputs: expected file, path or prefixes" },
	{ "pipeline_dump: {key: a}\n", "5:16 missing key 'pipeline_dump.in'" },
	{ "untold: {parallelism.etq: '4'}\n",
	  "5:10 untold: 'parallelism.etq' is no value of a recipe" },
	{ "untold: {parallelism.etp: '{parallelism.to}'}\n",
	  "5:27 untold: '{parallelism.to}' is no value of a recipe" },
	{ "untold: {parallelism.etp: '{parallelism.tp} x'}\n",
	  "5:27 untold: '{parallelism.tp} x' is no value of a recipe" },
	{ "module_names: [a]\n", "5:15 module_names: expected a mapping" },
	{ "inputs: {a: file}\n", "5:9 inputs: nothing says how its configuration is read" },
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
			fail_msg("%s\nexpected: %s\n     got: %s", bad[i].lines, bad[i].expected,
				 said);
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

/* The pattern's first match at or behind *at: "name=value ..." of all named groups that matched, in
 * the order of the names; NULL = none. Moves *at behind it. */
static char *groups_of(const char *pattern, const char *line, size_t *at)
{
	int code;
	PCRE2_SIZE offset;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_DUPNAMES,
				       &code, &offset, NULL);
	pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	struct mo_buf b = { 0 };
	uint32_t n = 0, size = 0;
	PCRE2_SPTR table = NULL;

	pcre2_set_match_limit(context, 100000); /* what the agent allows */
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
			mo_buf_printf(&b, "%s%s=%.*s", b.len ? " " : "",
				      (const char *)table + i * size + 2,
				      (int)(v[2 * g + 1] - v[2 * g]), line + v[2 * g]);
	}
	if (r > 0)
		*at = v[1] > v[0] ? v[1] : v[1] + 1;
	pcre2_match_context_free(context);
	pcre2_match_data_free(data);
	pcre2_code_free(re);
	return r > 0 ? mo_buf_take(&b) : NULL;
}

static void test_layouts(void **state)
{
	static const struct {
		const char *kind, *entry, *found;
	} entries[] = {
		{ "torch", "iter_0000040", "iteration=0000040" },
		{ "torch", "step-7", "iteration=7" },
		{ "torch", "latest", NULL },
		{ "torch", "40.tmp", NULL },
		{ "command", "ck40", "iteration=40" },
		{ "megatron-lm", "iter_0000040", "iteration=0000040" },
		{ "megatron-lm", "iter_40", NULL },
		{ "megatron-lm", "release", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
		struct engine e = load(entries[i].kind);
		size_t at = 0;
		_cleanup_(mo_freep) char *found = groups_of(e.layout.entry, entries[i].entry, &at);

		if (!mo_streq(found, entries[i].found))
			fail_msg("%s %s: %s", entries[i].kind, entries[i].entry,
				 found ? found : "nothing");
		mo_desc_done(&engine_desc, &e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
