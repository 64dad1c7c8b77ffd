/* Every file that we ship is read by the code that will read it, and every key has its line in the
 * guide. */
#include "tests/unit/recipe/read.h"

#include <dirent.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/model_file.h"
#include "lib/recipe/engine_load.h"

/* Every file that we ship is read by the code that will read it. */
static void each(const char *dir, void (*fn)(const char *name))
{
	_cleanup_(mo_freep) char *path = mo_data_file(dir);
	DIR *d;
	struct dirent *e;
	int seen = 0;

	assert_non_null(path);
	d = opendir(path);
	while ((e = readdir(d))) {
		size_t len = strlen(e->d_name);

		if (len > 5 && mo_streq(e->d_name + len - 5, ".yaml")) {
			_cleanup_(mo_freep) char *name = mo_strndup(e->d_name, len - 5);

			fn(name);
			seen++;
		}
	}
	closedir(d);
	assert_true(seen > 0);
}

static void shipped_recipe(const char *name)
{
	_cleanup_(mo_freep) char *file = mo_printf("recipes/%s.yaml", name),
				 *path = mo_data_file(file);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	_cleanup_(parsed_done) struct parsed p = parse_n(text.data, text.len, NULL);

	must(&p);
	if (p.n_warnings)
		fail_msg("%s: %s", name, p.warnings[0]);
}

static void shipped_engine(const char *name)
{
	struct mo_error err = { 0 };
	struct engine e;

	mo_desc_init(&engine_desc, &e);
	if (engine_load(name, &e, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(e.kind, name);
	if (e.n_rules == 0 || !e.has_layout)
		fail_msg("config/engines/%s.yaml: a shipped engine has lines and layout", name);
	mo_desc_done(&engine_desc, &e);
}

static void shipped_gpu(const char *name)
{
	struct mo_error err = { 0 };
	struct gpu_type g;

	mo_desc_init(&gpu_type_desc, &g);
	if (gpu_type_load(name, &g, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(g.name, name);
	mo_desc_done(&gpu_type_desc, &g);
}

static void shipped_model(const char *name)
{
	struct mo_error err = { 0 };
	struct recipe_model m;

	mo_desc_init(&recipe_model_desc, &m);
	if (model_load(name, &m, &err) < 0)
		fail_msg("%s", err.text);
	mo_desc_done(&recipe_model_desc, &m);
}

static void test_shipped(void **state)
{
	each("recipes", shipped_recipe);
	each("engines", shipped_engine);
	each("gpus", shipped_gpu);
	each("models", shipped_model);
}

/* docs/recipe.md names every key. */
static void test_documented(void **state)
{
	struct recipe_errors errors = { 0 };
	struct reader r = recipe_reader(NULL, &errors);
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(MO_SOURCE_DIR "/docs/recipe.md", 1 << 20, &text), 0);
	assert_true(r.n_keys > 80);
	for (size_t i = 0; i < r.n_keys; i++) {
		const char *last = strrchr(r.keys[i].path, '.');

		if (!strstr(text.data, last ? last + 1 : r.keys[i].path))
			fail_msg("docs/recipe.md does not name %s", r.keys[i].path);
	}
}

static void test_tiny_moe(void **state)
{
	_cleanup_(mo_freep) char *path = mo_data_file("recipes/tiny-moe.yaml"), *argv = NULL;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	assert_int_equal(mo_read_file(path, 1 << 20, &text), 0);
	_cleanup_(parsed_done) struct parsed p = parse_n(text.data, text.len, NULL);

	must(&p);
	argv = argv_of(&p);
	assert_non_null(strstr(argv, "/engines/tiny_moe/train.py --steps 120 --save-every 20 "));
	assert_int_equal(p.recipe.engine.entry[0], '/');
	assert_true(p.engine.layout.announced_is_complete);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_documented),
		cmocka_unit_test(test_tiny_moe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
