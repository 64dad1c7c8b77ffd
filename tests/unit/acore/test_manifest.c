/* Manifests: written and read back, names of every kind, cut and changed texts refused, and the
 * file that changed is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "agent/core/ckpt/manifest.h"

static const struct ckpt_file files[] = {
	{ .name = (char *)"\\n", .bytes = 3, .mtime_ns = 7, .inode = 10, .crc = 0 },
	{ .name = (char *)"a b\nc\\d", .bytes = 0, .mtime_ns = -5, .inode = 11, .crc = MO_NONE },
	{ .name = (char *)"end 3 x",
	  .bytes = INT64_MAX,
	  .mtime_ns = INT64_MAX,
	  .inode = 12,
	  .crc = 0xffffffff },
	{ .name = (char *)"sub/__0_0.distcp",
	  .bytes = 1,
	  .mtime_ns = 1,
	  .inode = 13,
	  .crc = 0xe3069283 },
};
#define N ELEMENTSOF(files)

static void test_round(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct ckpt_file *back = NULL;
	size_t n = 0;

	manifest_write(files, N, &text);
	assert_int_equal(manifest_read(text.data, text.len, &back, &n), 0);
	assert_int_equal(n, N);
	for (size_t i = 0; i < N; i++) {
		assert_string_equal(back[i].name, files[i].name);
		assert_int_equal(back[i].crc, files[i].crc);
	}
	assert_null(manifest_difference(files, N, back, n, false));
	ckpt_files_done(back, n);
	for (size_t cut = 0; cut < text.len; cut++)
		assert_int_not_equal(manifest_read(text.data, cut, &back, &n), 0);
	/* one changed character changes a number, a name or the digest; a checksum is no part of
	 * it */
	for (size_t i = 0; i < text.len; i++) {
		char was = text.data[i];
		text.data[i] = was == '1' ? '2' : '1';
		if (manifest_read(text.data, text.len, &back, &n) == 0) {
			assert_null(manifest_difference(files, N, back, n, false));
			ckpt_files_done(back, n);
		}
		text.data[i] = was;
	}
}

static void differs(struct ckpt_file *now, size_t n, bool copied, const char *words)
{
	_cleanup_(mo_freep) char *reason = manifest_difference(files, N, now, n, copied),
				 *a = manifest_digest(files, N), *b = manifest_digest(now, n);

	if (!copied)
		assert_int_equal(mo_streq(a, b), !words);
	bool matches = reason && words ? strstr(reason, words) != NULL : !reason && !words;
	if (!matches)
		fail_msg("said '%s', wanted '%s'", reason ? reason : "nothing",
			 words ? words : "nothing");
}

static void test_difference(void **state)
{
	struct ckpt_file now[N];

	memcpy(now, files, sizeof(now));
	differs(now, N, false, NULL);
	differs(now, N - 1, false, "sub/__0_0.distcp is gone");
	now[3].bytes = 2;
	differs(now, N, false,
		"sub/__0_0.distcp changed since it was verified: it has 2 bytes, it had 1");
	differs(now, N, true, "it has 2 bytes, it had 1");
	now[3].bytes = 1;
	now[3].inode = 99;
	differs(now, N, false, "was replaced");
	differs(now, N, true, NULL);
	now[3].inode = 13;
	now[3].mtime_ns = 2;
	differs(now, N, false, "was written again");
	now[3].name = (char *)"zzz";
	differs(now, N, true, "sub/__0_0.distcp is gone");
	now[3].name = (char *)"f";
	differs(now, N, false, "f appeared");
}

static void test_parts(void **state)
{
	int64_t counts[8] = { 0 };

	for (int i = 0; i < 1024; i++) {
		_cleanup_(mo_freep) char *name = mo_printf("__%d_%d.distcp", i / 2, i % 2);
		int64_t part = manifest_part(name, 8);
		assert_in_range(part, 0, 7);
		assert_int_equal(part, manifest_part(name, 8));
		counts[part]++;
	}
	for (int i = 0; i < 8; i++)
		assert_in_range(counts[i], 90, 170);
	assert_int_equal(manifest_part("x", 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_round),
					    cmocka_unit_test(test_difference),
					    cmocka_unit_test(test_parts) };

	return cmocka_run_group_tests_name("acore/manifest", tests, NULL, NULL);
}
