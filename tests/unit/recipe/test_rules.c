/* The table of rules (tests/fixtures/rules/table.yaml): every good recipe passes, every bad one is
 * refused for that one reason at that one place, and every rule of a shipped engine file is in the
 * table. */
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/owned.h"
#include "lib/recipe/resume.h"
#include "lib/recipe/yaml.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/engine_load.h"

/* nothing is left to an experiment that is not here */
#define ALL_ONE "parallelism: {tp: 1, pp: 1, ep: 1, etp: 1, cp: 1}\n"

static struct ynode *table_load(void)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct recipe_errors errors = { 0 };

	assert_int_equal(mo_read_file(MO_SOURCE_DIR "/tests/fixtures/rules/table.yaml", 1 << 20,
				      &text),
			 0);
	struct ynode *root = yaml_load(text.data, text.len, "table", &errors);
	_cleanup_(mo_freep) char *said = errors_text(&errors);

	if (errors.n)
		fail_msg("table.yaml: %s", said);
	recipe_errors_done(&errors);
	return root;
}

/* text with the only `from` replaced; *ret_at: where `to` begins. */
static char *changed(const char *rule, const char *text, const struct ynode *change, size_t *ret_at)
{
	const char *from = change->items[0].value->text, *to = change->items[1].value->text,
		   *at = strstr(text, from);

	if (!at || strstr(at + 1, from))
		fail_msg("%s: '%s' is not there, or more than once:\n%s", rule, from, text);
	if (ret_at)
		*ret_at = (size_t)(at - text);
	return mo_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static char *good_recipe(const struct ynode *root, const struct ynode *row)
{
	const char *rule = ynode_get(row, "rule")->text;
	const struct ynode *base =
		ynode_get(ynode_get(root, "bases"), ynode_get(row, "base")->text);
	char *text = mo_strdup(base->text);

	for (int i = 1;; i++) {
		_cleanup_(mo_freep) char *key = mo_printf("good%d", i), *old = text;
		const struct ynode *change = ynode_get(row, key);

		if (!change) {
			TAKE_PTR(old);
			return text;
		}
		text = changed(rule, old, change, NULL);
	}
}

static void check_good(const char *rule, const char *text)
{
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);

	if (p.errors.n)
		fail_msg("%s: the good recipe is refused:\n%s\n%s", rule, text, said);
}

static void check_warned(const char *rule, const struct parsed *p, int64_t line, int64_t column,
			 const char *says)
{
	_cleanup_(mo_freep) char *place =
		mo_printf("%lld:%lld: ", (long long)line, (long long)column);
	size_t found = 0;

	for (size_t i = 0; i < p->n_warnings; i++)
		found += mo_starts_with(p->warnings[i], place) && strstr(p->warnings[i], says);
	if (p->errors.n || found != 1)
		fail_msg("%s: %zu errors, %zu warnings %s%s", rule, p->errors.n, found, place,
			 says);
}

static void check_bad(const struct ynode *row, const char *text, size_t from)
{
	const char *rule = ynode_get(row, "rule")->text,
		   *at = strstr(text + from, ynode_get(row, "at")->text);
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);
	int64_t line = 1, column = 1;

	at = at ? at : strstr(text, ynode_get(row, "at")->text);
	if (!at)
		fail_msg("%s: '%s' is not in\n%s", rule, ynode_get(row, "at")->text, text);
	for (const char *s = text; s < at; s++) {
		column = *s == '\n' ? 1 : column + 1;
		line += *s == '\n';
	}
	if (ynode_get(row, "warns")) {
		check_warned(rule, &p, line, column, ynode_get(row, "says")->text);
		return;
	}
	if (p.errors.n != 1)
		fail_msg("%s: %zu errors:\n%s\n%s", rule, p.errors.n, text, said);
	if (ynode_get(row, "file")) /* the place is in the engine's own file */
		line = column = 0;
	if (p.errors.items[0].line != line || p.errors.items[0].column != column ||
	    !strstr(said, ynode_get(row, "says")->text))
		fail_msg("%s: expected %lld:%lld ... %s\n%s\ngot %s", rule, (long long)line,
			 (long long)column, ynode_get(row, "says")->text, text, said);
}

