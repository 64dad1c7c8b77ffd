/* What an engine's own keys take: words that its parser refuses, values of its files that it may
 * end by, and keys of files that its version has not. Held against torchtitan's own parser (tyro
 * 1.0.15) of v0.2.2: it refuses the words that are errors here, and takes a TOML's values as they
 * stand; of a TOML it refuses the keys that it does not know. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/recipe/config_toml.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/experiment_document.h"

#define RECIPE \
	"recipe: 1\nname: t\nengine: {kind: %s, args: {%s}}\ncluster: {gpus: 8}\nbatch: {seq: " \
	"128, micro: 2, global: 16}\n" \
	"parallelism: {tp: 1, pp: %s, sharding: zero3}\nsteps: 9\n"

/* The recipe with what its TOML says; NULL: nobody read one. */
static struct parsed judged_text(const char *text, const char *pp, const char *toml)
{
	struct experiment x = { 0 };
	int64_t line = 1;

	if (!toml)
		return parse(text, NULL);
	_cleanup_(parsed_done) struct parsed alone = parse(text, NULL);

	must(&alone);
	mo_strs_add(&x.files, &x.n_files, "x.toml");
	x.merged = config_toml(toml, strlen(toml), (struct config_place){ 0, 1, -1 }, &line, NULL);
	assert_non_null(x.merged);
	_cleanup_(mo_freep) char *word =
		mo_printf("parallelism.pipeline_parallel_degree = %s\n", pp);

	config_merge(x.merged, config_toml(word, strlen(word), (struct config_place){ -1, 0, 0 },
					   &line, NULL));
	_cleanup_(mo_freep) char *document = experiment_document(&alone.engine, &alone.recipe, &x);
	_cleanup_(mo_freep) char *set = mo_printf("experiment=%s", document);

	experiment_done(&x);
	return parse(text, set);
}

static struct parsed judged(const char *kind, const char *args, const char *pp, const char *toml)
{
	_cleanup_(mo_freep) char *text = mo_printf(RECIPE, kind, args, pp);

	return judged_text(text, pp, toml);
}

/* Errors and warnings, a line each. */
static char *said(const struct parsed *p)
{
	_cleanup_(mo_freep) char *errors = errors_text(&p->errors);
	struct mo_buf b = { 0 };

	mo_buf_str(&b, errors ? errors : "");
	for (size_t i = 0; i < p->n_warnings; i++)
		mo_buf_printf(&b, "%s\n", p->warnings[i]);
	return b.data ? mo_buf_take(&b) : mo_strdup("");
}

#define TITAN "torchtitan v0.2.2 (2026-02-20)"
#define REFUSES "torchtitan v0.2.2 (2026-02-20) has no such key, and refuses the file"

