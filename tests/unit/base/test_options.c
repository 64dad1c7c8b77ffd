/* lib/base/options.h: every type, its bounds, the file's syntax and where errors point to, the
 * command line, the example. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/unit/unit.h"
#include "lib/base/fd.h"
#include "lib/base/options.h"
#include "lib/base/options_args.h"

struct config {
	char *url, *dir, *name, *mode;
	int64_t count, wait_us, bytes, first, last;
	bool on;
};
static const char *const modes[] = { "auto", "yes", "no", NULL };
static const struct mo_option table[] = {
	{ "url", MO_OPTION_STR, offsetof(struct config, url), "http://x", "Where.\nTwo lines.", 0,
	  0, NULL },
	{ "dir", MO_OPTION_PATH, offsetof(struct config, dir), NULL, "A directory.", 0, 0, NULL },
	{ "name", MO_OPTION_NAME, offsetof(struct config, name), NULL, "A name.", 0, 0, NULL },
	{ "mode", MO_OPTION_WORD, offsetof(struct config, mode), "auto", "A mode.", 0, 0, modes },
	{ "count", MO_OPTION_INT, offsetof(struct config, count), "3", "A number.", 0, 10, NULL },
	{ "wait", MO_OPTION_DURATION, offsetof(struct config, wait_us), "1s", "A time.", 1000,
	  60000000, NULL },
	{ "bytes", MO_OPTION_SIZE, offsetof(struct config, bytes), "1k", "A size.", -1, 1 << 20,
	  NULL },
	{ "ports", MO_OPTION_RANGE, offsetof(struct config, first), "20-30", "A range.", 1, 65535,
	  NULL },
	{ "on", MO_OPTION_BOOL, offsetof(struct config, on), NULL, "A switch.", 0, 0, NULL },
};
static const struct mo_options options = { table, ELEMENTSOF(table) };

/* The error of a text, "" when it is taken. Caller frees. */
static char *error_of(const char *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct config c;
	mo_options_init(&options, &c);
	int r = mo_options_text(&options, &c, "f", text, strlen(text), &err);
	mo_options_done(&options, &c);
	assert_true((r == 0) == (err.text == NULL));
	return mo_strdup(err.text ? err.text : "");
}

static void expect_error(const char *text, const char *wanted)
{
	_cleanup_(mo_freep) char *seen = error_of(text);
	if (!mo_streq(seen, wanted))
		fail_msg("'%s' gives '%s', not '%s'", text, seen, wanted);
}

static void test_defaults(void **state)
{
	struct config c;
	mo_options_init(&options, &c);
	assert_string_equal(c.url, "http://x");
	assert_null(c.dir);
	assert_string_equal(c.mode, "auto");
	assert_int_equal(c.count, 3);
	assert_int_equal(c.wait_us, 1000000);
	assert_int_equal(c.bytes, 1024);
	assert_int_equal(c.first, 20);
	assert_int_equal(c.last, 30);
	assert_false(c.on);
	mo_options_done(&options, &c);
}

static void test_values(void **state)
{
	static const char text[] = "---\r\n# comment\n\nurl: \"a \\\"b\\\" #c\\n\" # after\ndir: "
				   "/tmp/x y  \nname: 'n-1'\nmode: no\ncount:\t10\nwait: "
				   "250ms\nbytes: unlimited\nports: 1000-1003\non: yes";
	struct config c;
	mo_options_init(&options, &c);
	assert_int_equal(mo_options_text(&options, &c, "f", text, sizeof(text) - 1, NULL), 0);
	assert_string_equal(c.url, "a \"b\" #c\n");
	assert_string_equal(c.dir, "/tmp/x y");
	assert_string_equal(c.name, "n-1");
	assert_string_equal(c.mode, "no");
	assert_int_equal(c.count, 10);
	assert_int_equal(c.wait_us, 250000);
	assert_int_equal(c.bytes, -1);
	assert_int_equal(c.first, 1000);
	assert_int_equal(c.last, 1003);
	assert_true(c.on);
	assert_int_equal(mo_options_text(&options, &c, "f", "url:\nname: ~\ncount: null\n", 25,
					 NULL),
			 0);
	assert_string_equal(c.url, "http://x"); /* nothing means the default */
	assert_null(c.name);
	assert_int_equal(c.count, 3);
	assert_int_equal(mo_options_text(&options, &c, "f", "url: ''\n", 8, NULL), 0);
	assert_string_equal(c.url, ""); /* an empty string is one */
	mo_options_done(&options, &c);
}

