/* cli/output.h, cli/value.h, cli/plan_svg.h: numbers as people read them, unknown stays "-",
 * hostile texts do not steer the terminal. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/plan_svg.h"
#include "cli/value.h"
#include "cli/text.h"

static void numbers(void **state)
{
	assert_string_equal(text_int(MO_NONE), "-");
	assert_string_equal(text_int(-3), "-3");
	assert_string_equal(text_real(MO_NONE_F, 2), "-");
	assert_string_equal(text_real(NAN, 2), "NaN");
	assert_string_equal(text_real(2.345, 2), "2.35");
	assert_string_equal(text_real(0.00027, 2), "0.00027");
	assert_string_equal(text_real(-0.00027, 2), "-0.00027");
	assert_string_equal(text_real(0, 2), "0.00");
	assert_string_equal(text_real(0.01, 2), "0.01");
	assert_string_equal(text_real(1e308, 2), "1.000e+308");
	assert_string_equal(text_real(INFINITY, 2), "inf");
	assert_string_equal(text_si(999), "999");
	assert_string_equal(text_si(1e308), "1.000e+308");
	assert_string_equal(text_si(12.34), "12.3");
	assert_string_equal(text_si(1234), "1.23k");
	assert_string_equal(text_si(99960), "100k");
	assert_string_equal(text_si(2.5e12), "2.50T");
	assert_string_equal(text_bytes(0), "0 B");
	assert_string_equal(text_bytes(1500), "1.5 kB");
	assert_string_equal(text_bytes(24000000000000), "24.0 TB");
	assert_string_equal(text_seconds(0.0451), "45 ms");
	assert_string_equal(text_seconds(9.94), "9.9 s");
	assert_string_equal(text_seconds(59.4), "59 s");
	assert_string_equal(text_seconds(190), "3 m 10 s");
	assert_string_equal(text_seconds(7500), "2 h 05 m");
	assert_string_equal(text_seconds(792000), "9 d 4 h");
	assert_string_equal(text_seconds(INFINITY), "-");
	assert_string_equal(text_percent(0.4123), "41.2 %");
	assert_string_equal(text_span(3, 10), "3/10");
	assert_string_equal(text_span(MO_NONE, 10), "0/10");
	assert_string_equal(text_span(3, MO_NONE), "3");
	assert_string_equal(text_span(MO_NONE, MO_NONE), "-");
	assert_string_equal(text_clock("2026-11-21T08:30:50.123Z"), "08:30:50");
	assert_string_equal(text_clock("soon"), "-");
}

static void values(void **state)
{
	struct json_object *o = json_tokener_parse("{\"a\":{\"b\":7,\"n\":null},\"x\":\"NaN\","
						   "\"s\":\"t\",\"l\":[1,2],\"i\":\"Infinity\"}");
	assert_int_equal(js_int(o, "a.b"), 7);
	assert_int_equal(js_int(o, "a.n"), MO_NONE);
	assert_int_equal(js_int(o, "a.c.d"), MO_NONE);
	assert_int_equal(js_int(o, "s.t"), MO_NONE);
	assert_true(isnan(js_real(o, "x")));
	assert_true(isinf(js_real(o, "i")));
	assert_true(js_real(o, "a.b") == 7.0);
	assert_true(js_real(o, "s") == MO_NONE_F);
	assert_string_equal(js_str(o, "s"), "t");
	assert_null(js_str(o, "a.b"));
	assert_int_equal(js_len(js_get(o, "l")), 2);
	assert_int_equal(js_len(js_get(o, "a")), 0);
	assert_null(js_at(js_get(o, "l"), 2));
	assert_null(js_at(NULL, 0));
	assert_null(js_get(NULL, "a"));
	json_object_put(o);
}

static void cells(void **state)
{
	static const struct column columns[] = { { "A", "a" }, { ">B", "b.c", CELL_REAL, 2 } };
	struct json_object *o = json_tokener_parse("{\"a\":\"x\",\"b\":{\"c\":1.5}}");
	struct table t = { 0 };
	table_head(&t, columns, 2);
	table_cell(&t, "evil\033[2J\nname\x7f");
	table_cell(&t, "%d", 5);
	assert_int_equal(t.n_cells, 4);
	assert_string_equal(t.cells[2], "evil [2J name ");
	table_row(&t, o);
	table_row(&t, NULL);
	assert_int_equal(t.n_cells, 8);
	assert_string_equal(t.cells[4], "x");
	assert_string_equal(t.cells[5], "1.50");
	assert_string_equal(t.cells[7], "-");
	json_object_put(o);
	table_done(&t);
	assert_null(t.cells);
}

/* What a terminal of so many columns gets; the caller frees it. */
static char *printed(const struct table *t, int width, bool *ret_all)
{
	const struct cli cli = { .width = width };
	FILE *before = stdout;
	char *text = NULL;
	size_t n = 0;

	stdout = open_memstream(&text, &n);
	*ret_all = table_print(&cli, t);
	fclose(stdout);
	stdout = before;
	return text;
}

/* A column that says nothing goes first, then the least important; a wide one that is left out
 * leaves its room to others; the last is cut. */
