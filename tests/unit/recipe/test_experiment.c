/* Experiments of Primus over files in memory: what its loader makes of them, what it refuses, and
 * what a hostile file may not do. The vendor's own files and answers are in
 * tests/e2e/test_experiments.py. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/model/limits.h"
#include "lib/recipe/config_scalar.h"
#include "lib/recipe/experiment.h"
#include "tests/unit/unit.h"

struct file {
	const char *path, *text;
};
#define PLATFORM \
	{ \
		"primus/configs/platforms/platform_azure.yaml", \
			"name: a\nworkspace: b\nnum_nodes_env_key: c\n" \
			"node_rank_env_key: d\nmaster_addr_env_key: e\nmaster_port_env_key: f\n" \
			"gpus_per_node_env_key: g\n" \
	}
#define MODULE \
	{ "primus/configs/modules/m/base.yaml", \
	  "steps: 1\nlr: 1.0e-5\nopt: {a: 1, b: '${N:null}'}\n" }, \
	{ \
		"primus/configs/modules/m/pre.yaml", \
			"extends: [base.yaml]\nsteps: 2\nname: x\nseq: 4\n" \
	}
#define MODEL \
	{ \
		"primus/configs/models/m/big.yaml", \
			"layers: 8\nseq: 99\nbases: [x.yaml]\ndeep: {c: '${N:null}'}\n" \
	}
#define NAMES "work_group: ${TEAM:amd}\nuser_name: u\nexp_name: e\nworkspace: ./o\n"
#define TOP \
	NAMES "modules:\n  pre_trainer:\n    framework: m\n    config: pre.yaml\n" \
	      "    model: big\n"
#define BIG_CHUNK (16 * 1024)

struct memory {
	const struct file *files;
	size_t n;
	const char *const *variables;
};

static int memory_read(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	const struct memory *m = arg;

	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->files[i].path, path)) {
			if (strlen(m->files[i].text) > most)
				return -EFBIG;
			mo_buf_str(ret, m->files[i].text);
			return 0;
		}
	return -ENOENT;
}

static const char *memory_variable(void *arg, const char *name)
{
	const struct memory *m = arg;

	for (size_t i = 0; m->variables && m->variables[i]; i += 2)
		if (!strcmp(m->variables[i], name))
			return m->variables[i + 1];
	return NULL;
}

/* "KEY=JSON@FILE:LINE[<JSON@FILE:LINE].." per line, or the error. */
static char *outcome(const struct memory *m, const char *words)
{
	const struct experiment_world world = { (void *)m, memory_read, memory_variable };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	char *list[64];
	size_t n = 0;
	struct experiment e;
	struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *copy = mo_strdup(words);

	for (char *s = copy; s; n++) {
		char *end = strchr(s, '|');

		list[n] = s;
		s = end ? end + 1 : NULL;
		if (end)
			*end = 0;
	}
	int r = experiment_resolve(&world, list, n, &e, &err);

	if (r < 0)
		return mo_printf("%d %s", r, mo_error_text(&err, r));
	struct config_item *items = NULL;
	size_t n_items = 0;

	config_items(e.merged, &items, &n_items);
	for (size_t i = 0; i < n_items; i++) {
		mo_buf_printf(&b, "%s=", items[i].key);
		for (const struct config_value *v = items[i].value; v; v = v->over) {
			_cleanup_(mo_freep) char *place = experiment_place(&e, v->place);
			const char *slash = strrchr(place, '/');

			config_json(v, &b);
			if (v->place.word >= 0)
				mo_buf_printf(&b, "@word %lld", (long long)v->place.word);
			else
				mo_buf_printf(&b, "@%s", slash ? slash + 1 : place);
			mo_buf_str(&b, v->over ? " < " : "\n");
		}
	}
	for (size_t i = 0; i < e.n_skipped; i++)
		mo_buf_printf(&b, "skipped %s\n", e.skipped[i]);
	for (size_t i = 0; i < e.n_idle; i++)
		mo_buf_printf(&b, "idle %s\n", e.idle[i]);
	config_items_free(items, n_items);
	experiment_done(&e);
	return mo_buf_take(&b);
}