static void test_words(void **state)
{
	static const struct {
		const char *args, *wrong; /* NULL: nothing is wrong with it */
	} rows[] = {
		{ "activation_checkpoint.mode: ful",
		  "mode ful: " TITAN
		  " takes selective, full, memory_budget or none here [did you mean 'full'?" },
		{ "activation_checkpoint.mode: memory_budget", NULL },
		{ "training.gc_freq: 1e2",
		  "training.gc_freq 1e2: " TITAN " takes a whole number here" },
		{ "training.gc_freq: 1_00", NULL },
		{ "training.gc_freq: '100_'", "takes a whole number here" },
		{ "training.gc_freq: -1", NULL },
		{ "training.gc-freq: abc", "takes a whole number here" },
		{ "optimizer.lr: abc", "optimizer.lr abc: " TITAN " takes a number here" },
		{ "optimizer.lr: 1e-4", NULL },
		{ "optimizer.lr: 1_0.5e-4", NULL },
		{ "optimizer.lr: -inf", NULL },
		{ "compile.enable: yes",
		  "compile.enable yes: " TITAN
		  " takes true or false here, in lower case, without quotes" },
		{ "compile.enable: 'true'",
		  "takes true or false here, in lower case, without quotes" },
		{ "compile.enable: true", NULL },
		{ "compile.enable: false", NULL },
		{ "debug.seed: None", NULL },
		{ "quantize.linear.float8.recipe_name: rowise",
		  "takes tensorwise, rowwise or rowwise_with_gw_hp here [did you mean 'rowwise'?" },
		{ "job.custom_config_module: mine, training.gc_freq: abc", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *args =
			mo_printf("job.config_file: x.toml, %s", rows[i].args);
		_cleanup_(parsed_done) struct parsed p = judged("torchtitan", args, "1", NULL);
		_cleanup_(mo_freep) char *text = errors_text(&p.errors);

		if (rows[i].wrong ? p.errors.n != 1 || !strstr(text, rows[i].wrong) : p.errors.n)
			fail_msg("%s: %s", rows[i].args, text);
	}
	_cleanup_(parsed_done) struct parsed p =
		judged("torchtitan, args_unchecked: [training.gc_freq]", "training.gc_freq: abc",
		       "1", NULL);

	must(&p);
}

static void test_values_of_files(void **state)
{
	static const struct {
		const char *toml, *pp, *reported; /* reported: "": nothing */
	} rows[] = {
		{ "[activation_checkpoint]\nmode = 'ful'", "1",
		  "x.toml:2: activation_checkpoint.mode: \"ful\": " TITAN
		  " takes selective, full, memory_budget or none here, and may end by anything "
		  "else; did you mean 'full'?\n" },
		{ "[training]\ngc_freq = 'abc'", "1",
		  "x.toml:2: training.gc_freq: \"abc\": " TITAN
		  " takes a whole number here, and may end by anything else\n" },
		{ "[training]\ngc_freq = 10", "1", "" },
		{ "[training]\nmax_norm = 1", "1", "" },
		{ "[optimizer]\nlr = '1e-4'", "1",
		  "x.toml:2: optimizer.lr: \"1e-4\": " TITAN
		  " takes a number here, and may end by anything else\n" },
		{ "[compile]\nenable = 'yes'", "1",
		  "x.toml:2: compile.enable: \"yes\": " TITAN
		  " takes true or false here, and may end by anything else\n" },
		{ "[model]\nname = 'llama3'\nflavor = '8b'", "1",
		  "x.toml:3: model.flavor: '8b' is none of those of " TITAN
		  ": did you mean '8B'?\n" },
		{ "[model]\nname = 'lama3'\nflavor = '8B'", "1",
		  "x.toml:2: model.name: 'lama3' is none of those of " TITAN
		  ": did you mean 'llama3'?\n" },
		{ "[model]\nname = 'mine'\nflavor = 'x'\n[experimental]\ncustom_import = 'm'", "1",
		  "" },
		{ "[model]\nconverters = ['quantize.linear.float8', 'quantise.linear.mx']", "1",
		  "x.toml:2: model.converters: 'quantise.linear.mx' is none of those of " TITAN
		  ": did you mean 'quantize.linear.mx'?\n" },
		{ "[job]\ncustom_config_module = 'mine'\n[training]\ngc_freq = 'abc'\nnew = 1", "1",
		  "" },
		{ "[parallelism]\npipeline_parallel_schedule = '1f1b'\npipeline_parallel_degree = "
		  "2",
		  "2", "" },
		{ "[parallelism]\npipeline_parallel_schedule = '2F2B'", "1", "" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(parsed_done) struct parsed p =
			judged("torchtitan", "job.config_file: x.toml", rows[i].pp, rows[i].toml);
		_cleanup_(mo_freep) char *text = said(&p);
		char *reported = strstr(text, "x.toml:");

		must(&p);
		if (strcmp(reported ? reported : "", rows[i].reported) != 0)
			fail_msg("%s: %s", rows[i].toml, text);
	}
}

static void test_keys_of_files(void **state)
{
	static const struct {
		const char *kind, *toml, *error, *warning; /* NULL: none */
	} rows[] = {
		{ "torchtitan",
		  "[training]\nsteps = 9\ncompile = true\nbatch_size = "
		  "2\n[checkpoint]\nenable_checkpoint = false",
		  "x.toml:3: training.compile: " TITAN
		  " has no such key, nor 2 more of the file's, and refuses the file: use "
		  "engine.kind: torchtitan-0.1, or the keys of "
		  "this version: checkpoint.enable_checkpoint: use checkpoint.dir; "
		  "training.batch_size: use training.local_batch_size, or batch.micro; "
		  "training.compile: use compile.enable "
		  "[engine.args_unchecked: [KEY] lets it pass]",
		  NULL },
		{ "torchtitan", "[job]\nuse_for_integration_test = true",
		  "x.toml:2: job.use_for_integration_test: " REFUSES
		  ": use engine.kind: torchtitan-0.1",
		  NULL },
		{ "torchtitan-0.1", "[compile]\nenable = true",
		  "x.toml:2: compile.enable: torchtitan v0.1.0 (2025-06-17) has no such key, and "
		  "refuses the file: use engine.kind: torchtitan, or the keys of this version: "
		  "compile.enable: use training.compile",
		  NULL },
		{ "torchtitan", "[training]\nbatch_size = 2",
		  "x.toml:2: training.batch_size: " REFUSES
		  ": use training.local_batch_size, or batch.micro [engine.args_unchecked: [KEY]",
		  NULL },
		{ "torchtitan", "[training]\nseqlen = 2",
		  "x.toml:2: training.seqlen: " REFUSES
		  " [did you mean 'training.seq_len'? engine.args_unchecked: [KEY] lets it pass]",
		  NULL },
		{ "torchtitan", "[mine]\nkey = 2", NULL,
		  "x.toml:2: mine.key: " TITAN
		  " has no such key: only a tree that has it does not refuse the file" },
		/* v0.2.0 has it, and so has 0.1 */
		{ "torchtitan", "[training]\nseed = 2", NULL,
		  "x.toml:2: training.seed: " TITAN " has no such key: only a tree" },
		{ "torchtitan, args_unchecked: [training.seqlen]", "[training]\nseqlen = 2", NULL,
		  NULL },
		/* a key that is let pass speaks for no other kind */
		{ "torchtitan, args_unchecked: [training.compile]",
		  "[training]\ncompile = true\nmy_own = 3", NULL,
		  "x.toml:3: training.my_own: " TITAN " has no such key: only a tree that has it" },
		{ "torchtitan, args_unchecked: [training.my_own]",
		  "[training]\ncompile = true\nmy_own = 3",
		  "x.toml:2: training.compile: " REFUSES ": use engine.kind: torchtitan-0.1",
		  NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(parsed_done) struct parsed p =
			judged(rows[i].kind, "job.config_file: x.toml", "1", rows[i].toml);
		_cleanup_(mo_freep) char *text = said(&p);

		if (p.errors.n != (rows[i].error != NULL) ||
		    (rows[i].error && !strstr(text, rows[i].error)) ||
		    (rows[i].warning ? !strstr(text, rows[i].warning)
				     : !rows[i].error && strstr(text, "x.toml")))
			fail_msg("%s: %s", rows[i].toml, text);
	}
}

/* A word for which the recipe has no value has one error, which is not of its type. */
static void test_unfilled(void **state)
{
	static const char text[] =
		"recipe: 1\nname: t\nengine: {kind: torchtitan, args: {job.config_file: x.toml, "
		"training.gc_freq: '{checkpoint.every}', optimizer.lr: ''}}\ncluster: {gpus: 8}\n"
		"batch: {seq: 128, micro: 2, global: 16}\n"
		"parallelism: {tp: 1, pp: 1, sharding: zero3}\nsteps: 9\n";
	_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
	_cleanup_(mo_freep) char *reported = errors_text(&p.errors);

	if (p.errors.n != 2 || !strstr(reported, "'{checkpoint.every}' needs checkpoint.every") ||
	    !strstr(reported, "optimizer.lr : " TITAN " takes a number here"))
		fail_msg("%s", reported);
}

/* tyro's flags of a bool take no word. */
static void test_flags_of_a_list(void **state)
{
	static const struct {
		const char *kind, *words, *wrong; /* NULL: nothing is wrong with it */
	} rows[] = {
		{ "torchtitan", "--compile.enable, true",
		  "--compile.enable true: " TITAN
		  " takes no word here: --compile.enable, or --compile.no-enable [" },
		{ "torchtitan", "--compile.enable=false",
		  "takes no word here: --compile.enable, or --compile.no-enable [" },
		{ "torchtitan", "compile.enable=false",
		  "takes no word here: --compile.enable, or --compile.no-enable [" },
		{ "torchtitan-0.1", "--training.compile, true",
		  "takes no word here: --training.compile, or --training.no-compile [" },
		{ "torchtitan", "--compile.enable", NULL },
		{ "torchtitan", "--compile.no-enable", NULL },
		{ "torchtitan", "--training.gc_freq, abc", "takes a whole number here [" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s, args: "
				  "[--job.config_file=x.toml, %s]}\n"
				  "cluster: {gpus: 8}\nbatch: {seq: 128, micro: 2, global: 16}\n"
				  "parallelism: {tp: 1, pp: 1, sharding: zero3}\nsteps: 9\n",
				  rows[i].kind, rows[i].words);
		_cleanup_(parsed_done) struct parsed p = judged_text(text, "1", NULL);
		_cleanup_(mo_freep) char *reported = errors_text(&p.errors);

		if (rows[i].wrong ? p.errors.n != 1 || !strstr(reported, rows[i].wrong)
				  : p.errors.n)
			fail_msg("%s %s: %s", rows[i].kind, rows[i].words, reported);
	}
}

/* The other flag of a bool is none that nobody knows. */
static void test_flags_that_say_no(void **state)
{
	static const struct {
		const char *word;
		bool unknown;
	} rows[] = {
		{ "--compile.no-enable", false },  { "--compile.no_enable", false },
		{ "--training.no-gc_freq", true }, { "--compile.no-such", true },
		{ "--compile.now", true },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\n"
				  "engine: {kind: torchtitan, strict_args: true, args: "
				  "[--job.config_file=x.toml, %s]}\n"
				  "cluster: {gpus: 8}\nbatch: {seq: 128, micro: 2, global: 16}\n"
				  "parallelism: {tp: 1, pp: 1, sharding: zero3}\nsteps: 9\n",
				  rows[i].word);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);
		_cleanup_(mo_freep) char *reported = errors_text(&p.errors);

		if (p.errors.n != rows[i].unknown)
			fail_msg("%s: %s", rows[i].word, reported);
	}
}

/* torchtitan reads the module's name with dashes too (config/manager.py,
 * _maybe_add_custom_config). */
static void test_more_keys(void **state)
{
	static const struct {
		const char *kind, *word, *toml;
	} rows[] = {
		{ "torchtitan", "job.custom_config_module", "[training]\nseqlen = 2" },
		{ "torchtitan", "job.custom-config-module",
		  "[training]\nseqlen = 2\ncompile = true" },
		{ "torchtitan-0.1", "experimental.custom-args-module", "[training]\nseqlen = 2" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s, args: "
				  "[--job.config_file=x.toml, --%s, my.mod]}\n"
				  "cluster: {gpus: 8}\nbatch: {seq: 128, micro: 2, global: 16}\n"
				  "parallelism: {tp: 1, pp: 1, sharding: zero3}\nsteps: 9\n",
				  rows[i].kind, rows[i].word);
		_cleanup_(parsed_done) struct parsed p = judged_text(text, "1", rows[i].toml);
		_cleanup_(mo_freep) char *reported = said(&p);

		if (p.errors.n || strstr(reported, "x.toml:"))
			fail_msg("%s %s: %s", rows[i].kind, rows[i].word, reported);
	}
}

/* Without a file torchtitan trains its debug model. */
static void test_no_file(void **state)
{
	static const struct {
		const char *kind, *args, *toml;
		bool reported;
	} rows[] = {
		{ "torchtitan", "", "", true },
		{ "torchtitan-0.1", "", "", true },
		{ "torchtitan", "training.gc_freq: 5", "", true },
		{ "torchtitan", "job.config_file: x.toml", NULL, false },
		{ "torchtitan", "job.config_file: x.toml", "[model]\nname = 'llama3'", false },
		{ "torchtitan", "model.name: llama3, model.flavor: 8B", "", false },
		{ "torchtitan-dev", "module: llama3, config: llama3_8b", NULL, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(parsed_done) struct parsed p =
			judged(rows[i].kind, rows[i].args, "1", rows[i].toml);
		_cleanup_(mo_freep) char *text = said(&p);

		must(&p);
		if (!strstr(text, "without a TOML it trains its own defaults") == rows[i].reported)
			fail_msg("%s, %s: %s", rows[i].kind, rows[i].args, text);
	}
}

/* A TOML in a recipe's place is called one, and nothing of YAML is said. */
static void test_toml_as_recipe(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "# a\n[model]\nname = \"llama3\"\n",
		  "1:1 a TOML, which is a file of torchtitan and no recipe: moectl init FILE makes "
		  "a recipe of it\n" },
		{ "[model]\nname = \n", "not valid YAML" },
		{ "[a, b]", "a recipe is a mapping" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(parsed_done) struct parsed p = parse(rows[i].text, NULL);
		_cleanup_(mo_freep) char *text = errors_text(&p.errors);

		if (p.errors.n != 1 || !strstr(text, rows[i].error))
			fail_msg("%s: %s", rows[i].text, text);
	}
}

#define OTHER \
	"recipe: 1\nname: t\nengine: {kind: %s, workdir: /w, entry: %s, args: {%s}}\ncluster: " \
	"{gpus: 8}\n" \
	"parallelism: {tp: 1, pp: 1}\nbatch: {seq: 128, micro: 1, global: 8}\nmodel: " \
	"llama3-8b\nsteps: 9\n"

/* argparse refuses what is no number; Primus hands it on. */
static void test_numbers_of_megatron(void **state)
{
	static const struct {
		const char *kind, *args, *file, *error, *warning; /* NULL: none */
	} rows[] = {
		{ "megatron-lm", "weight-decay: abc", NULL,
		  "engine.args: weight-decay abc: Megatron-LM d98e8a6 (2026-08-22) takes a number "
		  "here",
		  NULL },
		{ "megatron-lm", "ddp-bucket-size: 1e6", NULL,
		  "ddp-bucket-size 1e6: Megatron-LM d98e8a6 (2026-08-22) takes a whole number here",
		  NULL },
		{ "megatron-lm", "weight-decay: 1e-1, ddp_bucket_size: 1000000", NULL, NULL, NULL },
		{ "primus-megatron", "", "weight_decay = 'abc'", NULL,
		  "x.toml:1: weight_decay: \"abc\": Primus fd1eeab (2026-08-22) takes a number "
		  "here, and may end by anything else" },
		/* what looks like a number is reported where the file is read */
		{ "primus-megatron", "",
		  "weight_decay = '1e-1'\nlr = 3\nmoe_layer_freq = '[0]*1+[1]*3'", NULL, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *recipe =
			mo_printf(OTHER, rows[i].kind, rows[i].file ? "e.yaml" : "pretrain_gpt.py",
				  rows[i].args);
		_cleanup_(parsed_done) struct parsed p = judged_text(recipe, "1", rows[i].file);
		_cleanup_(mo_freep) char *text = said(&p);

		if (p.errors.n != (rows[i].error != NULL) ||
		    (rows[i].error && !strstr(text, rows[i].error)) ||
		    !strstr(text, "may end by") != !rows[i].warning ||
		    (rows[i].warning && !strstr(text, rows[i].warning)))
			fail_msg("row %zu: %s", i, text);
	}
}

/* What torchtitan asserts before it trains: a step is a multiple of what all ranks take at once,
 * and a pipeline cuts that into whole micro-batches (train.py, pipeline_parallel.py). 8 GPUs, of
 * the recipe's pp. */
static void test_pass_batch(void **state)
{
	static const struct {
		const char *pp, *batch, *toml, *error; /* NULL: it runs */
	} rows[] = {
		{ "2", "seq: 128, global: 48", "",
		  "batch.global: 48 does not divide by training.local_batch_size 8 x dp 4" },
		{ "2", "seq: 128, global: 64", "", NULL },
		{ "2", "seq: 128", "[training]\nglobal_batch_size = 48",
		  "x.toml:2: training.global_batch_size: batch.global: 48 does not divide by "
		  "training.local_batch_size 8" },
		{ "2", "seq: 128, global: 48", "[training]\nlocal_batch_size = 6", NULL },
		{ "2", "seq: 128, global: 48",
		  "[training]\nlocal_batch_size = "
		  "6\n[parallelism]\npipeline_parallel_microbatch_size = 4",
		  "x.toml:4: parallelism.pipeline_parallel_microbatch_size: "
		  "training.local_batch_size: 6 does not divide by the micro-batch of the "
		  "pipeline, 4" },
		/* the recipe's micro-batch: what a rank takes is shown */
		{ "2", "seq: 128, micro: 4, global: 48", "[training]\nlocal_batch_size = 6", NULL },
		{ "2", "seq: 128, micro: 2, global: 48", "", NULL },
		{ "2", "seq: 128", "[training]\nlocal_batch_size = 6", NULL },
		{ "1", "seq: 128, global: 48", "[training]\nlocal_batch_size = 6", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *recipe =
			mo_printf("recipe: 1\nname: t\nengine: {kind: torchtitan, args: "
				  "{job.config_file: x.toml}}\n"
				  "cluster: {gpus: 8}\nparallelism: {pp: %s, tp: 1}\nbatch: "
				  "{%s}\nsteps: 9\n",
				  rows[i].pp, rows[i].batch);
		_cleanup_(mo_freep) char *toml =
			mo_printf("%s%s", rows[i].toml, *rows[i].toml ? "\n" : "");
		_cleanup_(parsed_done) struct parsed p = judged_text(recipe, rows[i].pp, toml);
		_cleanup_(mo_freep) char *text = errors_text(&p.errors);

		if (rows[i].error ? p.errors.n != 1 || !strstr(text, rows[i].error) : p.errors.n)
			fail_msg("row %zu: %s", i, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_values_of_files),
		cmocka_unit_test(test_keys_of_files),
		cmocka_unit_test(test_flags_of_a_list),
		cmocka_unit_test(test_unfilled),
		cmocka_unit_test(test_flags_that_say_no),
		cmocka_unit_test(test_more_keys),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_numbers_of_megatron),
		cmocka_unit_test(test_pass_batch),
		cmocka_unit_test(test_toml_as_recipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
