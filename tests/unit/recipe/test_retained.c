/* Data files are parsed once: a file that was changed, even to the same length, counts at once; one
 * that became wrong is reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/model/env_profile.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/catalogue_list.h"
#include "lib/recipe/env_file.h"
#include "tests/unit/recipe/read.h"

static void write_gpu(const char *path, int tflops)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("name: toy\ntitle: toy\nvendor: amd\nsource: none\nhbm_bytes: "
			  "2000000000\nhbm_tbps: 4.8\nbf16_tflops: %d\ndomain_gpus: "
			  "8\nscaleup_gbs: 450\n",
			  tflops);

	assert_int_equal(mo_write_file(path, text, strlen(text), 0600, false), 0);
}

static int load(double *ret, struct mo_error *err)
{
	struct gpu_type g;

	mo_desc_init(&gpu_type_desc, &g);
	int r = gpu_type_load("toy", &g, err);
	*ret = g.bf16_tflops;
	mo_desc_done(&gpu_type_desc, &g);
	return r;
}

static void files_that_change(void **state)
{
	char dir[] = "/tmp/moe-kept-XXXXXX";
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	double x = 0;

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *gpus = mo_path(dir, "gpus"),
				 *path = mo_path(dir, "gpus/toy.yaml");
	assert_int_equal(mo_mkdir_p(gpus, 0700, false), 0);
	setenv("MOE_DATA_DIR", dir, 1);
	for (int i = 0; i < 4; i++) {
		write_gpu(path, 100 + i / 2);
		assert_int_equal(load(&x, &err), 0);
		assert_true(x == 100 + i / 2);
	}
	assert_int_equal(mo_write_file(path, "name: [", 7, 0600, false), 0);
	assert_true(load(&x, &err) < 0);
	assert_non_null(strstr(err.text, "toy.yaml"));
	write_gpu(path, 102);
	assert_int_equal(load(&x, NULL), 0);
	assert_true(x == 102);
	unsetenv("MOE_DATA_DIR");
	mo_rm_rf(dir);
}

/* Files that rested are only checked by their times: another one in the place of the first is
 * another one. */
static void rested_files_that_are_exchanged(void **state)
{
	static const struct {
		const char *file;
		double tflops;
	} gpus[] = { { "mi300x", 1307 }, { "mi355x", 2500 } };
	char dir[] = "/tmp/moe-kept-XXXXXX";

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *below = mo_path(dir, "gpus"),
				 *path = mo_path(dir, "gpus/toy.yaml");
	assert_int_equal(mo_mkdir_p(below, 0700, false), 0);
	setenv("MOE_DATA_DIR", dir, 1);
	for (int i = 0; i < 8; i++) {
		_cleanup_(mo_freep) char *shipped =
			mo_printf(MO_SOURCE_DIR "/config/gpus/%s.yaml", gpus[i / 2 % 2].file);
		double x = 0;

		unlink(path);
		assert_int_equal(symlink(shipped, path), 0);
		assert_int_equal(load(&x, NULL), 0);
		assert_true(x == gpus[i / 2 % 2].tflops);
	}
	unsetenv("MOE_DATA_DIR");
	mo_rm_rf(dir);
}

static void write_profile(const char *dir, const char *name, const char *when, int value)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "env/%s.yaml", name);
	_cleanup_(mo_freep) char *text =
		mo_printf("env: 1\nlayer: profile\nwhen: {engine: %s}\nitems:\n- {name: %s, value: "
			  "'%d', reason: x}\n",
			  when, name, value);

	assert_int_equal(mo_write_file(path, text, strlen(text), 0600, false), 0);
}

/* "A=1 B=2 " of our profiles that apply to this engine; "?" when they cannot be read. Caller
 * frees. */
static char *profiles_of(const char *engine)
{
	struct recipe r;
	struct env_profile *profiles = NULL;
	struct mo_buf b = { 0 };
	size_t n = 0;

	mo_desc_init(&recipe_desc, &r);
	mo_str_set(&r.engine.kind, engine);
	bool good = env_profiles(&r, &profiles, &n, NULL) == 0;
	if (!good)
		mo_buf_str(&b, "?");
	for (size_t i = 0; i < n && good; i++)
		if (!profiles[i].name[1]) /* not one of the shipped */
			mo_buf_printf(&b, "%s=%s ", profiles[i].name, profiles[i].items[0].value);
	mo_vec_clear(&env_profile_desc, (void **)&profiles, &n);
	mo_desc_done(&recipe_desc, &r);
	return mo_buf_take(&b);
}