static char *of_experiment(const char *text, const char *words, const char *const *variables)
{
	const struct file files[] = {
		{ "x/e.yaml", text },
		{ "x/low.yaml", "modules: {pre_trainer: {overrides: {low: 1, lr: 7}}}\n" },
		{ "x/round.yaml", "extends: e.yaml\n" },
		{ "x/tab.yaml", "a:\n"
				"\tb: 1\n" },
		{ "x/none.yaml", "# nothing\n" },
		PLATFORM,
		MODULE,
		MODEL,
	};
	const struct memory m = { files, ELEMENTSOF(files), variables };

	return outcome(&m, words ? words : "train|pretrain|--config|x/e.yaml");
}

static void expect(const char *text, const char *words, const char *const *variables,
		   const char *expected)
{
	_cleanup_(mo_freep) char *got = of_experiment(text, words, variables);

	if (!strstr(got, expected))
		fail_msg("expected: %s\n     got: %s", expected, got);
}

static void test_merge(void **state)
{
	_cleanup_(mo_freep) char *plain = of_experiment(TOP, NULL, NULL);

	/* The model's seq loses to the module's; what the model brings as a new map keeps the text
	 * null until the next merge. */
	assert_string_equal(plain, "bases=[\"x.yaml\"]@big.yaml:3\ndeep.c=\"null\"@big.yaml:4\n"
				   "layers=8@big.yaml:1\nlr=1e-05@base.yaml:2\n"
				   "model=\"big\"@e.yaml:9\nopt.a=1@base.yaml:3\n"
				   "opt.b=null@base.yaml:3\nseq=4@pre.yaml:4 < 99@big.yaml:2\n"
				   "steps=2@pre.yaml:2 < 1@base.yaml:1\n");
	expect(TOP "    overrides: {opt: {b: 2}, list: [yes, 1e-5]}\n", NULL, NULL,
	       "deep.c=null@big.yaml:4");
	expect(TOP "    overrides: {opt: {b: 2}}\n", NULL, NULL,
	       "opt.b=2@e.yaml:10 < null@base.yaml:3");
	expect(TOP "    overrides: {opt: 3}\n", NULL, NULL,
	       "opt=3@e.yaml:10 < {\"a\":1,\"b\":null}@base.yaml:3");
	expect(TOP "    overrides:\n"
		   "      list: [yes, 1e-5]\n",
	       NULL, NULL, "list=[true,\"1e-5\"]@e.yaml:11");
	expect(TOP "    overrides: {steps: 5, steps: 6}\n", NULL, NULL,
	       "steps=6@e.yaml:10 < 2@pre.yaml:2 < 1@base.yaml:1");
	expect(TOP "    extra: ${N:null}\n    _own: 1\n", NULL, NULL,
	       "extra=null@e.yaml:10\n"
	       "layers");
	expect("extends: low.yaml\n" TOP "    overrides: {lr: 8}\n", NULL, NULL,
	       "low=1@low.yaml:1\nlr=8@e.yaml:11 < 7@low.yaml:1 < 1e-05@base.yaml:2");
	expect(TOP "lr: 5\nenv: {A: 1}\n", NULL, NULL, "idle x/e.yaml:10: lr\n");
	expect(NAMES "modules: {post_trainer: {framework: m, config: pre, model: big}}\n", NULL,
	       NULL, "steps=2@pre.yaml:2");
	expect("\xef\xbb\xbf" TOP, NULL, NULL, "steps=2");
	expect("work_group: a\r\nuser_name: u\r\nexp_name: e\r\nworkspace: w\r\nmodules:\r\n"
	       "  pre_trainer:\r\n    framework: m\r\n"
	       "    config: pre.yaml\r\n    model: big\r\n    overrides:\r\n      a: b\r\n"
	       "      c: \"d\r\n        e\"\r\n",
	       NULL, NULL, "a=\"b\"@e.yaml:11\n");
}

