/* Bytes of a rank cut into lines, however they come in, and the last of them kept. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/core/text/split.h"
#include "agent/core/text/tail.h"
#include "lib/base/desc.h"

/* "a|~b|" = the line a, the bar b */
static void on_split(void *arg, enum split_kind kind, const char *line, size_t n)
{
	mo_buf_printf(arg, "%s%.*s|", kind == SPLIT_BAR ? "~" : "", (int)n, line);
}

/* In pieces of this size; what was seen, and what the log has. */
static void check(const char *text, size_t piece, const char *seen_want, const char *log_want)
{
	_cleanup_(mo_buf_done) struct mo_buf seen = { 0 }, log = { 0 };
	struct split s = { 0 };

	for (size_t at = 0, n = strlen(text); at < n; at += piece)
		split_bytes(&s, text + at, MO_MIN(piece, n - at), &log, on_split, &seen);
	split_end(&s, &log, on_split, &seen);
	assert_string_equal(seen.data, seen_want);
	assert_string_equal(log.data, log_want);
	assert_int_equal(s.too_long, 0);
}

static void test_pieces(void **state)
{
	for (size_t piece = 1; piece < 12; piece++) {
		check("one\ntwo\r\n\nthree", piece, "one|two||three|", "one\ntwo\r\n\nthree\n");
		check(" 1%\r 2%\r\nend\n", piece, "~ 1%| 2%|end|", " 1%\r 2%\r\nend\n");
	}
}

static void test_too_long(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 }, seen = { 0 }, log = { 0 };
	struct split s = { 0 };

	for (size_t i = 0; i < MO_LINE_MAX + 5000; i++)
		mo_buf_add(&text, "x", 1);
	mo_buf_str(&text, "\nnext\n");
	for (size_t at = 0; at < text.len; at += 1000)
		split_bytes(&s, text.data + at, MO_MIN((size_t)1000, text.len - at), &log, on_split,
			    &seen);
	assert_int_equal(seen.len, MO_LINE_MAX + strlen("|next|"));
	assert_int_equal(log.len, text.len);
	assert_memory_equal(log.data, text.data, text.len);
	assert_int_equal(s.too_long, 1);
	split_end(&s, &log, on_split, &seen);
	assert_int_equal(log.len, text.len);
}

static void test_tail(void **state)
{
	struct tail *t = mo_alloc(sizeof(*t));
	char **lines = NULL, text[16];
	size_t n = 0;

	for (int i = 0; i < MO_TAIL_LINES + 3; i++) {
		snprintf(text, sizeof(text), "line %d", i);
		tail_add(t, text, strlen(text));
	}
	tail_lines(t, &lines, &n);
	assert_int_equal(n, MO_TAIL_LINES);
	assert_string_equal(lines[0], "line 3");
	snprintf(text, sizeof(text), "line %d", MO_TAIL_LINES + 2);
	assert_string_equal(lines[n - 1], text);
	while (n > 0)
		free(lines[--n]);
	free(lines);
	free(t);
}

/* Python's faulthandler prints a hundred calls of each thread, the main one last. */
static void test_tail_of_threads(void **state)
{
	struct tail *t = mo_alloc(sizeof(*t));
	char **lines = NULL, text[64];
	size_t n = 0;

	tail_add(t, "before", 6);
	tail_add(t, "Fatal Python error: Aborted", 27);
	for (int thread = 0; thread < 40; thread++) {
		tail_add(t, "", 0);
		snprintf(text, sizeof(text), "%shread 0x7f%02d (most recent call first):",
			 thread == 39 ? "Current t" : "T", thread);
		tail_add(t, text, strlen(text));
		for (int call = 0; call < 30; call++) {
			snprintf(text, sizeof(text), "  File \"a.py\", line %d in f%d", call,
				 thread);
			tail_add(t, text, strlen(text));
		}
		tail_add(t, "  ...", 5);
	}
	tail_add(t, "", 0);
	tail_add(t, "Extension modules: x", 20);
	tail_add(t, "  File of nothing", 17);
	tail_lines(t, &lines, &n);
	assert_int_equal(n, 2 + 1 + 1 + TAIL_CALLS + 2);
	assert_string_equal(lines[0], "before");
	assert_string_equal(lines[3], "Current thread 0x7f39 (most recent call first):");
	assert_string_equal(lines[4], "  File \"a.py\", line 0 in f39");
	assert_string_equal(lines[3 + TAIL_CALLS], "  File \"a.py\", line 7 in f39");
	assert_string_equal(lines[n - 2], "Extension modules: x");
	assert_string_equal(lines[n - 1], "  File of nothing");
	while (n > 0)
		free(lines[--n]);
	free(lines);
	free(t);
}

/* What is left of a rank that printed `noise` behind its exception: the two last lines. */
static void check_error(const char *printed, int noise, const char *error, const char *before_last,
			const char *last)
{
	struct tail *t = mo_alloc(sizeof(*t));
	char **lines = NULL;
	size_t n = 0;

	tail_add(t, "begins", 6);
	tail_add(t, printed, strlen(printed));
	for (int i = 0; i < noise; i++)
		tail_add(t, "noise", 5);
	tail_error(t, error);
	tail_lines(t, &lines, &n);
	assert_string_equal(lines[n - 1], last);
	assert_string_equal(lines[n - 2], before_last);
	mo_strs_clear(&lines, &n);
	free(t);
}

static void test_tail_of_an_error(void **state)
{
	static const char worker[] =
		"FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.\n"
		"Original Traceback (most recent call last):\n"
		"  File \"w.py\", line 16, in __getitem__\n"
		"FileNotFoundError: [Errno 2] No such file or directory: '/data/7.bin'\n";

	check_error("RuntimeError: x", 0, "RuntimeError: x", "begins", "RuntimeError: x");
	check_error("[rank0]: RuntimeError: x", 0, "RuntimeError: x", "begins",
		    "[rank0]: RuntimeError: x");
	check_error("RuntimeError: x", 30, "RuntimeError: x", "noise", "RuntimeError: x");
	check_error("RuntimeError: y", 0, "RuntimeError: x\n", "RuntimeError: y",
		    "RuntimeError: x");
	check_error("a", 0, worker,
		    "FileNotFoundError: Caught FileNotFoundError in DataLoader worker process 0.",
		    "FileNotFoundError: [Errno 2] No such file or directory: '/data/7.bin'");
	check_error("a", 0, "", "begins", "a");
	check_error("a", 0, " \n\n", "begins", "a");
	check_error("Thread 0x7f (most recent call first):", 0, "  x",
		    "Thread 0x7f (most recent call first):", "  x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_tail_of_threads),
		cmocka_unit_test(test_tail_of_an_error),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
