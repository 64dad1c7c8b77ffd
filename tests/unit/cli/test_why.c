/* why in twelve lines: what is left out is evidence, and it is counted. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "cli/why.h"
#include "lib/base/buf.h"

static char *said(const char *document, bool all)
{
	const struct cli cli = { 0 };
	struct json_object *doc = json_tokener_parse(document);
	FILE *terminal = stdout;
	char *text = NULL;
	size_t n = 0;

	stdout = open_memstream(&text, &n);
	why_print(&cli, "j-7", doc, all);
	fclose(stdout);
	stdout = terminal;
	json_object_put(doc);
	return text;
}

/* Reasons with so many lines of evidence each. */
static char *document(const int *evidence, size_t n_reasons, const char *rest)
{
	struct mo_buf b = { 0 };

	mo_buf_str(&b, "{\"verdict\":\"it hangs\",\"reasons\":[");
	for (size_t i = 0; i < n_reasons; i++) {
		mo_buf_printf(&b, "%s{\"code\":\"c%zu\",\"text\":\"reason %zu\",\"evidence\":[",
			      i ? "," : "", i, i);
		for (int k = 0; k < evidence[i]; k++)
			mo_buf_printf(&b, "%s\"e%zu.%d\"", k ? "," : "", i, k);
		mo_buf_str(&b, "]}");
	}
	mo_buf_printf(&b, "]%s}", rest);
	return mo_buf_take(&b);
}

static int lines_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

#define NEXT ",\"next\":\"look\""

static void twelve_lines_are_whole(void **state)
{
	_cleanup_(mo_freep) char *doc = document((int[]){ 6, 2 }, 2, NEXT),
				 *text = said(doc, false), *all = said(doc, true);

	assert_int_equal(lines_of(text), 12);
	assert_string_equal(text, all);
	assert_null(strstr(text, "--all"));
	assert_non_null(strstr(text, "           e1.1\n  next     look\n"));
}

static void what_is_more_is_evidence(void **state)
{
	_cleanup_(mo_freep) char *doc = document((int[]){ 30, 0, 5 }, 3, NEXT),
				 *text = said(doc, false), *all = said(doc, true);

	assert_string_equal(text, "j-7  it hangs\n"
				  "  because  reason 0  [c0]\n"
				  "           e0.0\n           e0.1\n           e0.2\n"
				  "           e0.3\n           e0.4\n           e0.5\n"
				  "  because  reason 1  [c1]\n"
				  "  because  reason 2  [c2]\n"
				  "  and      29 more lines of evidence: moectl why j-7 --all\n"
				  "  next     look\n");
	assert_int_equal(lines_of(all), 40);
	assert_null(strstr(all, "--all"));
}

static void one_line_too_many(void **state)
{
	_cleanup_(mo_freep) char *doc = document((int[]){ 11 }, 1, ""), *text = said(doc, false),
				 *with_next = document((int[]){ 10 }, 1, NEXT),
				 *two = said(with_next, false);

	assert_int_equal(lines_of(text), 12);
	assert_non_null(strstr(text, "  and      2 more lines"));
	assert_int_equal(lines_of(two), 12);
	assert_non_null(strstr(two, "  and      2 more lines"));
}

static void many_reasons(void **state)
{
	_cleanup_(mo_freep) char *doc = document((int[14]){ 1 }, 14, NEXT),
				 *text = said(doc, false);

	assert_int_equal(lines_of(text), 12);
	assert_non_null(strstr(text, "reason 8  [c8]\n  and      6 more lines"));
	assert_null(strstr(text, "reason 9"));
}

/* What the verdict says is said once, and takes no line. */
static void what_the_verdict_said(void **state)
{
	_cleanup_(mo_freep) char *text =
		said("{\"verdict\":\"failed: no memory on n1\",\"since\":\"then\",\"reasons\":["
		     "{\"code\":\"oom\",\"text\":\"no memory\",\"evidence\":[\"no memory on n1\","
		     "\"HIP out of memory\"]}]}",
		     false);

	assert_string_equal(text, "j-7  failed: no memory on n1  since then\n"
				  "  because  HIP out of memory  [oom]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twelve_lines_are_whole),
		cmocka_unit_test(what_is_more_is_evidence),
		cmocka_unit_test(one_line_too_many),
		cmocka_unit_test(many_reasons),
		cmocka_unit_test(what_the_verdict_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