static void test_table(void **state)
{
	struct ynode *root = table_load();
	const struct ynode *rules = ynode_get(root, "rules");

	assert_true(rules->n > 100);
	for (size_t i = 0; i < rules->n; i++) {
		const struct ynode *row = rules->items[i].value;
		_cleanup_(mo_freep) char *good = good_recipe(root, row);
		size_t at;
		_cleanup_(mo_freep) char *bad =
			changed(ynode_get(row, "rule")->text, good, ynode_get(row, "bad"), &at);

		check_good(ynode_get(row, "rule")->text, good);
		check_bad(row, bad, at);
	}
	ynode_free(root);
}

static bool in_table(const struct ynode *root, const char *name)
{
	const struct ynode *rules = ynode_get(root, "rules");

	for (size_t i = 0; i < rules->n; i++)
		if (mo_streq(ynode_get(rules->items[i].value, "rule")->text, name))
			return true;
	return false;
}

/* What a feature switches on can be switched on by the engine's own flag too: such a rule has a row
 * for that. */
static bool by_own_key(const struct engine_rule *rule)
{
	for (size_t i = 0; i < rule->n_when; i++)
		if (mo_starts_with(rule->when[i].key, "args."))
			return true;
	return false;
}

/* The file has its rules from another one, where they are tried. */
static bool is_like(const char *kind)
{
	_cleanup_(mo_freep) char *name = mo_printf("engines/%s.yaml", kind);
	_cleanup_(mo_freep) char *path = mo_data_file(name);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	return strstr(text.data, "\nlike: ") && !strstr(text.data, "\nrules:");
}

static void test_every_rule(void **state)
{
	struct ynode *root = table_load();
	char **names = NULL;
	size_t n = 0;

	mo_data_names("engines", &names, &n);
	assert_true(n >= 8);
	for (size_t i = 0; i < n; i++) {
		struct mo_error err = { 0 };
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		if (engine_load(names[i], &e, &err) < 0)
			fail_msg("%s", err.text);
		for (size_t k = 0; e.checks && k < e.checks->n_rules && !is_like(names[i]); k++) {
			_cleanup_(mo_freep) char *name =
				mo_printf("%s/%s", names[i], e.checks->rules[k].id);

			_cleanup_(mo_freep) char *own = mo_printf("%s by own key", name);

			if (!in_table(root, own) &&
			    (!in_table(root, name) || by_own_key(&e.checks->rules[k])))
				fail_msg("tests/fixtures/rules/table.yaml has no %s",
					 in_table(root, name) ? own : name);
		}
		mo_desc_done(&engine_desc, &e);
		free(names[i]);
	}
	free(names);
	ynode_free(root);
}

static bool takes_entry(const struct engine *e)
{
	bool takes = false;

	for (size_t i = 0; i < e->n_argv; i++)
		takes |= mo_streq(e->argv[i], "{entry}");
	for (size_t i = 0; i < e->n_flags; i++)
		takes |= mo_streq(e->flags[i].key, "engine.entry");
	return takes;
}

/* Every flag that moectl decides itself is refused at its place, in a mapping and in a list, in
 * either spelling. */
static void test_every_owned(void **state)
{
	char **names = NULL;
	size_t n = 0, seen = 0;

	mo_data_names("engines", &names, &n);
	for (size_t i = 0; i < n; i++) {
		struct mo_error err = { 0 };
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_load(names[i], &e, &err), 0);
		for (size_t k = 0; k < e.n_owned; k++, seen++) {
			_cleanup_(mo_freep) char *flag = mo_strdup(e.owned[k].key);

			for (char *c = flag; *c; c++)
				*c = *c == '-' ? '_' : *c;
			_cleanup_(mo_freep) char *map =
				mo_printf("recipe: 1\nname: t\nengine: {kind: %s%s,\n  args: {%s: "
					  "5}}\ncluster: {gpus: 1}\nsteps: 1\n",
					  names[i], takes_entry(&e) ? ", entry: e" : "", flag);
			_cleanup_(mo_freep) char *list =
				mo_printf("recipe: 1\nname: t\nengine: {kind: %s%s,\n  args: "
					  "[%s%s=5]}\ncluster: {gpus: 1}\nsteps: 1\n",
					  names[i], takes_entry(&e) ? ", entry: e" : "",
					  e.args_equals ? "" : "--", e.owned[k].key);
			_cleanup_(parsed_done) struct parsed a = parse(map, NULL),
							     b = parse(list, NULL);
			_cleanup_(mo_freep) char *said_a = errors_text(&a.errors),
						 *said_b = errors_text(&b.errors);

			if (a.errors.n != 1 || strncmp(said_a, "4:10 engine.args: ", 18) != 0 ||
			    !strstr(said_a, " is moectl's: "))
				fail_msg("%s\n%s", map, said_a);
			if (b.errors.n != 1 || strncmp(said_b, "4:10 engine.args: ", 18) != 0 ||
			    !strstr(said_b, " is moectl's: "))
				fail_msg("%s\n%s", list, said_b);
		}
		mo_desc_done(&engine_desc, &e);
		free(names[i]);
	}
	free(names);
	assert_true(seen > 40);
}