static void test_bad_values(void **state)
{
	expect_error("cuont: 1", "f:1:1: unknown key 'cuont'; did you mean 'count'?");
	expect_error("zzz: 1", "f:1:1: unknown key 'zzz'");
	expect_error("count: 1\n\ncount: 2", "f:3:1: duplicate key 'count'");
	expect_error("count: 11", "f:1:8: count: '11' is not a whole number from 0 to 10");
	expect_error("count: 1x", "f:1:8: count: '1x' is not a whole number from 0 to 10");
	expect_error("wait: 1ms\non: maybe", "f:2:5: on: 'maybe' is not true or false");
	expect_error("dir: tmp", "f:1:6: dir: 'tmp' is not an absolute path");
	expect_error("name: -x", "f:1:7: name: '-x' is not a name: expected letters, digits, '.', "
				 "'_' and '-', at most 63, beginning with a letter or digit");
	expect_error("mode: maybe", "f:1:7: mode: 'maybe' is not one of: auto, yes, no");
	expect_error("wait: 0s",
		     "f:1:7: wait: '0s' is not a duration such as 30s from 1000 to 60000000 us");
	expect_error("bytes: 2M",
		     "f:1:8: bytes: '2M' is not a size such as 64M from -1 to 1048576 bytes");
	expect_error("ports: 30-20",
		     "f:1:8: ports: '30-20' is not a range such as 20000-29999 from 1 to 65535");
	expect_error("ports: 20",
		     "f:1:8: ports: '20' is not a range such as 20000-29999 from 1 to 65535");
}

static void test_bad_syntax(void **state)
{
	expect_error("count 1", "f:1:1: expected 'key: value'");
	expect_error("count:1", "f:1:1: expected 'key: value'");
	expect_error(": 1", "f:1:1: expected 'key: value'");
	expect_error("  count: 1",
		     "f:1:3: a key must begin in column 1: nested values are not supported here");
	expect_error("url: [a]", "f:1:6: url: only plain 'key: value' lines are supported here; "
				 "quote the value if it really begins with this character");
	expect_error("url: a: b", "f:1:6: url: a second ': ' in one line; quote the value");
	expect_error("url: \"a", "f:1:6: url: the double-quoted value is not closed");
	expect_error("url: 'a", "f:1:6: url: the single-quoted value is not closed");
	expect_error("url: \"\\x\"", "f:1:6: url: unsupported escape in a double-quoted value: use "
				     "\\\" \\\\ \\n \\r or \\t");
	expect_error("url: 'a' b", "f:1:6: url: unexpected text after the value");
	expect_error("url: \xff", "f: not valid UTF-8 text");
}

static int args(int argc, char **argv, struct config *c, struct mo_error *err)
{
	return mo_options_args(&options, "moe-test", "", argc, argv, c, err);
}

