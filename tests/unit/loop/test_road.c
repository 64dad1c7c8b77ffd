/* The agent's end of a road, against a socket that answers what the test says. */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/road.h"

#define PATIENCE_US 10000000
#define YES "HTTP/1.1 101 Switching Protocols\r\nUpgrade: moe/1\r\n\r\n"

static struct {
	sd_event *loop;
	struct mo_http *http;
	struct mo_road *road;
	int listener, peer;
	char url[64];
	/* what events said */
	int opened, lost, answers;
	char error[128], body[64];
	struct frame answer;
	bool frees; /* each event frees the road */
} bed;

static void heard(const char *error)
{
	snprintf(bed.error, sizeof(bed.error), "%s", error ? error : "");
	if (bed.frees)
		bed.road = mo_road_free(bed.road);
}

static void on_opened(void *arg, int status, const char *error)
{
	bed.opened = status ? status : -1;
	heard(error);
}

static void on_answered(void *arg, const struct frame *f, const char *body)
{
	bed.answers++;
	bed.answer = *f;
	snprintf(bed.body, sizeof(bed.body), "%s", body);
	heard(NULL);
}

static void on_lost(void *arg, const char *error)
{
	bed.lost++;
	heard(error);
}

static const struct mo_road_events events = { on_opened, on_answered, on_lost };

static int setup(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);

	memset(&bed, 0, sizeof(bed));
	bed.peer = -1;
	bed.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(bed.listener, (struct sockaddr *)&a, n) < 0 || listen(bed.listener, 4) < 0 ||
	    getsockname(bed.listener, (struct sockaddr *)&a, &n) < 0 || sd_event_new(&bed.loop) < 0)
		return -1;
	snprintf(bed.url, sizeof(bed.url), "http://127.0.0.1:%d/", ntohs(a.sin_port));
	return mo_http_new(bed.loop, &bed.http, NULL);
}

static int teardown(void **state)
{
	bed.road = mo_road_free(bed.road);
	mo_http_free(bed.http);
	sd_event_unref(bed.loop);
	if (bed.peer >= 0)
		mo_close(bed.peer);
	mo_close(bed.listener);
	return 0;
}

#define run_until(condition) \
	for (int64_t end = mo_clock_boot_us() + PATIENCE_US; !(condition);) { \
		assert_true(mo_clock_boot_us() < end); \
		sd_event_run(bed.loop, 10000); \
	}

static void begin(void)
{
	const struct mo_http_call call = {
		.url = bed.url, .token = "secret", .timeout_ms = 10000, .max_body = 50
	};

	assert_int_equal(mo_road_new(bed.loop, bed.http, &call, &events, NULL, &bed.road), 0);
}

static void read_more(struct mo_buf *got)
{
	char data[4096];
	ssize_t n;

	if (bed.peer < 0)
		bed.peer = accept4(bed.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	n = bed.peer < 0 ? 0 : read(bed.peer, data, sizeof(data));
	if (n > 0)
		mo_buf_add(got, data, (size_t)n);
}

/* What came to the other end, up to the words. */
static void await(struct mo_buf *got, const char *words)
{
	run_until((read_more(got), got->data && strstr(got->data, words)));
}

static void say(const void *data, size_t n)
{
	assert_int_equal(write(bed.peer, data, n), (ssize_t)n);
}

static void stand(void)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	begin();
	await(&got, "\r\n\r\n");
	assert_non_null(strstr(got.data, "GET /v1/agent/road HTTP/1.1\r\n"));
	assert_non_null(strstr(got.data, "\r\nAuthorization: Bearer secret\r\n"));
	assert_non_null(strstr(got.data, "\r\nUpgrade: moe/1\r\n"));
	assert_non_null(strstr(got.data, "\r\nHost: 127.0.0.1:"));
	say(YES, strlen(YES));
	run_until(bed.opened);
	assert_int_equal(bed.opened, 101);
}

static size_t frame(char *to, uint32_t id, const char *body)
{
	frame_write(&(struct frame){ (uint32_t)strlen(body), id, 200, 3 }, to);
	memcpy(to + FRAME_HEAD, body, strlen(body));
	return FRAME_HEAD + strlen(body);
}

static void test_frames(void **state)
{
	char text[256], head[FRAME_HEAD];
	struct frame f;
	ssize_t n;

	stand();
	mo_road_send(bed.road, &(struct frame){ 4, 9, FRAME_SYNC, 0 }, "body");
	run_until((n = read(bed.peer, text, sizeof(text))) > 0);
	assert_int_equal(n, FRAME_HEAD + 4);
	memcpy(head, text, sizeof(head));
	frame_read(head, &f);
	assert_int_equal(f.id, 9);
	assert_int_equal(f.code, FRAME_SYNC);
	assert_memory_equal(text + FRAME_HEAD, "body", 4);
	/* two at once, the second in pieces */
	size_t all = frame(text, 9, "first");
	all += frame(text + all, 10, "second");
	say(text, all - 3);
	run_until(bed.answers == 1);
	assert_string_equal(bed.body, "first");
	assert_int_equal(bed.answer.after_s, 3);
	say(text + all - 3, 3);
	run_until(bed.answers == 2);
	assert_string_equal(bed.body, "second");
	assert_int_equal(bed.answer.id, 10);
	assert_int_equal(bed.lost, 0);
}

static void test_no_road(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	static const char no[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";

	bed.frees = true;
	begin();
	await(&got, "\r\n\r\n");
	say(no, strlen(no));
	run_until(bed.opened);
	assert_int_equal(bed.opened, 404);
	assert_string_equal(bed.error, "");
}

static void test_no_http(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	begin();
	await(&got, "\r\n\r\n");
	say("220 mail\r\n\r\n", 12);
	run_until(bed.opened);
	assert_int_equal(bed.opened, -1);
	assert_non_null(strstr(bed.error, "no HTTP"));
}

static void test_nobody(void **state)
{
	mo_close(bed.listener);
	bed.listener = -1;
	begin();
	run_until(bed.opened);
	assert_int_equal(bed.opened, -1);
	assert_true(*bed.error);
}

/* Closed before an answer, and after; by the other end, or in the middle of an event. */
static void test_closed(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };

	begin();
	await(&got, "\r\n\r\n");
	mo_close(TAKE_FD(bed.peer));
	run_until(bed.opened);
	assert_int_equal(bed.opened, -1);
	bed.road = mo_road_free(bed.road);
	bed.opened = 0;
	stand();
	mo_close(TAKE_FD(bed.peer));
	run_until(bed.lost);
	assert_string_equal(bed.error, "the connection was closed");
}

static void test_freed_inside(void **state)
{
	char text[256];
	size_t n = frame(text, 1, "first");

	stand();
	bed.frees = true;
	n += frame(text + n, 2, "second");
	say(text, n);
	run_until(bed.answers);
	for (int i = 0; i < 5; i++)
		sd_event_run(bed.loop, 1000);
	assert_int_equal(bed.answers, 1);
	assert_null(bed.road);
}

static void test_too_large(void **state)
{
	char head[FRAME_HEAD];

	stand();
	frame_write(&(struct frame){ 51, 1, 200, 0 }, head);
	say(head, sizeof(head));
	run_until(bed.lost);
	assert_non_null(strstr(bed.error, "larger"));
}

#define t(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = { t(test_frames),   t(test_no_road), t(test_no_http),
					    t(test_nobody),   t(test_closed),  t(test_freed_inside),
					    t(test_too_large) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
