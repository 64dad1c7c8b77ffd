/* Programs of images by their first bytes, and the words for those that cannot be executed. */
#include "tests/unit/unit.h"

#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/image_check.h"
#include "lib/model/program.h"

/* Begins an ELF file of 64 bits, with one program header that names the loader. */
static size_t elf(char head[PROGRAM_HEAD_BYTES], int machine, const char *loader)
{
	memset(head, 0, PROGRAM_HEAD_BYTES);
	memcpy(head, "\177ELF\2\1\1", 7);
	head[18] = (char)machine;
	head[32] = 64;  /* e_phoff */
	head[54] = 56;  /* e_phentsize */
	head[56] = 1;   /* e_phnum */
	head[64] = 3;   /* PT_INTERP */
	head[72] = 120; /* p_offset */
	head[96] = (char)(strlen(loader) + 1);
	memcpy(head + 120, loader, strlen(loader) + 1);
	return 120 + strlen(loader) + 1;
}

static void test_machines(void **state)
{
	char head[PROGRAM_HEAD_BYTES], by[PROGRAM_NAME_MAX];
	size_t n = elf(head, 183, "/lib/ld.so");

	assert_int_equal(program_machine(head, n), 183);
	assert_string_equal(program_machine_name(183), "aarch64");
	assert_int_equal(program_by(head, n, by), 10);
	assert_string_equal(by, "/lib/ld.so");
	head[5] = 2; /* the other order of bytes */
	assert_int_equal(program_machine(head, n), 183 << 8);
	assert_int_equal(program_machine("#!/bin/sh\n", 10), 0);
	assert_int_equal(program_machine(head, 19), 0);
	assert_null(program_machine_name(9999));
}

/* What is cut or lies gives no name, whatever it points to. */
static void test_broken(void **state)
{
	char head[PROGRAM_HEAD_BYTES], by[PROGRAM_NAME_MAX];
	size_t n = elf(head, 62, "/lib/ld.so");

	for (size_t cut = 0; cut < n - 1; cut++) {
		assert_true(program_by(head, cut, by) < n);
		assert_true(by[0] == '\0' || strlen(by) <= 10);
	}
	memset(head + 72, 0xff, 8);
	assert_int_equal(program_by(head, n, by), 0);
	elf(head, 62, "/lib/ld.so");
	memset(head + 32, 0xff, 8);
	assert_int_equal(program_by(head, n, by), 0);
	elf(head, 62, "/lib/ld.so");
	memset(head + 96, 0xff, 8);
	assert_int_equal(program_by(head, n, by), 0);
}

static void test_scripts(void **state)
{
	char by[PROGRAM_NAME_MAX];
	static const char env[] = "#! /usr/bin/env python3\n";

	assert_int_equal(program_by(env, strlen(env), by), 12);
	assert_string_equal(by, "/usr/bin/env");
	assert_int_equal(program_by("#!", 2, by), 0);
	assert_int_equal(program_by("", 0, by), 0);
}

static void expect(struct program_found f, const char *wanted)
{
	_cleanup_(mo_freep) char *problem = program_problem(&f);

	assert_string_equal(problem ? problem : "", wanted);
}

static void test_words(void **state)
{
	struct program_found f = { .wanted = "/usr/bin/python3", .own = 62 };

	expect(f, "cannot execute /usr/bin/python3 in the image: not there");
	f.elsewhere = "/opt/venv/bin/python3";
	expect(f, "cannot execute /usr/bin/python3 in the image: not there; the image has "
		  "/opt/venv/bin/python3");
	f = (struct program_found){ .wanted = "python3", .search = "/bin:/usr/bin", .own = 62 };
	expect(f, "cannot execute python3 in the image: in none of the directories /bin:/usr/bin");
	f = (struct program_found){ .wanted = "p", .path = "/bin/p", .own = 62, .machine = 183 };
	expect(f, "cannot execute /bin/p in the image: it is for aarch64, and this node is x86_64");
	f.machine = 62;
	expect(f, "");
	f.by = "/lib64/ld-linux-x86-64.so.2";
	expect(f, "cannot execute /bin/p in the image: it is executed by "
		  "/lib64/ld-linux-x86-64.so.2, which is not there");
	f.by = NULL;
	f.forbidden = true;
	expect(f, "cannot execute /bin/p in the image: the user may not execute it");
}

static void test_releases(void **state)
{
	assert_int_equal(image_release("6.3"), 6003);
	assert_int_equal(image_release("6.10.5"), 6010);
	assert_int_equal(image_release("7.0.0-38"), 7000);
	assert_int_equal(image_release("7"), MO_NONE);
	assert_int_equal(image_release("x7.1"), MO_NONE);
	assert_int_equal(image_release("7.1000"), MO_NONE);
	assert_int_equal(image_release(NULL), MO_NONE);
}

static void test_images(void **state)
{
	_cleanup_(mo_freep) char *path = image_check_problem("/srv/image"),
				 *none = image_check_problem(NULL),
				 *other = image_check_problem("docker://a");

	assert_null(image_check_problem("dir:/srv/image"));
	assert_string_equal(path, "image: /srv/image: say dir:/srv/image");
	assert_string_equal(none, "image: nothing cannot be looked at: say dir:/PATH, a directory "
				  "of the node; `moe-image` makes one");
	assert_non_null(strstr(other, "docker://a cannot be looked at"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machines), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_scripts),  cmocka_unit_test(test_words),
		cmocka_unit_test(test_releases), cmocka_unit_test(test_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
