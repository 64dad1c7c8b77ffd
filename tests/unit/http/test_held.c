/* Answers that are held and streams: they come when there is something, end with their token, and
 * their owner is notified of a client that left. */
#include "tests/unit/http/bed.h"

#include <errno.h>
#include <string.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"

static void test_held(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	bed.held_id = 0;
	put(fd, "GET /v1/hold HTTP/1.1" AS("viewer") "\r\n\r\n");
	while (!bed.held_id) {
		assert_true(mo_clock_boot_us() < end);
		receive(fd, &got);
	}
	sd_event_run(bed.loop, 1000);
	assert_int_equal(got.len, 0);
	struct http_request *r = http_find(bed.server, bed.held_id);
	assert_non_null(r);
	assert_null(http_find(bed.server, bed.held_id + 1));
	http_reply(r, 201, "text/plain", "late", 4, NULL);
	http_reply(r, 500, "text/plain", "twice", 5, NULL);
	wait_for(fd, &got, "late");
	assert_non_null(strstr(got.data, "201"));
	assert_int_equal(bed.gone_calls, 0);
	assert_null(http_find(bed.server, bed.held_id));
}

static void test_stream(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = dial(true);
	struct http_stats stats;

	put(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(fd, &got, "\r\n\r\n");
	struct http_request *r = http_find(bed.server, bed.held_id);
	assert_int_equal(http_stream_write(r, "data: one\n\n", 11), 0);
	wait_for(fd, &got, "data: one\n\n");
	assert_int_equal(http_stream_write(r, "data: two\n\n", 11), 0);
	wait_for(fd, &got, "data: two\n\n");
	http_server_stats(bed.server, &stats);
	assert_int_equal(stats.streams, 1);
	http_stream_end(r);
	assert_int_equal(http_stream_write(r, "x", 1), -EPIPE);
	wait_for(fd, &got, "\r\n0\r\n\r\n");
	assert_int_equal(bed.gone_calls, 0);
}

/* A client that leaves, and one that does not read: both end, and the owner is notified. */
static void test_stream_lost(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 }, got2 = { 0 };
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	static char block[65536];
	int fd = dial(true), r = 0;

	put(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(fd, &got, "\r\n\r\n");
	mo_close(fd);
	while (!bed.gone_calls) {
		struct http_request *q = http_find(bed.server, bed.held_id);
		assert_true(mo_clock_boot_us() < end);
		if (q)
			http_stream_write(q, ": beat\n\n", 8);
		sd_event_run(bed.loop, 10000);
	}
	assert_int_equal(bed.gone_calls, 1);
	_cleanup_(mo_closep) int deaf = dial(true);
	put(deaf, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(deaf, &got2, "\r\n\r\n");
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 1000 && r == 0; i++) {
		r = http_stream_write(http_find(bed.server, bed.held_id), block, sizeof(block));
		sd_event_run(bed.loop, 0);
	}
	assert_int_equal(r, -ENOBUFS);
	wait_closed(deaf, &got2);
	assert_null(http_find(bed.server, bed.held_id));
}

/* What is held or streamed for a token ends with it; what is of others stays. */
static void test_end_of_a_token(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf held = { 0 }, stream = { 0 }, local = { 0 },
					     late = { 0 };
	_cleanup_(mo_closep) int held_fd = dial(false), stream_fd = dial(false),
				 local_fd = dial(true), late_fd = dial(false);

	put(late_fd, POST JSON "\r\nContent-Length: 2\r\n\r\n{");
	put(local_fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(local_fd, &local, "\r\n\r\n");
	uint64_t local_id = bed.held_id;
	put(stream_fd, "GET /v1/stream HTTP/1.1" AS("viewer") "\r\n\r\n");
	wait_for(stream_fd, &stream, "\r\n\r\n");
	http_stream_write(http_find(bed.server, bed.held_id), "never", 5);
	bed.token_alive = false;
	http_server_check_tokens(bed.server);
	assert_int_equal(bed.gone_calls, 1);
	wait_for(stream_fd, &stream, "\r\n0\r\n\r\n");
	assert_null(strstr(stream.data, "never"));
	bed.seen_body[0] = 0;
	put(late_fd, "}");
	wait_for(late_fd, &late, "401");
	assert_string_equal(bed.seen_body, "");
	bed.token_alive = true;
	bed.held_id = 0;
	put(held_fd, "GET /v1/hold HTTP/1.1" AS("viewer") "\r\n\r\n");
	while (!bed.held_id)
		receive(held_fd, &held);
	bed.token_alive = false;
	http_server_check_tokens(bed.server);
	assert_int_equal(bed.gone_calls, 2);
	wait_for(held_fd, &held, "401");
	bed.held_id = local_id;
	assert_int_equal(http_stream_write(http_find(bed.server, local_id), "still", 5), 0);
	wait_for(local_fd, &local, "still");
}

/* The held request of a leaving server is answered, not dropped. */
static void test_stop_answers(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = dial(true);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	bed.held_id = 0;
	put(fd, "GET /v1/hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!bed.held_id) {
		assert_true(mo_clock_boot_us() < end);
		receive(fd, &got);
	}
	bed.server = http_server_free(bed.server);
	wait_closed(fd, &got);
	assert_non_null(strstr(got.data, "503"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_held, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_stream, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_stream_lost, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_end_of_a_token, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_stop_answers, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
