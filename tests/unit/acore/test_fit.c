/* Whether an image fits a node: one row for each check, and what makes it warn or fail. */
#include "tests/unit/unit.h"

#include <string.h>

#include "agent/core/image/fit.h"

struct bed {
	struct fit f;
	struct image_fits fits;
	struct image_checks checks;
};

/* A node with two cards and GPUs, and an image that fits it. */
static void begin(struct bed *b)
{
	*b = (struct bed){ 0 };
	mo_desc_init(&image_fits_desc, &b->fits);
	mo_desc_init(&image_checks_desc, &b->checks);
	struct amdgpu_release *a = MO_ADD(&b->fits, amdgpu, &amdgpu_release_desc);
	*a = (struct amdgpu_release){ mo_strdup("6.14.14"), mo_strdup("30.10"), mo_strdup("6.2"),
				      mo_strdup("7.0") };
	struct rdma_provider *p = MO_ADD(&b->fits, rdma, &rdma_provider_desc);
	*p = (struct rdma_provider){ mo_strdup("bnxt_en"), mo_strdup("bnxt_re") };
	b->checks.image = mo_strdup("dir:/i");
	b->checks.user = mo_strdup("anna");
	b->f.node = (struct fit_node){ .machine = 62,
				       .root = true,
				       .amd_gpus = 8,
				       .kfd = { 1, 1, NULL, NULL },
				       .render = { 8, 8, NULL, NULL },
				       .rdma = { 3, 3, NULL, NULL },
				       .amdgpu = mo_strdup("6.14.14"),
				       .kernel = mo_strdup("6.8.0-60"),
				       .mem_bytes = INT64_C(1) << 40,
				       .memlock_bytes = INT64_MAX,
				       .layers = mo_strdup("/var/l"),
				       .layers_free = INT64_C(1) << 40,
				       .overlay = true,
				       .cgroup2 = true };
	for (int i = 0; i < 2; i++)
		*MO_GROW(b->f.node.cards, b->f.node.n_cards) =
			(struct fit_card){ mo_printf("rdma%d", i), mo_strdup("bnxt_en") };
	b->f.image = (struct fit_image){ .config = mo_strdup("config.json"),
					 .path = mo_strdup("/opt/venv/bin"),
					 .python = { .path = mo_strdup("/opt/venv/bin/python3"),
						     .machine = 62 },
					 .shell = { .path = mo_strdup("/bin/sh"), .machine = 62 },
					 .rocm = mo_strdup("7.0.0-38"),
					 .rccl = true,
					 .rocr = true };
	mo_strs_add(&b->f.image.providers, &b->f.image.n_providers, "bnxt_re");
}

static void end(struct bed *b)
{
	fit_done(&b->f);
	mo_desc_done(&image_fits_desc, &b->fits);
	mo_desc_done(&image_checks_desc, &b->checks);
}

static const struct image_check *row(struct bed *b, const char *check)
{
	for (size_t i = 0; i < b->checks.n_items; i++)
		if (mo_streq(b->checks.items[i].check, check))
			return &b->checks.items[i];
	return NULL;
}

/* Judges, and has one row that is not ok: this one. */
static void expect(struct bed *b, const char *check, int state, const char *text)
{
	fit_judge(&b->f, &b->fits, &b->checks);
	for (size_t i = 0; i < b->checks.n_items; i++) {
		const struct image_check *c = &b->checks.items[i];

		if (c->state == IMAGE_OK)
			assert_null(c->next);
		else
			assert_string_equal(c->check, check);
	}
	const struct image_check *c = row(b, check);

	assert_non_null(c);
	assert_int_equal(c->state, state);
	if (!strstr(c->text, text))
		assert_string_equal(c->text, text);
	end(b);
}

static void test_fits(void **state)
{
	struct bed b;

	begin(&b);
	expect(&b, "image.rocm", IMAGE_OK, "ROCm 7.0.0-38 over amdgpu 6.14.14 (30.10)");
}

static void test_python(void **state)
{
	struct bed b;

	begin(&b);
	mo_str_set(&b.f.image.python.path, NULL);
	b.f.image.python.machine = 0;
	b.f.image.python.elsewhere = mo_strdup("/x/python3");
	expect(&b, "image.python", IMAGE_FAIL,
	       "in none of the directories /opt/venv/bin; the image has /x/python3");
	begin(&b);
	b.f.image.python.by = mo_strdup("/lib/ld.so");
	expect(&b, "image.python", IMAGE_FAIL, "executed by /lib/ld.so, which is not there");
}

static void test_architecture(void **state)
{
	struct bed b;

	begin(&b);
	b.f.image.python.machine = 183;
	fit_judge(&b.f, &b.fits, &b.checks);
	assert_int_equal(row(&b, "image.architecture")->state, IMAGE_FAIL);
	assert_int_equal(row(&b, "image.python")->state, IMAGE_FAIL);
	end(&b);
	begin(&b);
	b.f.image.python.machine = b.f.image.shell.machine = 0;
	expect(&b, "image.architecture", IMAGE_WARN, "neither python3 nor /bin/sh");
}