static void expect_profiles(const char *engine, const char *expected)
{
	_cleanup_(mo_freep) char *found = profiles_of(engine);

	assert_string_equal(found ? found : "", expected);
}

static size_t listed(const char *dir, const char *name)
{
	const struct catalogue_list *l = catalogue_list(dir);
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += strcmp(l->names[i], name) == 0 && strstr(l->paths[i], name) != NULL;
	return n;
}

/* A directory that rested is not listed again; another one in its place, a file that comes and one
 * that goes are seen at once. */
static void lists_that_change(void **state)
{
	char dir[] = "/tmp/moe-kept-XXXXXX";
	static const char *const dirs[] = { "gpus", "models" };

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *path = mo_path(dir, "env"), *file = mo_path(dir, "env/new.yaml");
	char **names = catalogue_list("gpus")->names;
	assert_ptr_equal(catalogue_list("gpus")->names, names);
	setenv("MOE_DATA_DIR", dir, 1);
	for (size_t i = 0; i < 8; i++) {
		_cleanup_(mo_freep) char *to = mo_printf(MO_SOURCE_DIR "/config/%s", dirs[i % 2]);

		unlink(path);
		assert_int_equal(symlink(to, path), 0);
		assert_int_equal(listed("env", "mi300x"), i % 2 == 0);
		assert_int_equal(listed("env", "qwen3-30b-a3b"), i % 2 == 1);
	}
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(listed("env", "new"), 0);
		assert_int_equal(mo_write_file(file, "x", 1, 0600, false), 0);
		assert_int_equal(listed("env", "new"), 1);
		unlink(file);
	}
	unsetenv("MOE_DATA_DIR");
	assert_int_equal(listed("env", "new"), 0);
	mo_rm_rf(dir);
}

/* What a recipe must be like is asked of each recipe, whoever asked before. */
static void profiles_that_change(void **state)
{
	char dir[] = "/tmp/moe-kept-XXXXXX";

	assert_non_null(mkdtemp(dir));
	_cleanup_(mo_freep) char *env = mo_path(dir, "env"), *path = mo_path(dir, "env/B.yaml");
	assert_int_equal(mo_mkdir_p(env, 0700, false), 0);
	setenv("MOE_DATA_DIR", dir, 1);
	write_profile(dir, "A", "torch", 1);
	write_profile(dir, "B", "[torch, command]", 2);
	for (int i = 0; i < 2; i++) {
		expect_profiles("torch", "A=1 B=2 ");
		expect_profiles("command", "B=2 ");
	}
	write_profile(dir, "A", "[command]", 3);
	expect_profiles("torch", "B=2 ");
	expect_profiles("command", "A=3 B=2 ");
	assert_int_equal(mo_write_file(path, "env: [", 6, 0600, false), 0);
	expect_profiles("command", "?");
	expect_profiles("command", "?");
	write_profile(dir, "B", "command", 4);
	expect_profiles("command", "A=3 B=4 ");
	unsetenv("MOE_DATA_DIR");
	mo_rm_rf(dir);
}

static size_t n_asked;

/* In the place of libc's: how often a file or directory of the catalogue is asked for. */
int stat(const char *path, struct stat *ret)
{
	n_asked++;
	return fstatat(AT_FDCWD, path, ret, 0);
}

static size_t asked_for(size_t n_variables)
{
	_cleanup_(mo_buf_done) struct mo_buf lines = { 0 };

	mo_buf_str(&lines, "env:\n");
	for (size_t i = 0; i < n_variables; i++)
		mo_buf_printf(&lines, "  V_%zu: x\n", i);
	mo_buf_str(&lines, "  NCCL_IB_TIMEOUT: 300\n");
	_cleanup_(mo_freep) char *text = recipe_with(lines.data);
	n_asked = 0;
	struct parsed p = parse(text, NULL);
	assert_int_equal(p.errors.n, 1);
	assert_non_null(strstr(p.errors.items[0].text, "NCCL_IB_TIMEOUT: expected"));
	parsed_done(&p);
	return n_asked;
}

/* Limits of variables are looked up once for a recipe, however many it sets. */
static void limits_of_many_variables(void **state)
{
	size_t one = asked_for(1);

	assert_true(one > 0);
	assert_int_equal(asked_for(400), one);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(files_that_change),
					    cmocka_unit_test(rested_files_that_are_exchanged),
					    cmocka_unit_test(lists_that_change),
					    cmocka_unit_test(profiles_that_change),
					    cmocka_unit_test(limits_of_many_variables) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