static void test_words(void **state)
{
#define C "train|pretrain|--config|x/e.yaml|"
	expect(TOP, C "--steps|9", NULL, "steps=9@word 4 < 2@pre.yaml:2 < 1@base.yaml:1");
	expect(TOP, C "opt.a=1e-5|--steps|1.0e-5", NULL, "opt.a=\"1e-5\"@word 4 < 1@base.yaml:3");
	expect(TOP, C "--data_path|/d|data_path=/e", NULL, "data_path=\"/e\"@word 6");
	expect(TOP, C "stray|-k|v|--flag", NULL, "skipped stray\nskipped -k\nskipped v\n");
	expect(TOP, C "--steps|None|--lr|null", NULL, "lr=\"null\"@word 6");
	expect(TOP, C "--list|[1,'a',(2.5,None)]", NULL, "list=[1,\"a\",[2.5,null]]@word 4");
	expect(TOP, C "--a|1|--a.b|2", NULL, "-22 the word a.b: 'a' is no map");
	expect(TOP, C "--a|{1:2}", NULL, "-22 the word a: the key 1 is no text");
	expect(TOP, C "--e|1", NULL,
	       "-22 the word --e: Primus has more than one option that begins so");
	expect(TOP, C "--=1", NULL,
	       "-22 the word --=1: Primus has more than one option that begins so");
	expect(TOP, C "--help", NULL, "-22 the word --help: Primus prints its help");
	expect(TOP, C "--exp", NULL, "-22 the word --exp: a value must follow");
	expect(TOP, "train|pretrain|--steps|1", NULL,
	       "-22 the command names no experiment: no --config");
	expect(TOP, "train|pretrain|--config|x/f.yaml", NULL,
	       "-2 the command: the experiment: x/f.yaml: no such file");
}

static void test_variables(void **state)
{
	static const char *const set[] = { "TEAM", "007", "E", "",  "A", "1e-5",
					   "S",    "a b", "N", "3", NULL };

	expect(TOP, NULL, set,
	       "-22 x/e.yaml:1: work_group: Primus needs a text here, and reads a whole number "
	       "('7')");
	expect(NAMES "a: ${GONE}\n", NULL, NULL,
	       "-22 x/e.yaml:5: ${GONE}: the variable is not set");
	expect(TOP "    overrides: {a: \"${A:4}\", b: '${X:4}', c: '${X:a}b', d: '${X:-4}', e: "
		   "'${E:5}'}\n",
	       NULL, (const char *const[]){ "A", "1e-5", "E", "", NULL },
	       "a=1e-05@e.yaml:10\nb=4@e.yaml:10\nbases=[\"x.yaml\"]@big.yaml:3\n"
	       "c=\"ab\"@e.yaml:10\nd=-4@e.yaml:10\ndeep.c=null@big.yaml:4\ne=\"\"@");
	expect(TOP "    overrides: {opt: {b: 2}, a: '${N} ${X:${V}}'}\n", NULL,
	       (const char *const[]){ "N", "3", NULL }, "a=\"3 ${V}\"@e.yaml:10");
}

