/* What container runtimes say of their images, and what is kept in vain. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/core/stepd/runtime_image.h"
#include "lib/base/buf.h"

#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void names(void **state)
{
	static const struct {
		const char *text, *id, *digest; /* id NULL: refused */
	} rows[] = {
		{ "sha256:" A64 " " B64 "\n", B64, "sha256:" A64 },
		{ "r/x@sha256:" A64 " r/y@sha256:" B64 " sha256:" B64, B64, "sha256:" A64 },
		{ "sha256:" B64 "\n", B64, "id:sha256:" B64 },
		{ "<none> " B64, B64, "id:sha256:" B64 },
		{ "x:1 " A16, A16, "id:sha256:" A16 },
		{ "", NULL, NULL },
		{ " \n", NULL, NULL },
		{ "abc", NULL, NULL },
		{ "sha256:" A64 " -rf", NULL, NULL },
		{ A64 "a", NULL, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct mo_error err = { 0 };
		struct runtime_image image;

		mo_desc_init(&runtime_image_desc, &image);
		int r = runtime_image_names(rows[i].text, &image, &err);

		assert_int_equal(r, rows[i].id ? 0 : -EBADMSG);
		if (rows[i].id) {
			assert_string_equal(image.id, rows[i].id);
			assert_string_equal(image.digest, rows[i].digest);
		} else
			assert_non_null(strstr(mo_error_text(&err, r), "its id, got '"));
		mo_desc_done(&runtime_image_desc, &image);
		mo_error_done(&err);
	}
}

static int layers_of(const char *text, struct runtime_image *ret)
{
	mo_desc_init(&runtime_image_desc, ret);
	return runtime_image_layers(text, ret, NULL);
}

static void layers(void **state)
{
	static const char *const none[] = { "vfs ", "overlay2 <no value>", "overlay", "btrfs /a",
					    "",     "overlay2 :",          ":" };
	static const char *const bad[] = { "overlay /a:b", "overlay /a::/b",
					   "overlay /a:<no value>" };
	struct runtime_image image;

	assert_int_equal(layers_of("overlay2 /a b:/c", &image), 0);
	assert_int_equal(image.n_layers, 2);
	assert_string_equal(image.layers[0], "/a b");
	assert_string_equal(image.layers[1], "/c");
	mo_desc_done(&runtime_image_desc, &image);
	/* of one layer there is none below */
	assert_int_equal(layers_of("overlay2 /a:", &image), 0);
	assert_int_equal(image.n_layers, 1);
	mo_desc_done(&runtime_image_desc, &image);
	for (size_t i = 0; i < ELEMENTSOF(none); i++) {
		assert_int_equal(layers_of(none[i], &image), -ENOTSUP);
		mo_desc_done(&runtime_image_desc, &image);
	}
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		assert_int_equal(layers_of(bad[i], &image), -EBADMSG);
		mo_desc_done(&runtime_image_desc, &image);
	}
}

static void too_many(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct runtime_image image;

	mo_buf_str(&b, "overlay /l");
	for (int i = 1; i < RUNTIME_LAYERS_MAX; i++)
		mo_buf_str(&b, ":/l");
	assert_int_equal(layers_of(b.data, &image), 0);
	mo_desc_done(&runtime_image_desc, &image);
	mo_buf_str(&b, ":/l");
	assert_int_equal(layers_of(b.data, &image), -EBADMSG);
	mo_desc_done(&runtime_image_desc, &image);
}

static void step_dirs(void **state)
{
	static const struct {
		const char *step, *node, *dir;
	} rows[] = {
		{ "j2.a1.n0." A16, "n0", "j2.a1" },
		{ "j20.a13.x.n0." A16, "x.n0", "j20.a13" },
		{ "j20.a13.x.n0." A16, "n0", NULL },
		{ "j2.a1.n1." A16, "n0", NULL },
		{ "j2.a1.n0.zzzzzzzzzzzzzzzz", "n0", NULL },
		{ "j2.a.n0." A16, "n0", NULL },
		{ "j.a1.n0." A16, "n0", NULL },
		{ "j2.a1/../n0.n0." A16, "n0", NULL },
		{ "../j2.a1.n0." A16, "n0", NULL },
		{ "j2.n0." A16, "n0", NULL },
		{ ".n0." A16, "n0", NULL },
		{ "", "n0", NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *dir = runtime_step_dir(rows[i].step, rows[i].node);

		if (!mo_streq(dir, rows[i].dir) && (dir || rows[i].dir))
			fail_msg("%s: %s", rows[i].step, dir ? dir : "none");
	}
}

static void answers(void **state)
{
	static const struct {
		const char *text, *names, *layers, *config;
	} rows[] = { { "a b\noverlay /c\n{\"E\": 1}\n", "a b", "overlay /c", "{\"E\": 1}\n" },
		     { "a\n\n{\n}\n", "a", "", "{\n}\n" },
		     { "a", "a", "", "" },
		     { "", "", "", "" } };

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		_cleanup_(mo_freep) char *text = mo_strdup(rows[i].text);
		struct runtime_answer answer;

		runtime_answer_read(text, &answer);
		assert_string_equal(answer.names, rows[i].names);
		assert_string_equal(answer.layers, rows[i].layers);
		assert_string_equal(answer.config, rows[i].config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),    cmocka_unit_test(layers),    cmocka_unit_test(answers),
		cmocka_unit_test(too_many), cmocka_unit_test(step_dirs),
	};

	return cmocka_run_group_tests_name("acore/runtime_image", tests, NULL, NULL);
}
