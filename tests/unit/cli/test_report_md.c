/* A report as Markdown says what the documents say, keeps its form whatever is written in them, and
 * shows no credential. */
#include "tests/unit/unit.h"

#include <string.h>

#include "cli/report_md.h"
#include "lib/base/util.h"

static char *made(const char *job, const char *report, const char *checkpoints)
{
	struct report_docs d = { json_tokener_parse(job), json_tokener_parse(report),
				 json_tokener_parse(checkpoints),
				 json_tokener_parse("{\"version\":\"0.9\"}") };
	struct mo_buf b = { 0 };

	report_md(&d, &b);
	json_object_put(d.job);
	json_object_put(d.report);
	json_object_put(d.checkpoints);
	json_object_put(d.cluster);
	return mo_buf_take(&b);
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no %s in:\n%s", part, text);
}

#define NO_CHECKPOINTS "{\"items\":[],\"earlier\":0}"

static void what_happened_is_there(void **state)
{
	_cleanup_(mo_freep) char *text =
		made("{\"id\":\"j-7\",\"name\":\"moe\",\"user\":\"ada\",\"state\":\"failed\","
		     "\"attempt\":2,\"ranks\":8,\"nodes\":[\"n1\"],\"iteration\":40,\"steps\":100}",
		     "{\"restarts\":1,\"wall_s\":90,\"ettr\":0.5,"
		     "\"gpu_seconds\":{\"total\":100,\"productive\":75,\"queue\":8,\"load\":0,"
		     "\"save\":25},\"incidents\":[{\"time\":\"2026-11-28T10:00:00.000Z\","
		     "\"attempt\":1,\"class\":\"transient\",\"first_rank\":3,\"node\":\"n1\","
		     "\"cause\":\"signal 9\",\"action\":\"restarted\",\"lost_iterations\":4,"
		     "\"evidence\":[\"one\",\"two\"],\"open\":\"load\","
		     "\"waterfall_ms\":{\"detect\":20,\"stop\":null,\"load\":2000}}]}",
		     "{\"items\":[{\"iteration\":40,\"state\":\"torn\",\"bytes\":1000,"
		     "\"path\":\"/c/40\",\"reason\":\"a shard is short\"}],\"earlier\":2}");

	has(text, "| job | j-7 (moe), by ada |\n|--|--|\n| state | failed |\n");
	has(text, "| ranks | 8 on 1 node |\n| iteration | 40/100 |\n"
		  "| attempts | 2, 1 of them after failures |\n");
	has(text, "| controller | 0.9 |\n");
	has(text, "| productive | 75.0 | 75.0 % |\n| queue (none of the total) | 8.0 | - |\n"
		  "| save | 25.0 | 25.0 % |\n| total | 100.0 | 100 % |\n");
	assert_null(strstr(text, "| load |"));
	has(text, "## Incidents: 1\n\n### 1. transient, first rank 3 on n1, attempt 1, "
		  "2026-11-28T10:00:00.000Z\n\n- cause: signal 9\n- action: restarted\n"
		  "- lost: 4 iterations\n"
		  "- restart: detect 20 ms, load 2.0 s; together 2.0 s so far\n\n"
		  "```text\none\ntwo\n```\n\n");
	has(text, "## Checkpoints: 3\n");
	has(text, "| 40 | torn | 1.0 kB | - | /c/40 | a shard is short |\n"
		  "\n2 earlier ones are not shown.\n");
}

static void nothing_breaks_its_form(void **state)
{
	_cleanup_(mo_freep) char *text =
		made("{\"id\":\"j-1\",\"name\":\"a|b<c>\",\"reason\":\"x\\n| y_z\"}",
		     "{\"incidents\":[{\"cause\":\"HF_TOKEN=hush1 *gone*\","
		     "\"evidence\":[\"```\",\"a ````` b\",\"https://u:hush2@h/\"]}]}",
		     NO_CHECKPOINTS);

	has(text, "(a\\|b\\<c\\>)");
	has(text, "| reason | x \\| y\\_z |\n");
	has(text, "\\*gone\\*");
	has(text, "\n``````text\n```\na ````` b\n");
	has(text, "/\n``````\n");
	assert_null(strstr(text, "hush"));
}

static void what_is_unknown_is_no_zero(void **state)
{
	_cleanup_(mo_freep) char *text = made("{}", "{}", NO_CHECKPOINTS);

	has(text, "| state | - |\n");
	has(text, "| total | - | - |\n");
	has(text, "## Incidents: 0\n\n## Checkpoints: 0\n");
}

static void of_many_the_newest(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "{\"incidents\":[");
	for (int i = 0; i < 23; i++)
		mo_buf_printf(&b, "%s{\"cause\":\"c%d;\"}", i ? "," : "", i);
	mo_buf_str(&b, "]}");
	_cleanup_(mo_freep) char *text = made("{}", b.data, NO_CHECKPOINTS);
	has(text, "## Incidents: 23\n\nThe newest 20; `moectl report JOB` shows all.\n");
	has(text, "### 4. ");
	has(text, "cause: c22;\n");
	assert_null(strstr(text, "c2;"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happened_is_there),
		cmocka_unit_test(nothing_breaks_its_form),
		cmocka_unit_test(what_is_unknown_is_no_zero),
		cmocka_unit_test(of_many_the_newest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