/* What the agent refuses from engine.prepare: those, and what recipe values bring; not what the
 * recipe lets pass. */
static void test_owned_for_prepare(void **state)
{
	_cleanup_(parsed_done) struct parsed p =
		parse("recipe: 1\nname: t\nengine: {kind: primus-megatron, entry: e, "
		      "args_unchecked: [finetune]}\ncluster: {gpus: 2}\nparallelism: {tp: 2}\n"
		      "checkpoint: {dir: /c, every: 5}\nsteps: 7\n",
		      NULL);
	static const struct {
		const char *flag;
		bool owned;
	} cases[] = {
		{ "save", true },
		{ "load", true },
		{ "ckpt-step", true },
		{ "save_interval", true },
		{ "train_iters", true },
		{ "tensor_model_parallel_size", true },
		{ "sequence_parallel", true },
		{ "config", true },
		{ "finetune", false },
		{ "lr", false },
		{ "train_data_path", false },
	};

	assert_int_equal(p.errors.n, 0);
	engine_owned(&p.engine, &p.recipe);
	engine_owned(&p.engine, &p.recipe);
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		size_t found = 0;

		for (size_t k = 0; k < p.engine.n_owned; k++) {
			_cleanup_(mo_freep) char *key = mo_strdup(p.engine.owned[k].key),
						 *flag = mo_strdup(cases[i].flag);

			for (char *c = key; *c; c++)
				*c = *c == '-' ? '_' : *c;
			for (char *c = flag; *c; c++)
				*c = *c == '-' ? '_' : *c;
			found += mo_streq(key, flag);
		}
		if (found != cases[i].owned)
			fail_msg("%s is owned %zu times", cases[i].flag, found);
	}
}

/* An unknown flag is passed on with a warning at its place, and without one when args_unchecked
 * names it. Scripts of somebody's own have no list. */
static void test_unknown_flags(void **state)
{
	static const struct {
		const char *engine, *args;
		const char *warning;
	} cases[] = {
		{ "kind: megatron-lm", "{something-of-mine: 1}",
		  "4:10: engine.args: unknown flag 'something-of-mine' of Megatron-LM" },
		{ "kind: megatron-lm, args_unchecked: [something_of_mine]",
		  "{something-of-mine: 1}", NULL },
		{ "kind: megatron-lm, args_unchecked: [moe-router-dtipe]",
		  "{moe-router-dtipe: fp32}", NULL },
		{ "kind: primus-megatron, entry: e.yaml", "{something_of_mine: 1}",
		  "4:10: engine.args: unknown flag 'something_of_mine' of Primus" },
		{ "kind: primus-torchtitan, entry: e.yaml",
		  "{training.mock_data: true, something.of_mine: 1}",
		  "4:36: engine.args: unknown flag" },
		{ "kind: torchtitan", "[--something.of_mine, 1]",
		  "4:10: engine.args: unknown flag" },
		{ "kind: primus-megatron, entry: e.yaml, strict_args: true",
		  "{num_workers: 1, --lr: 1e-4}", NULL },
		{ "kind: maxtext", "[something_of_mine=1]", "4:10: engine.args: unknown flag" },
		{ "kind: torch, entry: /x.py", "{anything: 1}", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {%s,\n  args: %s}\ncluster: {gpus: "
				  "1}\nsteps: 1\n" ALL_ONE "%s",
				  cases[i].engine, cases[i].args,
				  strstr(cases[i].engine, "primus-megatron")
					  ? "checkpoint: {dir: /c}\n"
					  : "");
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n || p.n_warnings != (cases[i].warning != NULL) ||
		    (cases[i].warning && !mo_starts_with(p.warnings[0], cases[i].warning)))
			fail_msg("%s\n%s%zu warnings: %s", text, said, p.n_warnings,
				 p.n_warnings ? p.warnings[0] : "");
		assert_null(p.engine.checks);
	}
}

