/* torchtitan's keys have changed their names from version to version: which file is taken, and
 * that it says nothing that its version refuses. tests/fixtures/engines/torchtitan/VERSION.keys
 * hold the fields of each version, read from its dataclasses. */
#include "tests/unit/recipe/read.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/engine_load.h"
#include "lib/recipe/experiment_document.h"

#define KEYS MO_SOURCE_DIR "/tests/fixtures/engines/torchtitan/%s.keys"

static char *fields_of(const char *version)
{
	_cleanup_(mo_freep) char *path = mo_printf(KEYS, version);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	return mo_buf_take(&text);
}

/* The type of the field; NULL: the version has none of that name. Caller frees. */
static char *type_of(const char *fields, const char *key, size_t n)
{
	for (const char *s = fields; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
		if (!strncmp(s, key, n) && s[n] == ' ')
			return mo_strndup(s + n + 1, strcspn(s + n + 1, "\n"));
	return NULL;
}

/* --a.no_b is the field a.b of a truth value; such a one takes no word behind it, every other one
 * needs it. */
static void check_flag(const char *what, const char *fields, const char *word, size_t n, bool bare,
		       bool tyro)
{
	const char *key = word + 2;
	size_t len = n - 2;
	_cleanup_(mo_freep) char *type = type_of(fields, key, len);
	const char *no = strstr(word, ".no_");

	if (!type && no && no < word + n) {
		_cleanup_(mo_freep) char *plain = mo_printf("%.*s.%.*s", (int)(no - key), key,
							    (int)(key + len - no - 4), no + 4);

		type = type_of(fields, plain, strlen(plain));
		if (type && !mo_streq(type, "bool"))
			fail_msg("%s: %.*s: %s is no truth value", what, (int)n, word, plain);
	}
	if (!type)
		fail_msg("%s: %.*s is no field", what, (int)n, word);
	if (tyro && mo_streq(type, "bool") != bare)
		fail_msg("%s: %.*s: a %s %s", what, (int)n, word, type,
			 bare ? "without a value" : "with one");
}

/* Each word of the text that is one of torchtitan's flags. follows: the recipe's value comes behind
 * the last one. */
static int check_words(const char *what, const char *fields, const char *text, bool follows,
		       bool tyro)
{
	int seen = 0;

	for (const char *s = text; s && *s;) {
		size_t n = strcspn(s, " ");
		const char *next = s[n] ? s + n + 1 : NULL;
		bool bare = next ? *next == '-' && next[1] == '-' : !follows;

		if (!strncmp(s, "--", 2) && memchr(s, '.', n) &&
		    strncmp(s, "--primus_turbo.", 15) != 0) {
			check_flag(what, fields, s, n, bare, tyro);
			seen++;
		}
		s = next;
	}
	return seen;
}

static int check_list(const char *what, const char *fields, char **words, size_t n, bool tyro)
{
	int seen = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *pair =
			i + 1 < n ? mo_printf("%s %s", words[i], words[i + 1])
				  : mo_strdup(words[i]);
		size_t first = strcspn(pair, " ");

		if (strncmp(words[i], "--", 2) != 0)
			continue;
		/* what stands behind is tried in its own turn */
		if (i + 1 < n && !strncmp(words[i + 1], "--", 2))
			pair[first] = '\0';
		seen += check_words(what, fields, pair, false, tyro);
	}
	return seen;
}

/* The keys that rows of config.values look at: words before =, !, >, | and brackets. */
static int check_values(const char *what, const char *fields, const struct engine *e)
{
	int seen = 0;

	for (size_t i = 0; i < e->n_experiment_values; i++)
		for (const char *s = e->experiment_values[i].value; *s;) {
			size_t n = strcspn(s, " |()=!>,");
			_cleanup_(mo_freep) char *type = type_of(fields, s, n);

			if (memchr(s, '.', n) && !type)
				fail_msg("%s: %s: %.*s is no field", what,
					 e->experiment_values[i].key, (int)n, s);
			seen += memchr(s, '.', n) != NULL;
			s += n;
			if (*s == '=' || *s == '>') /* its value */
				s += strcspn(s, " |)");
			s += strspn(s, " |()!,");
		}
	for (size_t i = 0; i < e->n_experiment_plan_keys; i++) {
		const char *key = e->experiment_plan_keys[i];
		_cleanup_(mo_freep) char *type = type_of(fields, key, strlen(key));

		if (!type)
			fail_msg("%s: plan_keys: %s is no field", what, key);
	}
	return seen;
}