static void few_columns(void **state)
{
	static const struct column columns[] = {
		{ "ID", "" },
		{ "NAME", "" },
		{ "PATH", "", .less = 2 },
		{ ">MFU", "", .less = 1 },
		{ ">N", "", .less = 3 },
		{ "REASON", "" },
	};
	static const char *const row[] = { "j-1", "train", "/a/rather/long/path",
					   "-",   "7",     "it waits for its nodes" };
	static const struct {
		int width;
		const char *text;
	} cases[] = {
		{ 0, "ID   NAME   PATH                 MFU  N  REASON\n"
		     "j-1  train  /a/rather/long/path    -  7  it waits for its nodes\n" },
		{ 57, "ID   NAME   PATH                 MFU  N  REASON\n"
		      "j-1  train  /a/rather/long/path    -  7  it waits for its\n" },
		{ 49, "ID   NAME   PATH                 N  REASON\n"
		      "j-1  train  /a/rather/long/path  7  it waits for \n" },
		{ 30, "ID   NAME   MFU  N  REASON\n"
		      "j-1  train    -  7  it waits f\n" },
		{ 26, "ID   NAME   N  REASON\n"
		      "j-1  train  7  it waits fo\n" },
		{ 23, "ID   NAME   REASON\n"
		      "j-1  train  it waits fo\n" },
		{ 19, "ID   NAME   MFU  N\n"
		      "j-1  train    -  7\n" },
		{ 4, "ID\n"
		     "j-1\n" },
	};
	struct table t = { 0 };

	table_head(&t, columns, ELEMENTSOF(columns));
	t.last_min = 10;
	for (size_t i = 0; i < ELEMENTSOF(row); i++)
		table_cell(&t, "%s", row[i]);
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		bool all;
		char *text = printed(&t, cases[i].width, &all);

		assert_string_equal(text, cases[i].text);
		assert_int_equal(all, i < 2);
		free(text);
	}
	table_done(&t);
}

static void progress(void **state)
{
	const struct cli cli = { 0 };
	struct json_object *j =
		json_tokener_parse("{\"id\":\"j-3\",\"state\":\"running\",\"iteration\":30,"
				   "\"steps\":60,\"loss\":2.5,\"tokens_per_s_per_gpu\":12345.0,"
				   "\"eta_s\":65.0,\"restarts\":1,\"reason\":null,\"mfu\":null}");
	char *line = progress_line(&cli, j, 0);
	assert_string_equal(line, "j-3  running  iteration 30/60  50 %  loss 2.5000  12.3k "
				  "tok/s/GPU  restarts 1  eta 1 m 05 s");
	assert_true(job_fraction(j) == 0.5);
	free(line);
	json_object_put(j);
	j = json_tokener_parse("{\"id\":\"j-4\",\"state\":\"queued\",\"iteration\":null,\"steps\":"
			       "null,\"reason\":\"needs 64 GPUs\"}");
	line = progress_line(&cli, j, 0);
	assert_string_equal(line, "j-4  queued  (needs 64 GPUs)");
	char *numbers = progress_numbers(&cli, j, 0); /* a reason may speak of iterations */
	assert_string_equal(numbers, "");
	free(numbers);
	assert_true(job_fraction(j) == MO_NONE_F);
	free(line);
	json_object_put(j);
}

/* 80 columns are enough for what people look for, however large the numbers are. */
static void progress_in_few_columns(void **state)
{
	static const char *const docs[] = {
		"{\"id\":\"j-3\",\"state\":\"running\",\"iteration\":51,\"steps\":120,\"loss\":2."
		"4765,\"tokens_per_s_per_gpu\":1640.0,\"eta_s\":6.0,\"restarts\":0,\"mfu\":null}",
		"{\"id\":\"j-1234\",\"state\":\"running\",\"iteration\":999999,\"steps\":1000000,"
		"\"loss\":12.3456,\"tokens_per_s_per_gpu\":123456.0,\"eta_s\":1065000.0,"
		"\"restarts\":17,"
		"\"mfu\":0.42}",
	};
	const struct cli cli = { .live = true, .width = 80 };

	for (size_t i = 0; i < ELEMENTSOF(docs); i++) {
		struct json_object *j = json_tokener_parse(docs[i]);
		char *line = progress_line(&cli, j, 79), *wide = progress_line(&cli, j, 200),
		     *narrow = progress_line(&cli, j, 20);

		assert_true(strlen(line) <= 79);
		assert_non_null(strstr(line, "  loss "));
		assert_non_null(strstr(line, " tok/s/GPU"));
		assert_non_null(strstr(line, "  eta "));
		assert_non_null(strstr(wide, "####"));
		assert_non_null(strstr(wide, "iteration "));
		assert_null(strstr(narrow, "iteration "));
		assert_true((strstr(line, "42 %") != NULL) == (i == 0));
		free(line);
		free(wide);
		free(narrow);
		json_object_put(j);
	}
}

static void picture(void **state)
{
	struct mo_buf b = { 0 };
	struct json_object *doc = json_tokener_parse(
		"{\"hardware\":{\"gpu\":\"<mi&>\",\"gpus\":8},\"plans\":[{\"parallelism\":{\"tp\":"
		"1},\"fits\":true,\"memory_gb\":{\"total\":100.0,\"params\":60.0,\"grads\":40.0,"
		"\"capacity\":206.1},\"step_time_s\":{\"total\":2.0,\"compute\":2.0}}]}");
	plan_svg(doc, NULL, 0, &b);
	assert_non_null(strstr(b.data, "&#60;mi&#38;&#62;"));
	assert_null(strstr(b.data, "<mi&>"));
	assert_non_null(strstr(b.data, "parameters 60.000 GB"));
	assert_non_null(strstr(b.data, "capacity 206.1 GB"));
	mo_buf_reset(&b);
	plan_svg(NULL, NULL, 0, &b);
	assert_non_null(strstr(b.data, "</svg>"));
	mo_buf_done(&b);
	json_object_put(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),  cmocka_unit_test(values),
		cmocka_unit_test(cells),    cmocka_unit_test(few_columns),
		cmocka_unit_test(progress), cmocka_unit_test(progress_in_few_columns),
		cmocka_unit_test(picture)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