/* Where PyYAML takes more than YAML 1.2 says. */
static void test_pyyaml(void **state)
{
	/* indentation means nothing in brackets and quotes */
	expect(TOP "    overrides:\n      a: [\n        1,\n      2 # two\n      ]\n      b: {\n   "
		   "c: 3\n"
		   "    }\n      d: \"e\n      f\"\n",
	       NULL, NULL, "a=[1,2]@e.yaml:11\nb.c=3@e.yaml:16\n");
	expect(TOP "    overrides:\n      d: \"e\n      f\"\n", NULL, NULL,
	       "d=\"e f\"@e.yaml:11\n");
	/* the tags of its own types */
	expect(TOP
	       "    overrides: {a: !!float 1e-5, b: !!int '0x10', c: !!bool oN, d: !!float 4}\n",
	       NULL, NULL, "a=1e-05@e.yaml:10\nb=16@e.yaml:10\n");
	expect(TOP "    overrides: {a: !!bool oN, b: !!float 4, ba: !!float '-1_0.5e3'}\n", NULL,
	       NULL, "a=true@e.yaml:10\nb=4.0@e.yaml:10\nba=-10500.0@e.yaml:10\n");
	expect(TOP "    overrides: {a: !!str 007, b: !!null x, ba: &x !!int 1_0, bb: *x}\n", NULL,
	       NULL,
	       "a=\"007\"@e.yaml:10\nb=null@e.yaml:10\nba=10@e.yaml:10\nbases=[\"x.yaml\"]@big."
	       "yaml:3\n"
	       "bb=10@e.yaml:10\n");
	expect(TOP "    overrides: {a: !!seq [1], b: !!map {c: 2}, ba: !!str '${X:5}'}\n", NULL,
	       NULL, "a=[1]@e.yaml:10\nb.c=2@e.yaml:10\nba=5@e.yaml:10\n");
	/* a tab in quotes, blocks and comments */
	expect(TOP
	       "    overrides:\n      a: 'b\tc'\n      b: |\n        d\te # \t\n      ba: 1 # \t\n"
	       "      # \t\n",
	       NULL, NULL,
	       "a=\"b\\u0009c\"@e.yaml:11\nb=\"d\\u0009e # \\u0009\\u000a\"@e.yaml:12\nba=1@");
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{ NAMES, "-22 x/e.yaml:1: missing key 'modules'" },
		{ "exp_name: a\nmodules: {}\n", "-22 x/e.yaml:1: missing key 'workspace'" },
		{ "# empty\n", "-22 x/e.yaml:1: the file is empty" },
		{ "- a\n", "-22 x/e.yaml:1: no mapping" },
		{ "extends: gone.yaml\n" TOP,
		  "-22 x/e.yaml:1: extends: x/gone.yaml: no such file" },
		{ "extends: round.yaml\n" TOP,
		  "-22 x/round.yaml:1: extends: x/e.yaml: the files extend each other in a "
		  "circle" },
		{ "extends: none.yaml\n" TOP, "-22 x/none.yaml:1: the file is empty" },
		{ "extends: tab.yaml\n" TOP, "-22 x/tab.yaml:2: a tab indents this line" },
		{ "extends:\n" TOP,
		  "-22 x/e.yaml:1: extends: expected the name of a file, got null" },
		{ "extends: [a, 5]\n" TOP, "-22 x/e.yaml:1: extends: x/a: no such file" },
		{ NAMES "modules: {pretraining: {framework: m}}\n",
		  "-22 x/e.yaml:5: the module 'pretraining': Primus takes only" },
		{ NAMES "modules: {pre_trainer: {framework: m, model: big}}\n",
		  "-22 x/e.yaml:5: no module 'pre_trainer' with `config`" },
		{ NAMES "modules: {pre_trainer: {framework: m, config: pre}}\n",
		  "-22 x/e.yaml:5: missing key 'model'" },
		{ NAMES "modules: {pre_trainer: {config: pre, model: big}}\n",
		  "-22 x/e.yaml:5: missing key 'framework'" },
		{ NAMES "modules: {pre_trainer: 5}\n",
		  "-22 x/e.yaml:5: the module 'pre_trainer': expected a mapping" },
		{ NAMES "modules:\n  pre_trainer: {framework: m, config: gone, model: big}\n",
		  "-22 x/e.yaml:6: config: primus/configs/modules/m/gone.yaml: no such file" },
		{ NAMES "modules:\n  pre_trainer:\n    framework: m\n    config: pre\n"
			"    model: ../../../../etc/passwd\n",
		  "-22 x/e.yaml:9: model: '../../../../etc/passwd' leads out of primus/configs" },
		{ NAMES "modules:\n  pre_trainer:\n    framework: m\n    config: pre\n"
			"    model: 4\n",
		  "-22 x/e.yaml:9: model: Primus needs a text here" },
		{ TOP "    overrides: [1]\n",
		  "-22 x/e.yaml:10: overrides: expected a mapping, got a list" },
		{ TOP "    params: 4\n", "steps=2" },
		{ TOP "    overrides: {params: 4}\n",
		  "-22 x/e.yaml:10: params: expected a mapping" },
		{ TOP "    overrides:\n      a: 1\n"
		      "      on: 2\n",
		  "-22 x/e.yaml:12: the key 'on' is no text in YAML 1.1" },
		{ TOP "    overrides: {a: =}\n",
		  "-22 x/e.yaml:10: '=' by itself has no value in YAML 1.1" },
		{ TOP "    overrides: {a: 2026-02-30}\n",
		  "-22 x/e.yaml:10: '2026-02-30' has the form of a date" },
		{ TOP "    overrides: {a: !mine '5'}\n",
		  "-22 x/e.yaml:10: tags (!name) are not used here" },
		{ TOP "    overrides: {a: !!int 4.5}\n",
		  "-22 x/e.yaml:10: '4.5' is no value of the type that its tag says" },
		{ TOP "    overrides: {a: !!bool 1}\n", "-22 x/e.yaml:10: '1' is no value of" },
		{ TOP "    overrides: {a: !!float x}\n", "-22 x/e.yaml:10: 'x' is no value of" },
		{ TOP "    overrides: {a: !!seq x}\n", "-22 x/e.yaml:10: tags (!name)" },
		{ TOP "    overrides: {!!int 1: x}\n",
		  "-22 x/e.yaml:10: the key '1' is no text in YAML 1.1" },
		{ TOP "    overrides: {a: &x 1, b: &x 2}\n",
		  "-22 x/e.yaml:10: a second anchor 'x'" },
		{ TOP "    overrides:\n      a:\t1\n", "-22 x/e.yaml:11: a tab outside quotes" },
		{ TOP "    overrides:\n      a: 1 \t# b\n",
		  "-22 x/e.yaml:11: a tab outside quotes" },
		{ TOP "    overrides: {a: 'b\tc', d: [1,\t2]}\n",
		  "-22 x/e.yaml:10: a tab outside quotes" },
		{ TOP "    overrides:\n      a: |\n      b: 1\n",
		  "-22 x/e.yaml:11: a: a block of text that is not deeper than its key" },
		{ TOP "# \xc2\x85\n", "-22 x/e.yaml:10: a control character" },
		{ TOP "# \xe2\x80\xa8\n", "-22 x/e.yaml:10: a control character" },
		{ TOP "platform: {config: gone.yaml}\n",
		  "-22 x/e.yaml:10: platform: primus/configs/platforms/gone.yaml: no such file" },
		{ TOP "    overrides: {a: [}\n", "-22 x/e.yaml:10: not valid YAML" },
		{ TOP "# \x07\n", "-22 x/e.yaml:10: a control character" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		expect(cases[i].text, NULL, NULL, cases[i].expected);
}

/* Each limit is hit, in a time that nobody waits for. */
static void test_limits(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *large = mo_alloc(MO_RECIPE_BYTES_MAX + 2),
				 *value = mo_alloc(BIG_CHUNK + 1);

	memset(large, '#', MO_RECIPE_BYTES_MAX + 1);
	expect(large, NULL, NULL, "-22 x/e.yaml:1: larger than 256 kB");
	memset(value, 'v', BIG_CHUNK);
	mo_buf_str(&b, TOP "    overrides: {a: '");
	for (int i = 0; i < 5; i++)
		mo_buf_str(&b, "${BIG}");
	mo_buf_str(&b, "'}\n");
	expect(b.data, NULL, (const char *const[]){ "BIG", value, NULL },
	       "a text of more than 65536 bytes");
	mo_buf_reset(&b);
	mo_buf_str(&b, TOP "    overrides: {");
	for (int i = 0; i < 300; i++)
		mo_buf_printf(&b, "k%d: '${BIG}',\n      ", i);
	mo_buf_str(&b, "z: 1}\n");
	expect(b.data, NULL, (const char *const[]){ "BIG", value, NULL },
	       "more than 4194304 bytes of texts in one experiment");
	/* Two files that extend the same one twice: as many reads as there are ways. */
	mo_buf_reset(&b);
	mo_buf_str(&b, "extends: [");
	for (int i = 0; i < 100; i++)
		mo_buf_str(&b, "low.yaml, ");
	mo_buf_str(&b, "]\n" TOP);
	expect(b.data, NULL, NULL, "-22 x/e.yaml:1: extends: x/low.yaml: more than 64 files");
	mo_buf_reset(&b);
	mo_buf_str(&b, "train|pretrain|--config|x/e.yaml|");
	for (int i = 0; i < 40; i++)
		mo_buf_str(&b, "a.");
	mo_buf_str(&b, "b=1");
	expect(TOP, b.data, NULL, "more than 32 parts");
	mo_buf_reset(&b);
	mo_buf_str(&b, "train|pretrain|--config|x/e.yaml|--a|");
	for (int i = 0; i < 5000; i++)
		mo_buf_str(&b, "[");
	expect(TOP, b.data, NULL, "a=\"[[[");
}

/* What PyYAML, Primus' placeholders and Primus' command line make of a word. */
static void test_scalars(void **state)
{
	static const struct {
		char form;
		const char *text, *expected;
	} cases[] = {
		{ 'y', "1e-5", "\"1e-5\"" },
		{ 'y', "1.0e-5", "1e-05" },
		{ 'y', "1.0e5", "\"1.0e5\"" },
		{ 'y', "1.e+5", "100000.0" },
		{ 'y', "010", "8" },
		{ 'y', "08", "\"08\"" },
		{ 'y', "0o10", "\"0o10\"" },
		{ 'y', "-0x1F", "-31" },
		{ 'y', "0b11", "3" },
		{ 'y', "1_000", "1000" },
		{ 'y', "1:30", "90" },
		{ 'y', "1:60", "\"1:60\"" },
		{ 'y', "1:30.5", "90.5" },
		{ 'y', "y", "\"y\"" },
		{ 'y', "OFF", "false" },
		{ 'y', "oFF", "\"oFF\"" },
		{ 'y', "", "null" },
		{ 'y', "~", "null" },
		{ 'y', "None", "\"None\"" },
		{ 'y', "-.5", "\"-.5\"" },
		{ 'y', ".5", "0.5" },
		{ 'y', "0.0.0", "\"0.0.0\"" },
		{ 'y', "-.Inf", "\"-inf\"" },
		{ 'y', "nan", "\"nan\"" },
		{ 'y', "100000000000000000000", "100000000000000000000" },
		{ 'y', "2026-01-02", "\"2026-01-02\"" },
		{ 'y', "+0", "0" },
		{ 'y', "1.7976931348623157e+308", "1.7976931348623157e+308" },
		{ 'y', "0.1", "0.1" },
		{ 'y', "1.0e+16", "1e+16" },
		{ 'y', "0.0001", "0.0001" },
		{ 'y', "0.00001", "1e-05" },
		{ 'y', "123456789.123456789", "123456789.12345679" },
		{ 'p', "007", "7" },
		{ 'p', "-4", "-4" },
		{ 'p', "+4", "\"+4\"" },
		{ 'p', "1e-5", "1e-05" },
		{ 'p', "4.", "4.0" },
		{ 'p', ".", "\".\"" },
		{ 'p', "1_000", "\"1_000\"" },
		{ 'p', "yes", "\"yes\"" },
		{ 'p', "TRUE", "true" },
		{ 'p', "null", "\"null\"" },
		{ 'p', "1e", "\"1e\"" },
		{ 'w', "1e-5", "\"1e-5\"" },
		{ 'w', "1.0e-5", "1e-05" },
		{ 'w', "04", "4" },
		{ 'w', "+4", "4" },
		{ 'w', "1_000", "1000" },
		{ 'w', "1__0", "\"1__0\"" },
		{ 'w', "None", "null" },
		{ 'w', "null", "\"null\"" },
		{ 'w', "[1, 2]", "[1,2]" },
		{ 'w', "[1,a]", "\"[1,a]\"" },
		{ 'w', "[]", "[]" },
		{ 'w', "{}", "{}" },
		{ 'w', "(1)", "1" },
		{ 'w', "(1,)", "[1]" },
		{ 'w', "{'a': [1, -2.5e3]}", "{\"a\":[1,-2500.0]}" },
		{ 'w', "[0]*1+[1]*3", "\"[0]*1+[1]*3\"" },
		{ 'w', "[01]", "\"[01]\"" },
		{ 'w', "['a' \"b\", 'c\\n']", "[\"ab\",\"c\\u000a\"]" },
		{ 'w', "{1, 2}", "[1,2]" },
		{ 'w', ".inf", "\".inf\"" },
		{ 'w', "1.2.3", "\"1.2.3\"" },
		{ 'w', "False", "false" },
		{ 'w', "[0x1F, -0o17, 0b1_1]", "[31,-15,3]" },
		{ 'w', "[0x, 1]", "\"[0x, 1]\"" },
		{ 'w', "[0b2]", "\"[0b2]\"" },
		{ 'w', "['\\x41\\u00e9\\101']",
		  "[\"A\xc3\xa9"
		  "A\"]" },
		{ 'w', "[r'\\n', u'x' R\"y\"]", "[\"\\\\n\",\"xy\"]" },
		{ 'w', "[b'x']", "\"[b'x']\"" },
		{ 'w', "['\\x4']", "\"['\\\\x4']\"" },
		{ 'w', "[1] # one", "[1]" },
	};
	const struct config_place nowhere = { -1, 0, -1 };

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(config_value_freep) struct config_value *v =
			cases[i].form == 'y'   ? config_yaml_scalar(cases[i].text, nowhere, NULL)
			: cases[i].form == 'p' ? config_replaced_scalar(cases[i].text, nowhere)
					       : config_word_value(cases[i].text, nowhere);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		assert_non_null(v);
		config_json(v, &b);
		if (strcmp(b.data, cases[i].expected) != 0)
			fail_msg("%c %s: %s instead of %s", cases[i].form, cases[i].text, b.data,
				 cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),     cmocka_unit_test(test_words),
		cmocka_unit_test(test_variables), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_pyyaml),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_scalars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