static void test_words_of_each_version(void **state)
{
	static const struct {
		const char *kind, *version;
		bool features, tyro;
	} rows[] = {
		{ "torchtitan-0.1", "v0.1.0", true, true },
		/* without its keys of DeepEP and of the overlap */
		{ "torchtitan", "v0.2.0", false, true },
		{ "torchtitan", "v0.2.1", true, true },
		{ "torchtitan", "v0.2.2", true, true },
		{ "primus-torchtitan", "v0.2.2", true, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *fields = fields_of(rows[i].version);
		_cleanup_(mo_freep) char *what =
			mo_printf("%s of %s", rows[i].kind, rows[i].version);
		struct engine e;
		int seen = 0;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_load(rows[i].kind, &e, NULL), 0);
		seen += check_list(what, fields, e.argv, e.n_argv, rows[i].tyro);
		seen += check_list(what, fields, e.resume, e.n_resume, rows[i].tyro);
		for (size_t k = 0; k < e.n_flags; k++) {
			const char *value = e.flags[k].value;
			bool feature = mo_starts_with(e.flags[k].key, "features.");
			bool follows =
				!feature && !strpbrk(e.flags[k].key, "=>~") && !strchr(value, '{');

			if (!mo_streq(e.flags[k].key, "engine.entry") &&
			    (!feature || rows[i].features))
				seen += check_words(what, fields, value, follows, rows[i].tyro);
		}
		assert_true(check_values(what, fields, &e) > 20);
		assert_true(seen > 25);
		mo_desc_done(&engine_desc, &e);
	}
}

/* The list by which engine.args and TOMLs are judged is that version's. */
static void test_lists_are_whole(void **state)
{
	static const char *const rows[][2] = { { "torchtitan", "v0.2.2" },
					       { "torchtitan-0.1", "v0.1.0" } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *fields = fields_of(rows[i][1]);
		struct engine e;
		size_t lines = 0;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_load(rows[i][0], &e, NULL), 0);
		for (const char *s = fields; *s; s++)
			lines += *s == '\n';
		/* the first line says what they are */
		assert_int_equal(e.checks->n_keys, lines - 1);
		for (size_t k = 0; k < e.checks->n_keys; k++) {
			_cleanup_(mo_freep) char *type =
				type_of(fields, e.checks->keys[k], strlen(e.checks->keys[k]));

			if (!type)
				fail_msg("%s: keys: %s", rows[i][0], e.checks->keys[k]);
		}
		mo_desc_done(&engine_desc, &e);
	}
}

/* The row of `types` that has the field; NULL: none. */
static const char *listed_type(const struct engine *e, const char *field, size_t n)
{
	for (size_t i = 0; i < e->checks->n_types; i++)
		for (const char *s = e->checks->types[i].value; *s;
		     s += s[strcspn(s, " ")] ? strcspn(s, " ") + 1 : strcspn(s, " "))
			if (strcspn(s, " ") == n && !strncmp(s, field, n))
				return e->checks->types[i].key;
	return NULL;
}

/* Of each field that is a number or a truth value the type is listed; a list of words is one of
 * texts. */