static void test_rocm(void **state)
{
	struct bed b;

	begin(&b);
	mo_str_set(&b.f.image.rocm, "7.10.0");
	expect(&b, "image.rocm", IMAGE_WARN, "for which AMD supports ROCm 6.2 to 7.0");
	begin(&b);
	mo_str_set(&b.f.image.rocm, "6.1.5");
	expect(&b, "image.rocm", IMAGE_WARN, "for which AMD supports ROCm 6.2 to 7.0");
	begin(&b);
	mo_str_set(&b.f.node.amdgpu, NULL);
	expect(&b, "image.rocm", IMAGE_WARN, "over amdgpu of the kernel, without a version");
	begin(&b);
	mo_str_set(&b.f.image.rocm, NULL);
	expect(&b, "image.rocm", IMAGE_WARN, "no /opt/rocm/.info/version");
	begin(&b);
	b.f.image.rccl = false;
	expect(&b, "image.rccl", IMAGE_WARN, "librccl is not there");
}

/* One row for both cards. */
static void test_providers(void **state)
{
	struct bed b;

	begin(&b);
	mo_str_set(&b.f.image.providers[0], "mlx5");
	fit_judge(&b.f, &b.fits, &b.checks);
	size_t n = 0;
	for (size_t i = 0; i < b.checks.n_items; i++)
		n += mo_streq(b.checks.items[i].check, "image.rdma");
	assert_int_equal(n, 1);
	assert_int_equal(row(&b, "image.rdma")->state, IMAGE_WARN);
	assert_non_null(strstr(row(&b, "image.rdma")->text, "no bnxt_re.driver"));
	end(&b);
	begin(&b);
	mo_str_set(&b.f.node.cards[1].driver, NULL);
	expect(&b, "image.rdma", IMAGE_OK, "rdma0 (driver bnxt_en): provider bnxt_re");
}

static void test_devices(void **state)
{
	struct bed b;

	begin(&b);
	b.f.node.kfd = (struct fit_devices){ 1, 0, mo_strdup("/dev/kfd (group render, mode 0660)"),
					     mo_strdup("render") };
	fit_judge(&b.f, &b.fits, &b.checks);
	const struct image_check *c = row(&b, "node.gpus");
	assert_int_equal(c->state, IMAGE_FAIL);
	assert_string_equal(c->text, "anna may not open /dev/kfd (group render, mode 0660); 0 of 1 "
				     "are open to him");
	assert_string_equal(c->next,
			    "put anna into group render on this node: usermod -aG render anna");
	end(&b);
	begin(&b);
	b.f.node.kfd.n = 0;
	expect(&b, "node.gpus", IMAGE_FAIL, "8 AMD GPUs, and no /dev/kfd");
	begin(&b);
	b.f.node.rdma.n = 0;
	expect(&b, "node.rdma", IMAGE_WARN, "nothing in /dev/infiniband");
}

static void test_limits(void **state)
{
	struct bed b;

	begin(&b);
	b.f.node.memlock_bytes = 8 << 20;
	expect(&b, "node.memlock", IMAGE_WARN, "8 MiB of locked memory");
	begin(&b);
	b.f.node.layers_free = 5 << 20;
	expect(&b, "node.space", IMAGE_FAIL, "goes to /var/l: 5 MiB free");
	begin(&b);
	b.f.node.layers_readonly = true;
	expect(&b, "node.space", IMAGE_FAIL, "read-only, 1024.0 GiB free");
	begin(&b);
	b.f.node.images = mo_strdup("/var/i");
	expect(&b, "node.locks", IMAGE_OK, "locked in /var/i");
	begin(&b);
	b.f.node.images = mo_strdup("/var/i");
	b.f.node.no_locks = true;
	expect(&b, "node.locks", IMAGE_WARN, "the file system of /var/i has no locks");
	begin(&b);
	b.f.node.root = false;
	expect(&b, "node.namespace", IMAGE_FAIL, "its agent is not root");
	begin(&b);
	b.f.node.cgroup2 = false;
	b.f.node.userns = true;
	expect(&b, "node.fourth_net", IMAGE_WARN, "users may make namespaces");
	begin(&b);
	b.f.node.cgroup2 = false;
	b.f.node.userns = b.f.node.userns_restricted = true;
	expect(&b, "node.fourth_net", IMAGE_OK, "found by the step's namespace");
}

static void test_no_image(void **state)
{
	struct bed b;

	begin(&b);
	b.f.image.error = mo_strdup("/i cannot be opened: Permission denied");
	expect(&b, "image.root", IMAGE_FAIL, "Permission denied");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fits),         cmocka_unit_test(test_python),
		cmocka_unit_test(test_architecture), cmocka_unit_test(test_rocm),
		cmocka_unit_test(test_providers),    cmocka_unit_test(test_devices),
		cmocka_unit_test(test_limits),       cmocka_unit_test(test_no_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
