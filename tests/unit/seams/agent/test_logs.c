/* A question for the last lines of a rank's log, which is written on while they are counted. */
#include "tests/unit/seams/agent/bed.h"

#include "agent/link.h"
#include "agent/logs.h"
#include "agent/manager.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"

#define LOG "/var/lib/moe/logs/j7/a1/rank-0.log"

static const struct agent_config config = { .controller = (char *)"http://moed",
					    .token_file = (char *)"/etc/moe/token",
					    .node = (char *)"n1",
					    .state_dir = (char *)"/var/lib/moe",
					    .runtime_dir = (char *)"/run/moe" };

static void grow(void)
{
	seam_append(LOG, "four\n");
}

static void test_last_lines(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct manager m = { .config = &config };
	struct command c;
	struct query_answer a;
	const char *path, *json;

	seam_new_process();
	assert_int_equal(link_new(&m, &m.link, &err), 0);
	assert_int_equal(logs_new(&m, &m.logs), 0);
	seam_put("/etc/moe/token", "moe_agent_0123456789\n");
	seam_put(LOG, "one\ntwo\nthree\n");
	seam_on_stat = grow;
	mo_desc_init(&command_desc, &c);
	mo_desc_init(&query_answer_desc, &a);
	c.kind = CMD_QUERY;
	c.job = 7;
	c.attempt = 1;
	c.rank = 0;
	c.lines = 2;
	c.offset = -1;
	logs_query(m.logs, &c);
	seam_run(S);
	uint64_t id = seam_message(&path, &json);
	assert_int_not_equal(id, 0);
	assert_int_equal(wire_decode(&query_answer_desc, json, strlen(json), false, &a, &err), 0);
	assert_string_equal(a.text, "two\nthree\n");
	assert_int_equal(a.offset, strlen("one\ntwo\nthree\n"));
	mo_desc_done(&query_answer_desc, &a);
	mo_desc_done(&command_desc, &c);
	seam_on_stat = NULL;
	seam_controller_done();
	logs_free(m.logs);
	link_free(m.link);
	seam_disk_done();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_lines) };

	return cmocka_run_group_tests_name("logs", tests, NULL, NULL);
}