static void test_types_are_whole(void **state)
{
	static const char *const rows[][2] = { { "torchtitan", "v0.2.2" },
					       { "torchtitan-0.1", "v0.1.0" } };
	static const char *const types[] = { "bool", "int", "float" };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *fields = fields_of(rows[i][1]);
		struct engine e;
		int words = 0;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_load(rows[i][0], &e, NULL), 0);
		for (const char *s = strchr(fields, '\n') + 1; *s; s = strchr(s, '\n') + 1) {
			size_t n = strcspn(s, " ");
			_cleanup_(mo_freep) char *type = type_of(fields, s, n);
			const char *listed = listed_type(&e, s, n);
			bool plain = mo_enum_parse(types, ELEMENTSOF(types), type) >= 0;

			words += listed && !plain;
			if (plain ? !mo_streq(listed, type) : listed && !mo_streq(type, "text"))
				fail_msg("%s: %.*s: %s, and %s here", rows[i][0], (int)n, s, type,
					 listed ? listed : "nothing");
		}
		assert_true(words > 8);
		mo_desc_done(&engine_desc, &e);
	}
}

/* Primus' torchtitan is v0.2.2: none of its fields is reported as unknown in an experiment or in
 * engine.args. */
static void test_list_of_primus(void **state)
{
	_cleanup_(mo_freep) char *fields = fields_of("v0.2.2");
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	assert_int_equal(engine_load("primus-torchtitan", &e, NULL), 0);
	for (const char *s = strchr(fields, '\n') + 1; *s; s = strchr(s, '\n') + 1) {
		_cleanup_(mo_freep) char *field = mo_strndup(s, strcspn(s, " "));

		if (mo_enum_parse((const char *const *)e.checks->keys, e.checks->n_keys, field) < 0)
			fail_msg("keys: %s is missing", field);
	}
	mo_desc_done(&engine_desc, &e);
}

/* Words that only one version has say which it is; without any it is the newest release. */
static void test_chosen_by_words(void **state)
{
	static const struct {
		const char *engine, *has, *has_not;
	} rows[] = {
		{ "torchtitan", "--training.local_batch_size 2 ", "num_tokens" },
		{ "torchtitan, args: {job.config_file: x.toml}", "--training.seq_len 128 ",
		  "max_context" },
		{ "torchtitan, args: [--job.config_file=x.toml, config, module]",
		  "--training.seq_len 128 ", "max_context" },
		{ "torchtitan, args: {module: llama3, config: a}",
		  "--training.max_context_length 128 ", "local_batch" },
		{ "torchtitan, args: [--module, llama3]",
		  "--training.num_tokens_per_microbatch_per_dp_rank 256 ", "seq_len" },
		{ "torchtitan, args: ['--config=a']", "--training.max_context_length 128 ",
		  "seq_len" },
		{ "torchtitan-0.1, args: {job.config_file: x.toml}",
		  "--checkpoint.enable_checkpoint ", "--checkpoint.enable " },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text =
			mo_printf("recipe: 1\nname: t\nengine: {kind: %s}\ncluster: {gpus: "
				  "8}\nparallelism: {tp: 1, pp: 1, sharding: zero3}\n"
				  "batch: {seq: 128, micro: 2, global: 16}\ncheckpoint: {dir: "
				  "/c}\nsteps: 3\n",
				  rows[i].engine);
		_cleanup_(parsed_done) struct parsed p = parse(text, NULL);

		must(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);

		if (!strstr(argv, rows[i].has) || strstr(argv, rows[i].has_not))
			fail_msg("%s: %s", rows[i].engine, argv);
		/* the job is of the kind that its recipe names */
		assert_string_equal(p.engine.kind, p.recipe.engine.kind);
	}
}

static bool is_file(void *arg, const char *file)
{
	return mo_streq(arg, file);
}

static void test_chosen_by_tree(void **state)
{
	static const struct {
		const char *file, *kind;
	} rows[] = {
		{ "torchtitan/config_manager.py", "torchtitan-0.1" },
		{ "torchtitan/config/job_config.py", NULL },
		{ "torchtitan/config/configurable.py", "torchtitan-dev" },
		{ "module", NULL },
	};
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	assert_int_equal(engine_load("torchtitan", &e, NULL), 0);
	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		const char *kind = engine_version_of_tree(&e, is_file, (void *)rows[i].file);

		if (!mo_streq(kind, rows[i].kind) && (kind || rows[i].kind))
			fail_msg("%s: %s", rows[i].file, kind ? kind : "this one");
	}
	mo_desc_done(&engine_desc, &e);
}