/* What follows from a first error is not reported beside it, and what holds for several is in full
 * once. */
static void test_one_cause_one_error(void **state)
{
	static const struct {
		const char *lines, *expected;
	} cases[] = {
		{ "parallelism: {ep: 3}\nbatch: {global: 7}\n", "5:19 parallelism.ep: 3 " },
		{ "features: {a2a: deepep, sync_free: 1, loss_fusion: true}\n",
		  "5:17 features.a2a: engine torch knows no features" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text = recipe_with(cases[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n != 1 || !mo_starts_with(said, cases[i].expected))
			fail_msg("%s\n%s", text, said);
	}
	_cleanup_(parsed_done) struct parsed p =
		parse("recipe: 1\nname: t\nengine: {kind: megatron-lm, args: {one-of-mine: 1, "
		      "another: 2}}\ncluster: {gpus: 1}\nsteps: 1\n",
		      NULL);

	must(&p);
	assert_int_equal(p.n_warnings, 2);
	assert_non_null(strstr(p.warnings[0], "unknown flag 'one-of-mine' of Megatron-LM"));
	assert_non_null(strstr(p.warnings[1], "unknown flag 'another' too: it is passed on"));
}

/* What was written for a shell is passed on and reported. */
static void test_words_of_a_shell(void **state)
{
	static const struct {
		const char *engine;
		int gpus;
		const char *warning;
	} cases[] = {
		{ "kind: command, argv: [python3, x.py, '>', log]", 1,
		  "3:47: engine.argv: no shell reads a recipe, and the program gets '>' as a "
		  "word" },
		{ "kind: command, argv: [/bin/sh, -c, 'cd /x && y > z']", 1, NULL },
		{ "kind: command, argv: ['/opt/my prog', 'a=1', 'b c']", 8, NULL },
		{ "kind: torch, entry: x, args: [--a, '|', tee]", 1,
		  "3:45: engine.args: no shell reads a recipe, and the program gets '|' as a word: "
		  "leave it out" },
		{ "kind: command, argv: [torchrun, --nproc_per_node, '8', x.py]", 8,
		  "3:32: engine.argv: each of the 8 ranks is this command, which starts ranks of "
		  "its own" },
		{ "kind: command, argv: [/v/bin/python3.11, -m, torch.distributed.run, x.py]", 2,
		  "3:32: engine.argv: each of the 2 ranks" },
		{ "kind: command, argv: [torchrun, x.py]", 1, NULL },
		{ "kind: torch, entry: x, args: {a: '{checkpoint.dirr}', b: '{step}', c: "
		  "'{parallelism.ep}'}",
		  1,
		  "3:43: engine.args: nothing replaces {checkpoint.dirr}; did you mean "
		  "{checkpoint.dir}?" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {%s}\ncluster: {gpus: %d}\n",
				  cases[i].engine, cases[i].gpus);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (p.errors.n || p.n_warnings != (cases[i].warning != NULL) ||
		    (cases[i].warning && !mo_starts_with(p.warnings[0], cases[i].warning)))
			fail_msg("%s\n%s%zu warnings: %s", text, said, p.n_warnings,
				 p.n_warnings ? p.warnings[0] : "");
	}
}

/* A configuration as the program: refused where Python is to run it. */
static void test_entries(void **state)
{
	static const struct {
		const char *engine;
		bool refused;
	} cases[] = {
		{ "kind: torch, entry: /x.yaml", true },
		{ "kind: deepspeed, entry: ds.json", true },
		{ "kind: megatron-lm, entry: a.b/exp.yml, python: /venv/bin/python3.12", true },
		{ "kind: torch, entry: /x.yaml, python: /opt/bin/run-yaml", false },
		{ "kind: torch, entry: /x.yaml.py", false },
		{ "kind: torch, entry: /conf.yaml/train", false },
		{ "kind: maxtext, entry: base.yml", false },
		{ "kind: primus-megatron, entry: e.yaml", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {%s}\ncluster: {gpus: 1}\nsteps: "
				  "1\n" ALL_ONE,
				  cases[i].engine);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);

		if (cases[i].refused != (strstr(said, "is a configuration and no") != NULL))
			fail_msg("%s\n%s", text, said);
	}
}

/* What a planned stop is worth, by the engine file (stop_saves, stop_signal). */
static void test_stops(void **state)
{
	static const struct {
		const char *engine, *lines, *warning;
	} cases[] = {
		{ "kind: torchtitan", "time_limit: 1h\n",
		  "8:13: time_limit: engine torchtitan does not save when it is stopped" },
		{ "kind: torchtitan", "", NULL },
		{ "kind: megatron-lm", "time_limit: 1h\n", NULL },
		{ "kind: torch, entry: /x.py", "time_limit: 1h\n", NULL },
		{ "kind: primus-megatron, entry: e", "stop: {signal: USR1}\n",
		  "8:16: stop.signal: engine primus-megatron saves a checkpoint at SIGTERM only" },
		{ "kind: primus-megatron, entry: e", "stop: {signal: TERM}\n", NULL },
		{ "kind: megatron-lm", "stop: {signal: USR1}\n", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {%s}\ncluster: {gpus: 1}\nsteps: "
				  "1\ncheckpoint:\n  dir: /c\n%s" ALL_ONE,
				  cases[i].engine, cases[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

		if (p.errors.n || p.n_warnings != (cases[i].warning != NULL) ||
		    (cases[i].warning && !mo_starts_with(p.warnings[0], cases[i].warning)))
			fail_msg("%s%zu warnings: %s", text, p.n_warnings,
				 p.n_warnings ? p.warnings[0] : "");
	}
}

/* A precision that the catalogue has no peak of for that GPU: a warning, never refused. */
static void test_precisions(void **state)
{
	static const struct {
		const char *gpu, *precision, *warning;
	} cases[] = {
		{ ", gpu: mi300x", "mxfp8",
		  "8:12: precision: mxfp8: mi300x has none by the catalogue: the job may fail on "
		  "its first step, and nothing is planned; use fp8, bf16 or" },
		{ ", gpu: a100-80", "fp8",
		  "8:12: precision: fp8: a100-80 has none by the catalogue: the job may fail on "
		  "its first step, and nothing is planned; use bf16 or" },
		{ ", gpu: mi355x", "mxfp8", NULL },
		{ ", gpu: mi300x", "fp8", NULL },
		{ ", gpu: mi300x", "bf16", NULL },
		{ "", "mxfp8", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: megatron-lm,\n  args: "
				  "{mock-data: true}}\ncluster: {gpus: 1%s}\nsteps: 1\n" ALL_ONE
				  "precision: %s\n",
				  cases[i].gpu, cases[i].precision);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

		if (p.errors.n || p.n_warnings != (cases[i].warning != NULL) ||
		    (cases[i].warning && !mo_starts_with(p.warnings[0], cases[i].warning)))
			fail_msg("%s%zu warnings: %s", text, p.n_warnings,
				 p.n_warnings ? p.warnings[0] : "");
	}
}

/* What may differ between the run that saved and the one that resumes, by the engine file
 * (may_change). */
#define READ \
	"experiment: {files: 'crc32c:1', args: {save_interval: '20000'}, said: " \
	"{args.save_interval: \"e.yaml:3\"}}\n"

/* Saves that come only behind the job's end, also those of the experiment's own interval. */
static void test_saves(void **state)
{
	static const struct {
		const char *engine, *lines, *warning;
	} cases[] = {
		{ "{kind: megatron-lm, workdir: /w}", "checkpoint: {dir: /c, every: 500}\n",
		  "6:30: checkpoint.every: 500 iterations are more than the job's 50: only the "
		  "state at the end is saved, and a failure "
		  "before begins again at 0; use less, such as 10" },
		{ "{kind: megatron-lm, workdir: /w}", "checkpoint: {dir: /c, every: 50}\n", NULL },
		{ "{kind: torch, entry: x.py}", "checkpoint: {dir: /c, every: 51}\n",
		  "6:30: checkpoint.every: 51 iterations are more than the job's 50: nothing is "
		  "saved, unless the program saves at its end" },
		{ "{kind: primus-megatron, workdir: /w, entry: e.yaml}",
		  ALL_ONE READ "checkpoint: {dir: /c}\n",
		  "e.yaml:3: checkpoint.every: 20000 iterations are more than the job's 50: only "
		  "the state at the end" },
		{ "{kind: primus-megatron, workdir: /w, entry: e.yaml}",
		  ALL_ONE READ "checkpoint: {dir: /c, every: 25}\n", NULL },
		{ "{kind: primus-megatron, workdir: /w, entry: e.yaml, args: {disable_last_saving: "
		  "true}, args_unchecked: [disable_last_saving]}",
		  ALL_ONE "checkpoint: {dir: /c, every: 51}\n",
		  "7:30: checkpoint.every: 51 iterations are more than the job's 50: nothing would "
		  "be saved, because the last save is off too" },
		{ "{kind: maxtext, workdir: /w, args: {save_checkpoint_on_completion: false}}",
		  "checkpoint: {dir: /c, every: 51}\n",
		  "6:30: checkpoint.every: 51 iterations are more than the job's 50: nothing would "
		  "be saved" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *text = mo_printf("recipe: 1\nname: t\nengine: "
							   "%s\ncluster: {gpus: 1}\nsteps: 50\n%s",
							   cases[i].engine, cases[i].lines);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *said = errors_text(&p.errors);
		size_t reported = 0, found = 0;

		for (size_t k = 0; k < p.n_warnings; k++) {
			reported += strstr(p.warnings[k], "iterations are more than") != NULL;
			found +=
				cases[i].warning && mo_starts_with(p.warnings[k], cases[i].warning);
		}
		if (p.errors.n || reported != (cases[i].warning != NULL) || found != reported)
			fail_msg("%s\n%s%zu reported, %zu found: %s", text, said, reported, found,
				 p.n_warnings ? p.warnings[0] : "");
	}
}

static void test_changed(void **state)
{
	static const struct {
		const char *engine, *before, *now, *changed;
	} cases[] = {
		{ "megatron-lm", "gpus: 8}\nparallelism: {tp: 2", "gpus: 8}\nparallelism: {tp: 4",
		  "parallelism.tp 4 instead of 2" },
		{ "megatron-lm", "gpus: 8}\nparallelism: {tp: 2", "gpus: 16}\nparallelism: {tp: 2",
		  NULL },
		{ "torchtitan", "gpus: 8}\nparallelism: {tp: 2", "gpus: 16}\nparallelism: {tp: 4",
		  NULL },
		{ "torch, entry: /x.py", "gpus: 8", "gpus: 16", NULL },
		{ "megatron-lm", "gpus: 8}\nmodel: llama3-8b\nparallelism: {tp: 2",
		  "gpus: 8}\nmodel: llama3-70b\nparallelism: {tp: 2",
		  "model.layers 80 instead of 32, model.hidden 8192 instead of 4096" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		static const char form[] =
			"recipe: 1\nname: t\nengine: {kind: %s}\nsteps: 1\ncluster: {%s}\n";
		_cleanup_(mo_freep) char *before =
						 mo_printf(form, cases[i].engine, cases[i].before),
					 *now = mo_printf(form, cases[i].engine, cases[i].now);
		_cleanup_(parsed_done) struct parsed a = parse(before, NULL), b = parse(now, NULL);
		_cleanup_(mo_freep) char *changed = recipe_changed(&a.recipe, &b.recipe, &b.engine),
					 *said = errors_text(&b.errors);

		assert_string_equal(said, "");
		if (!changed != !cases[i].changed ||
		    (changed && !mo_starts_with(changed, cases[i].changed)))
			fail_msg("%s: %s", cases[i].engine, changed);
	}
}

/* Who names a flag in args_unchecked knows what he does: no rule reads it. */
static void test_unchecked(void **state)
{
	static const char recipe[] =
		"recipe: 1\nname: t\nengine: {kind: primus-megatron, entry: e.yaml, "
		"args_unchecked: [%s], args: {moe_router_dtype: bf16}}\nmodel: qwen3-30b-a3b\n"
		"cluster: {gpus: 8}\nparallelism: {ep: 8}\nfeatures: {a2a: deepep}\nsteps: 1\n";
	_cleanup_(mo_freep) char *known = mo_printf(recipe, "moe-router-dtype"),
				 *other = mo_printf(recipe, "lr");
	_cleanup_(parsed_done) struct parsed passes = parse(known, NULL),
					     fails = parse(other, NULL);

	assert_int_equal(passes.errors.n, 0);
	assert_int_equal(fails.errors.n, 1);
}

/* The planner chooses ep, so rules about it wait. */
static void test_auto(void **state)
{
	_cleanup_(parsed_done) struct parsed p =
		parse("recipe: 1\nname: t\nengine: {kind: primus-megatron, entry: e.yaml}\nmodel: "
		      "qwen3-30b-a3b\ncluster: {gpus: 8, gpu: mi355x}\n"
		      "parallelism: auto\nbatch: {seq: 4096, global: 64}\nfeatures: {a2a: "
		      "deepep}\nsteps: 1\n",
		      NULL);
	_cleanup_(mo_freep) char *said = errors_text(&p.errors);

	assert_string_equal(said, "");
}

/* What is refused in an engine file's own sections. */
static void test_bad_sections(void **state)
{
	static const struct {
		const char *lines, *expected;
	} bad[] = {
		{ "features: {a2aa=deepep: --x}\n", "5:12 features: there is no feature 'a2aa'" },
		{ "features: [a2a]\n", "5:11 features: expected a mapping" },
		{ "features: {a2a: {missing: m, words: --x}}\n",
		  "5:12 features: a feature is missing, or it has words and variables" },
		{ "features: {a2a: {env: {A: b}}}\n",
		  "5:23 features: expected env: {NAME: value} and a reason" },
		{ "features: {a2a: {env: {RANK: b}, reason: r}}\n",
		  "5:24 features: RANK is set by the launcher" },
		{ "features: {a2a: {word: --x}}\n",
		  "5:18 unknown key 'word' [did you mean 'words'?]" },
		{ "rules: {id: x}\n", "5:8 rules: expected a list" },
		{ "rules: [{id: x, because: b, instead: i}]\n",
		  "5:9 rules: a rule needs when, and refuse or need" },
		{ "rules: [{id: x, because: b, instead: i, when: {a.b: 1}, need: {steps: 1}}]\n",
		  "5:48 rules: 'a.b' is no value of a recipe" },
		{ "rules: [{id: x, instead: i, when: {steps: 1}, need: {args.y: 1}}]\n",
		  "5:9 missing key 'because'" },
		{ "renamed: [a]\n", "5:10 renamed: expected a mapping" },
		{ "keys_complete: maybe\n", "5:16 keys_complete: expected true or false" },
		{ "flags: {steps unless x: --a}\n",
		  "5:9 flags: expected 'PATH unless features.NAME if KEY=VALUE'" },
		{ "flags: {steps if x: --a}\n",
		  "5:9 flags: expected 'PATH unless features.NAME if KEY=VALUE'" },
		{ "flags: {steps if x>1: --a}\n",
		  "1:1 'steps if x>1': `if` looks at an experiment, and this engine has none" },
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("engine: 1\nkind: x\nsource: s\nargv: [a]\n%s", bad[i].lines);
		_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_parse(text, strlen(text), &e, &errors), -22);
		_cleanup_(mo_freep) char *said = errors_text(&errors);

		if (strncmp(said, bad[i].expected, strlen(bad[i].expected)) != 0)
			fail_msg("%s\nexpected: %s\n     got: %s", bad[i].lines, bad[i].expected,
				 said);
		mo_desc_done(&engine_desc, &e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table),
					    cmocka_unit_test(test_every_rule),
					    cmocka_unit_test(test_every_owned),
					    cmocka_unit_test(test_owned_for_prepare),
					    cmocka_unit_test(test_entries),
					    cmocka_unit_test(test_stops),
					    cmocka_unit_test(test_precisions),
					    cmocka_unit_test(test_saves),
					    cmocka_unit_test(test_changed),
					    cmocka_unit_test(test_unknown_flags),
					    cmocka_unit_test(test_one_cause_one_error),
					    cmocka_unit_test(test_words_of_a_shell),
					    cmocka_unit_test(test_auto),
					    cmocka_unit_test(test_unchecked),
					    cmocka_unit_test(test_bad_sections) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
