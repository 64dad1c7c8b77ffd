/* Where an engine saves that makes the directory of names of its experiment: the variables that
 * make it checkpoint.dir, and what is said where they cannot. */
#include <string.h>

#include "lib/model/launch.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/experiment_values.h"
#include "tests/unit/recipe/read.h"
#include "lib/recipe/env_layers.h"

#define HEAD \
	"recipe: 1\nname: t\nengine: {kind: primus-megatron, entry: e.yaml, workdir: /w%s}\n" \
	"cluster: {gpus: 1}\nsteps: 9\nparallelism: {tp: 1, pp: 1, vpp: 1, ep: 1, etp: 1, cp: " \
	"1}\n%s"

static struct parsed recipe(const char *engine, const char *more)
{
	_cleanup_(mo_freep) char *text = mo_printf(HEAD, engine, more);

	return parse(text, NULL);
}

/* The values of the four names, "|" between them; "-" = not set. */
static char *variables(const struct parsed *p)
{
	static const char *const names[] = { "PRIMUS_WORKSPACE", "PRIMUS_TEAM", "PRIMUS_USER",
					     "PRIMUS_EXP_NAME" };
	struct env_item *items = NULL;
	size_t n = 0;
	struct mo_buf b = { 0 };

	env_layers(&p->recipe, &p->engine, &items, &n);
	for (size_t k = 0; k < ELEMENTSOF(names); k++) {
		const char *value = "-";

		for (size_t i = 0; i < n; i++)
			if (mo_streq(items[i].name, names[k]))
				value = items[i].value;
		mo_buf_printf(&b, "%s%s", k ? "|" : "", value);
	}
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
	return mo_buf_take(&b);
}

static void test_variables(void **state)
{
	static const struct {
		const char *dir, *real, *variables;
	} cases[] = {
		{ "/ckpt/x/run", "/ckpt/x/run/checkpoints", "/|/ckpt|/ckpt/x|/ckpt/x/run" },
		{ "/ckpt/x/run/checkpoints", "/ckpt/x/run/checkpoints",
		  "/|/ckpt|/ckpt/x|/ckpt/x/run" },
		{ "/ckpt//x/./run/checkpoints/", "/ckpt/x/run/checkpoints",
		  "/|/ckpt|/ckpt/x|/ckpt/x/run" },
		{ "/ckpt/mycheckpoints", "/ckpt/mycheckpoints/checkpoints",
		  "/|/|/ckpt|/ckpt/mycheckpoints" },
		{ "/checkpoints", "/checkpoints", "/|/|/|/" },
		{ "/ckpt/{user}/007", "/ckpt/{user}/007/checkpoints",
		  "/|/ckpt|/ckpt/{user}|/ckpt/{user}/007" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_freep) char *more =
			mo_printf("checkpoint: {dir: '%s'}\n", cases[i].dir);
		_cleanup_(parsed_done) struct parsed p = recipe("", more);

		must(&p);
		_cleanup_(mo_freep) char *set = variables(&p);
		_cleanup_(mo_freep) char *argv = argv_of(&p);
		_cleanup_(mo_freep) char *save =
			mo_printf("--save %s --disable_last_saving false --no_save_optim false "
				  "--no_save_rng false",
				  cases[i].real);

		assert_string_equal(p.recipe.checkpoint.dir, cases[i].real);
		assert_true(p.recipe.checkpoint.added == !strstr(cases[i].dir, "/checkpoints"));
		assert_string_equal(set, cases[i].variables);
		assert_non_null(strstr(argv, save));
	}
}

static size_t says(const struct parsed *p, const char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_warnings; i++)
		n += strstr(p->warnings[i], text) != NULL;
	return n;
}

/* Without checkpoint.dir no two jobs write to one directory, and it is said. Engines without such
 * names are left alone. */
