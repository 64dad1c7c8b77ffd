/* Questions about a rank's log, which is written on and rotated while they are answered. */
#include "tests/unit/seams/agent/bed.h"

#include <errno.h>

#include "agent/core/stepd/log_time.h"
#include "agent/link.h"
#include "agent/log_times.h"
#include "agent/logs.h"
#include "agent/manager.h"
#include "lib/base/fd.h"
#include "lib/model/message.h"
#include "lib/wire/decode.h"

#define DIR "/var/lib/moe/logs/j7/a1"
#define LOG DIR "/rank-0.log"
#define TIMES DIR "/rank-0.times"

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

static void note_time(int64_t at_us, int64_t byte)
{
	struct log_time t = { at_us, byte };
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, TIMES, O_WRONLY | O_CREAT, 0640);
	struct stat st;

	mo_stat_fd(fd, &st);
	assert_int_equal(mo_write_at(fd, &t, sizeof(t), st.st_size), sizeof(t));
}

static void rotate(void)
{
	seam_on_stat = NULL;
	assert_int_equal(mo_rename(TIMES, TIMES ".1"), 0);
}

/* Whatever file is looked at first, what was noted before the rotation is found. */
static void test_rotated_between(void **state)
{
	assert_int_equal(log_times_find(DIR, 0, 0), -ENOENT);
	note_time(100 * S, 10);
	rotate();
	assert_int_equal(log_times_find(DIR, 0, 50 * S), 10);
	assert_int_equal(log_times_find(DIR, 0, 150 * S), INT64_MAX);
	note_time(200 * S, 20);
	note_time(300 * S, 30);
	seam_on_stat = rotate;
	assert_int_equal(log_times_find(DIR, 0, 250 * S), 30);
	assert_int_equal(log_times_find(DIR, 0, 50 * S), 20);
	assert_int_equal(log_times_find(DIR, 0, 350 * S), INT64_MAX);
	note_time(400 * S, 40);
	seam_on_stat = rotate;
	assert_int_equal(log_times_find(DIR, 0, 350 * S), 40);
	note_time(500 * S, 50);
	assert_int_equal(log_times_find(DIR, 0, 350 * S), 40);
	assert_int_equal(log_times_find(DIR, 0, 450 * S), 50);
	seam_disk_done();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_last_lines),
					    cmocka_unit_test(test_rotated_between) };

	return cmocka_run_group_tests_name("logs", tests, NULL, NULL);
}