static void test_command_line(void **state)
{
	char path[] = "/tmp/moe-options-XXXXXX";
	_cleanup_(mo_closep) int fd = mkstemp(path);
	_cleanup_(mo_error_done) struct mo_error err = { 0 }, missing = { 0 }, bad = { 0 };
	struct config c;
	assert_int_equal(mo_write_all(fd, "count: 5\nurl: file\n", 19), 0);
	char *good[] = { (char *)"p", (char *)"--set", (char *)"url=set", (char *)"--config",
			 path,        (char *)"--set", (char *)"on=1",    (char *)"--check-config",
			 NULL };
	assert_int_equal(args(8, good, &c, &err), MO_ARGS_CHECK);
	assert_int_equal(c.count, 5);
	assert_string_equal(c.url, "set"); /* --set wins over the file, wherever it stands */
	assert_true(c.on);
	mo_options_done(&options, &c);
	unlink(path);
	char *gone[] = { (char *)"p", (char *)"--config", path, NULL };
	assert_int_equal(args(3, gone, &c, &missing), -ENOENT);
	assert_non_null(strstr(missing.text, path));
	mo_options_done(&options, &c);
	char *wrong[] = { (char *)"p", (char *)"--set", (char *)"count", NULL };
	assert_int_equal(args(3, wrong, &c, &bad), -EINVAL);
	assert_string_equal(bad.text, "--set count: expected --set key=value");
	mo_options_done(&options, &c);
}

static void write_part(const char *dir, const char *name, const char *text)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);

	assert_int_equal(mo_write_file(path, text, strlen(text), 0644, false), 0);
}

/* What a site says lies beside the main file, which need not be there; the last word counts, by the
 * order of names. */
static void test_parts(void **state)
{
	char top[] = "/tmp/moe-options-XXXXXX";
	_cleanup_(mo_error_done) struct mo_error err = { 0 }, bad = { 0 };
	struct config c;

	assert_non_null(mkdtemp(top));
	_cleanup_(mo_freep) char *main_file = mo_path(top, "agent.yaml"),
				 *dir = mo_path(top, "agent.d");
	assert_int_equal(mo_mkdir_p(dir, 0755, false), 0);
	write_part(dir, "20-later.yaml", "url: later\n");
	write_part(dir, "10-first.yaml", "url: first\ncount: 7\n");
	write_part(dir, "30-not.yaml.bak", "url: bak\n");
	write_part(dir, ".hidden.yaml", "url: hidden\n");
	char *plain[] = { (char *)"p", NULL };
	assert_int_equal(mo_options_args(&options, "moe-test", main_file, 1, plain, &c, &err),
			 MO_ARGS_RUN);
	assert_string_equal(c.url, "later");
	assert_int_equal(c.count, 7);
	mo_options_done(&options, &c);
	write_part(top, "agent.yaml", "count: 2\non: true\n");
	char *given[] = { (char *)"p",     (char *)"--config", main_file,
			  (char *)"--set", (char *)"url=set",  NULL };
	assert_int_equal(args(5, given, &c, &err), MO_ARGS_RUN);
	assert_string_equal(c.url, "set");
	assert_int_equal(c.count, 7);
	assert_true(c.on);
	mo_options_done(&options, &c);
	write_part(dir, "40-bad.yaml", "\nurll: x\n");
	assert_int_equal(args(5, given, &c, &bad), -EINVAL);
	assert_non_null(strstr(bad.text, "agent.d/40-bad.yaml:2:1: unknown key 'urll'"));
	mo_options_done(&options, &c);
	assert_int_equal(mo_rm_rf(top), 0);
}

static void test_example_is_the_defaults(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct config c, d;
	mo_options_example(&options, "Head.", &b);
	/* what is shown commented out is the default: taken, nothing changes */
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == '#' && (i == 0 || b.data[i - 1] == '\n') && b.data[i + 1] != ' ')
			b.data[i] = '\n';
	mo_options_init(&options, &c);
	mo_options_init(&options, &d);
	assert_int_equal(mo_options_text(&options, &c, "f", b.data, b.len, NULL), 0);
	assert_string_equal(c.url, d.url);
	assert_string_equal(c.mode, d.mode);
	assert_int_equal(c.bytes, d.bytes);
	assert_int_equal(c.last, d.last);
	assert_non_null(strstr(b.data, "# Where.\n# Two lines.\n\nurl: http://x\n"));
	assert_non_null(strstr(b.data, "# One of: auto, yes, no."));
	mo_options_done(&options, &c);
	mo_options_done(&options, &d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_bad_syntax),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_example_is_the_defaults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