static void test_without(void **state)
{
	_cleanup_(parsed_done) struct parsed p = recipe("", "");
	_cleanup_(parsed_done) struct parsed plain =
		parse("recipe: 1\nname: t\nengine: {kind: megatron-lm, workdir: /w}\n"
		      "cluster: {gpus: 1}\nsteps: 9\ncheckpoint: {dir: /ckpt/x//}\n",
		      NULL);

	must(&p);
	must(&plain);
	_cleanup_(mo_freep) char *set = variables(&p);
	_cleanup_(mo_freep) char *argv = argv_of(&p);

	assert_string_equal(set, "-|-|j-{job}|t-j-{job}");
	assert_null(strstr(argv, "last_saving"));
	assert_int_equal(says(&p, "not given: nothing is resumed, and a restart begins at 0"), 1);
	assert_int_equal(says(&p, "t-j-ID, of this job alone"), 1);
	assert_int_equal(says(&plain, "not given"), 0);
	assert_string_equal(plain.recipe.checkpoint.dir, "/ckpt/x//");
}

static void test_refused(void **state)
{
	_cleanup_(parsed_done) struct parsed p =
		recipe("", "checkpoint: {dir: /ckpt/x}\nenv: {PRIMUS_EXP_NAME: mine}\n");
	_cleanup_(parsed_done) struct parsed other =
		recipe("", "checkpoint: {dir: /ckpt/x}\nenv: {PRIMUS_TEAM: mine}\n");
	_cleanup_(parsed_done) struct parsed none = recipe("", "env: {PRIMUS_EXP_NAME: mine}\n");
	_cleanup_(mo_freep) char *errors = errors_text(&p.errors);

	assert_non_null(strstr(errors,
			       "8:24 env.PRIMUS_EXP_NAME: it decides where the engine saves, which "
			       "is checkpoint.dir /ckpt/x/checkpoints: leave it out"));
	must(&other);
	must(&none);
}

static char *resume_words(const struct parsed *p)
{
	char **words = NULL;
	size_t n = 0;

	engine_resume_argv(&p->engine, &p->recipe, 8, &words, &n);
	return joined(words, n);
}

/* A resume takes optimizer and iteration with it, whatever the experiment says; a word that is let
 * pass stands, and is warned of. */
static void test_resume(void **state)
{
	_cleanup_(parsed_done) struct parsed p =
		recipe(", args: {disable_last_saving: false}", "checkpoint: {dir: /ckpt/x}\n");
	_cleanup_(parsed_done) struct parsed own =
		recipe(", args_unchecked: [finetune, disable_last_saving], args: {finetune: true, "
		       "disable_last_saving: true}",
		       "checkpoint: {dir: /ckpt/x}\n");
	_cleanup_(parsed_done) struct parsed bad =
		recipe(", args: {disable_last_saving: true}", "checkpoint: {dir: /ckpt/x}\n");

	must(&p);
	must(&own);
	_cleanup_(mo_freep) char *words = resume_words(&p);
	_cleanup_(mo_freep) char *own_words = resume_words(&own);
	_cleanup_(mo_freep) char *errors = errors_text(&bad.errors);

	assert_non_null(strstr(words, "--load /ckpt/x/checkpoints --ckpt_step 8"));
	assert_non_null(strstr(words, "--finetune false --no_load_optim None --no_load_rng None"));
	assert_null(strstr(own_words, "finetune"));
	assert_non_null(
		strstr(own_words, "--exit_on_missing_checkpoint true --no_load_optim None"));
	assert_int_equal(own.n_warnings, 2);
	assert_non_null(
		strstr(own.warnings[0], "finetune true stands, as engine.args_unchecked says"));
	assert_non_null(strstr(own.warnings[1], "disable_last_saving true stands"));
	assert_non_null(
		strstr(errors, "disable_last_saving is moectl's: the last state would be lost"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_variables),
					    cmocka_unit_test(test_without),
					    cmocka_unit_test(test_refused),
					    cmocka_unit_test(test_resume) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
