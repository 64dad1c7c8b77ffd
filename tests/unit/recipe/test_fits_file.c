/* config/images/fits.yaml as it is shipped, and files that are wrong. */
#include "tests/unit/recipe/read.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/recipe/fits_file.h"

static void shipped(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct image_fits fits;

	mo_desc_init(&image_fits_desc, &fits);
	if (image_fits_load(&fits, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(fits.n_amdgpu > 5 && fits.n_rdma > 2);
	for (size_t i = 0; i < fits.n_amdgpu; i++)
		assert_true(image_release(fits.amdgpu[i].rocm_from) <
			    image_release(fits.amdgpu[i].rocm_to));
	assert_string_equal(fits.amdgpu[0].version, "6.16.13");
	assert_string_equal(fits.rdma[1].provider, "bnxt_re");
	mo_desc_done(&image_fits_desc, &fits);
}

static void refused(const char *text, const char *complaint)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct image_fits fits;

	mo_desc_init(&image_fits_desc, &fits);
	assert_true(image_fits_parse(text, strlen(text), &fits, &errors) < 0);
	mo_desc_done(&image_fits_desc, &fits);
	_cleanup_(mo_freep) char *all = errors_text(&errors);
	if (!strstr(all, complaint))
		fail_msg("'%s' is not in: %s", complaint, all);
}

#define RDMA "rdma: [{driver: d, provider: p}]\n"

static void wrong(void **state)
{
	refused(RDMA, "amdgpu");
	refused("amdgpu: []\nrdma: x\n", "rdma: expected a list");
	refused("amdgpu: [a]\n" RDMA, "expected {version, release, rocm}");
	refused("amdgpu: [{version: '1', release: '2', rocm: ['6.3']}]\n" RDMA,
		"rocm: expected the oldest and the newest release");
	refused("amdgpu: [{version: '1', release: '2', rocm: ['6.3', '7']}]\n" RDMA,
		"rocm: expected the oldest and the newest release");
	refused("amdgpu: [{version: '1', rocm: ['6.3', '7.1']}]\n" RDMA, "release");
	refused("amdgpu: []\nrdma: [{driver: d}]\n", "provider");
	refused("[]", "expected a mapping");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(shipped), cmocka_unit_test(wrong) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