static struct config_value *toml_of(const char *short_toml)
{
	static const char *const names[][2] = {
		{ "l", "training.local_batch_size" },
		{ "g", "training.global_batch_size" },
		{ "p", "parallelism.pipeline_parallel_degree" },
		{ "m", "parallelism.pipeline_parallel_microbatch_size" },
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t line = 1;

	for (const char *s = short_toml; *s; s += strcspn(s, "\n") + (s[strcspn(s, "\n")] == '\n'))
		for (size_t i = 0; i < ELEMENTSOF(names); i++)
			if (*s == *names[i][0])
				mo_buf_printf(&b, "%s%.*s\n", names[i][1],
					      (int)strcspn(s + 1, "\n"), s + 1);
	return config_toml(b.data ? b.data : "", b.len, (struct config_place){ 0, 1, -1 }, &line,
			   NULL);
}

/* What the document for 8 GPUs says of the path; lives until the next call. */
static const char *said(const struct engine *e, const char *toml, const char *path)
{
	static char text[32];
	struct experiment x = { .merged = toml_of(toml) };
	struct recipe r;

	mo_desc_init(&recipe_desc, &r);
	r.gpus = 8;
	mo_strs_add(&r.left, &r.n_left, path);
	mo_strs_add(&r.left, &r.n_left, "parallelism.tp");
	mo_strs_add(&r.left, &r.n_left, "parallelism.pp");
	mo_strs_add(&r.left, &r.n_left, "parallelism.cp");
	assert_non_null(x.merged);
	_cleanup_(mo_freep) char *document = experiment_document(e, &r, &x);
	_cleanup_(mo_freep) char *key = mo_printf("\"%s\":", path);
	const char *at = strstr(document, key);

	assert_non_null(at);
	at += strlen(key);
	snprintf(text, sizeof(text), "%.*s", (int)strcspn(at, ",}"), at);
	mo_desc_done(&recipe_desc, &r);
	config_value_free(x.merged);
	return text;
}

/* A pipeline cuts local_batch_size into micro-batches of its own size, and a step is what all ranks
 * take at once unless it says more. */
static void test_batch_of_a_pipeline(void **state)
{
	static const struct {
		const char *kind, *toml, *micro, *global;
	} rows[] = {
		{ "torchtitan", "", "8", "64" },
		{ "torchtitan", "l = 4", "4", "32" },
		{ "torchtitan", "l = 4\np = 1", "4", "32" },
		{ "torchtitan", "l = 4\np = 2", "1", "16" },
		{ "torchtitan", "l = 4\np = 2\nm = 2", "2", "16" },
		{ "torchtitan", "l = 4\np = 2\nm = 2\ng = 64", "2", "64" },
		{ "torchtitan", "l = 4\ng = -1", "4", "32" },
		{ "torchtitan-0.1", "l = 4\np = 2", "1", "16" },
		{ "primus-torchtitan", "l = 4\np = 2\nm = 2", "2", "16" },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct engine e;

		mo_desc_init(&engine_desc, &e);
		assert_int_equal(engine_load(rows[i].kind, &e, NULL), 0);
		if (!mo_streq(said(&e, rows[i].toml, "batch.micro"), rows[i].micro) ||
		    !mo_streq(said(&e, rows[i].toml, "batch.global"), rows[i].global))
			fail_msg("row %zu: %s, %s", i, said(&e, rows[i].toml, "batch.micro"),
				 said(&e, rows[i].toml, "batch.global"));
		mo_desc_done(&engine_desc, &e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_of_each_version),
		cmocka_unit_test(test_lists_are_whole),
		cmocka_unit_test(test_types_are_whole),
		cmocka_unit_test(test_list_of_primus),
		cmocka_unit_test(test_chosen_by_words),
		cmocka_unit_test(test_chosen_by_tree),
		cmocka_unit_test(test_batch_of_a_pipeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
