/* Data files are parsed once: a file that was changed, even to the same length, counts at once; one that became wrong is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/fd.h"
#include "lib/recipe/recipe_file.h"

static void write_gpu(const char *path, int tflops)
{
	_cleanup_(mo_freep) char *text = mo_printf("name: toy\ntitle: toy\nvendor: amd\nsource: none\nhbm_bytes: 2000000000\nhbm_tbps: 4.8\nbf16_tflops: %d\ndomain_gpus: 8\nscaleup_gbs: 450\n", tflops);

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
	_cleanup_(mo_freep) char *gpus = mo_path(dir, "gpus"), *path = mo_path(dir, "gpus/toy.yaml");
	assert_int_equal(mo_mkdir_p(gpus, 0700), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(files_that_change) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
