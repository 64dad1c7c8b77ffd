/* Timers, the turn, and the HTTP client against a server that this test plays by hand on the same
 * loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/http_client.h"
#include "lib/loop/http_fetch.h"
#include "lib/loop/loop.h"

#define PATIENCE_US 20000000

static sd_event *loop;

static int setup(void **state)
{
	return sd_event_new(&loop) < 0;
}
static int teardown(void **state)
{
	loop = sd_event_unref(loop);
	return 0;
}

/* Runs the loop until *flag or the deadline. */
static void run_until(const bool *flag)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (!*flag) {
		assert_true(mo_clock_boot_us() < end);
		assert_true(sd_event_run(loop, 1000000) >= 0);
	}
}

static void set_flag(void *arg)
{
	*(bool *)arg = true;
}

/* Burns CPU time, then ends the loop. */
static void burn(void *arg)
{
	int64_t until = mo_clock_thread_ns() + *(const int64_t *)arg;

	while (mo_clock_thread_ns() < until)
		continue;
	sd_event_exit(loop, 7);
}

static void test_longest_callback(void **state)
{
	int64_t burnt = 5000000, longest = 0;
	struct mo_timer *t = NULL;

	assert_int_equal(mo_timer_new(loop, burn, &burnt, &t), 0);
	mo_timer_in(t, 1000);
	assert_int_equal(mo_loop_run(loop, &longest), 7);
	assert_true(longest >= burnt);
	mo_timer_free(t);
}

static void test_timer(void **state)
{
	struct mo_timer *a = NULL, *b = NULL, *off = NULL;
	bool a_rang = false, b_rang = false, off_rang = false;

	assert_int_equal(mo_timer_new(loop, set_flag, &a_rang, &a), 0);
	assert_int_equal(mo_timer_new(loop, set_flag, &b_rang, &b), 0);
	assert_int_equal(mo_timer_new(loop, set_flag, &off_rang, &off), 0);
	mo_timer_in(off, 1000);
	mo_timer_at(off, INT64_MAX);
	mo_timer_in(a, 3600LL * 1000000);
	mo_timer_in(b, 30000);
	run_until(&b_rang);
	assert_false(a_rang);
	mo_timer_in(a, 0); /* moved, and in the past */
	run_until(&a_rang);
	b_rang = false;
	mo_timer_at(b, mo_clock_boot_us() - 5);
	run_until(&b_rang);
	assert_false(off_rang);
	assert_null(mo_timer_free(a));
	mo_timer_free(b);
	mo_timer_free(off);
	mo_timer_free(NULL);
}

/* As the server does while requests wait: it runs again at once. */
static int on_more(sd_event_source *s, void *userdata)
{
	int64_t until = mo_clock_thread_ns() + 1000000;

	while (mo_clock_thread_ns() < until)
		continue;
	++*(int *)userdata;
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* A source that always has more to do keeps no timer waiting. */
static void test_timer_beside_a_flood(void **state)
{
	struct mo_timer *t = NULL;
	sd_event_source *flood;
	bool rang = false;
	int n = 0;

	assert_true(sd_event_add_defer(loop, &flood, on_more, &n) >= 0);
	assert_int_equal(mo_timer_new(loop, set_flag, &rang, &t), 0);
	mo_timer_at(t, 1);
	run_until(&rang);
	assert_in_range(n, 0, 10);
	mo_timer_free(t);
	sd_event_source_disable_unref(flood);
}

struct order {
	struct mo_turn *turn;
	int reads, turns, reads_at_turn;
	bool done;
};

static int on_pipe(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct order *o = userdata;
	char c;

	assert_int_equal(read(fd, &c, 1), 1);
	o->reads++;
	mo_turn_arm(o->turn);
	return 0;
}

static void on_turn(void *arg)
{
	struct order *o = arg;

	o->turns++;
	o->reads_at_turn = o->reads;
	o->done = true;
}

/* Three pipes with several bytes each: one turn, after the last byte, however long reading
 * takes. */
static void test_turn_is_last(void **state)
{
	struct order o = { 0 };
	int fd[3][2];
	sd_event_source *source[3];

	assert_int_equal(mo_turn_new(loop, on_turn, &o, &o.turn), 0);
	mo_turn_wait(o.turn, INT64_MAX);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pipe(fd[i]), 0);
		assert_int_equal(write(fd[i][1], "abcd", 4), 4);
		assert_true(sd_event_add_io(loop, &source[i], fd[i][0], EPOLLIN, on_pipe, &o) >= 0);
	}
	run_until(&o.done);
	assert_int_equal(o.reads_at_turn, 12);
	assert_int_equal(o.turns, 1);
	for (int i = 0; i < 3; i++) {
		sd_event_source_disable_unref(source[i]);
		close(fd[i][0]);
		close(fd[i][1]);
	}
	mo_turn_free(o.turn);
}

static int on_busy(sd_event_source *s, void *userdata)
{
	return 0;
}

/* A source that is always ready does not keep the turn from running. */
static void test_turn_is_not_starved(void **state)
{
	struct order o = { 0 };
	sd_event_source *busy = NULL;

	assert_int_equal(mo_turn_new(loop, on_turn, &o, &o.turn), 0);
	assert_true(sd_event_add_defer(loop, &busy, on_busy, NULL) >= 0);
	assert_true(sd_event_source_set_enabled(busy, SD_EVENT_ON) >= 0);
	assert_true(sd_event_run(loop, 0) >= 0);
	mo_turn_arm(o.turn);
	run_until(&o.done);
	assert_int_equal(o.turns, 1);
	sd_event_source_disable_unref(busy);
	mo_turn_free(o.turn);
}

/* A server, for the newest connection only: keeps what it got and answers `answer` when the head
 * (and the body of `body` bytes) is there; NULL = never. */
struct peer {
	int fd, port, client, parked;
	const char *answer;
	struct mo_buf got;
	size_t body;
	sd_event_source *listen_io, *io;
};

static int on_client(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;
	char data[4096];
	ssize_t n = read(fd, data, sizeof(data));

	if (n <= 0) {
		sd_event_source_set_enabled(s, SD_EVENT_OFF);
		return 0;
	}
	mo_buf_add(&p->got, data, (size_t)n);
	char *head = strstr(p->got.data, "\r\n\r\n");
	if (head && p->got.len >= (size_t)(head + 4 - p->got.data) + p->body && p->answer)
		assert_int_equal(mo_write_all(fd, p->answer, strlen(p->answer)), 0);
	return 0;
}

static int on_accept(sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct peer *p = userdata;

	/* a cut earlier client would be an answer: it is parked until the end */
	sd_event_source_disable_unref(p->io);
	if (p->client >= 0)
		p->parked = p->client;
	p->client = accept(fd, NULL, NULL);
	assert_true(p->client >= 0);
	assert_true(sd_event_add_io(loop, &p->io, p->client, EPOLLIN, on_client, p) >= 0);
	return 0;
}

static void peer_start(struct peer *p, const char *answer, size_t body)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(sa);

	*p = (struct peer){ .client = -1, .parked = -1, .answer = answer, .body = body };
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(p->fd, 8), 0);
	assert_int_equal(getsockname(p->fd, (struct sockaddr *)&sa, &n), 0);
	p->port = ntohs(sa.sin_port);
	assert_true(sd_event_add_io(loop, &p->listen_io, p->fd, EPOLLIN, on_accept, p) >= 0);
}

static void peer_stop(struct peer *p)
{
	sd_event_source_disable_unref(p->io);
	sd_event_source_disable_unref(p->listen_io);
	if (p->client >= 0)
		close(p->client);
	if (p->parked >= 0)
		close(p->parked);
	close(p->fd);
	mo_buf_done(&p->got);
}

struct answer {
	bool done;
	int status, calls;
	char body[256], error[256];
	struct mo_http *http;
	struct answer *next;
	const struct mo_http_call *again;
	int64_t after_s; /* of its Retry-After, where http is given */
};

static void on_answer(void *arg, int status, const char *body, size_t n, const char *error)
{
	struct answer *a = arg;

	a->done = true;
	a->calls++;
	a->status = status;
	snprintf(a->body, sizeof(a->body), "%.*s", (int)n, body);
	snprintf(a->error, sizeof(a->error), "%s", error ? error : "");
	if (a->http)
		a->after_s = mo_http_retry_after_s(a->http);
	if (a->again)
		assert_int_equal(mo_http_send(a->http, a->again, on_answer, a->next, NULL), 0);
}

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* Body, token and headers arrive; a second call made from the first one's callback reuses the
 * connection. */
static void test_http_call(void **state)
{
	struct peer p;
	struct mo_http *h = NULL;
	struct answer second = { 0 }, first = { .next = &second };
	const char *const headers[] = { "X-Test: 7", NULL };

	peer_start(&p, OK_ANSWER, 4);
	assert_int_equal(mo_http_new(loop, &h, NULL), 0);
	_cleanup_(mo_freep) char *url = mo_printf("http://127.0.0.1:%d/", p.port);
	struct mo_http_call again = { .url = url, .path = "/b" };
	struct mo_http_call call = { .url = url,
				     .path = "/a?x=1",
				     .method = "POST",
				     .body = "body",
				     .body_len = 4,
				     .token = "secret",
				     .content_type = "application/json",
				     .headers = headers,
				     .timeout_ms = 20000 };
	first.http = h;
	assert_int_equal(mo_http_send(h, &call, on_answer, &first, NULL), 0);
	assert_false(first.done); /* never from inside send */
	run_until(&first.done);
	assert_int_equal(first.status, 200);
	assert_string_equal(first.body, "hello");
	assert_non_null(strstr(p.got.data, "POST /a?x=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(p.got.data, "Authorization: Bearer secret\r\n"));
	assert_non_null(strstr(p.got.data, "X-Test: 7\r\n"));
	assert_null(strstr(p.got.data, "Expect:"));
	mo_buf_reset(&p.got);
	p.body = 0;
	first.done = false;
	first.again = &again;
	assert_int_equal(mo_http_send(h, &again, on_answer, &first, NULL), 0);
	run_until(&second.done);
	assert_int_equal(second.status, 200);
	mo_http_free(h);
	peer_stop(&p);
}

#define LATER(after) "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nRetry-After: " after "\r\n\r\n"

/* Whatever an answer says of when to come again, it is a time that can be reckoned with. */
static void test_retry_after(void **state)
{
	static const struct {
		const char *answer;
		int64_t least, most;
	} told[] = {
		{ OK_ANSWER, 0, 0 },
		{ LATER("7"), 7, 7 },
		{ LATER("soon"), 0, 0 },
		{ LATER("-5"), 0, 0 },
		{ LATER("-9223372036854775808"), 0, 0 },
		{ LATER("9223372036854775807"), 1, MO_RETRY_AFTER_MAX_S },
		{ LATER("99999999999999999999999"), 0, MO_RETRY_AFTER_MAX_S },
		{ LATER("Fri, 31 Dec 1999 23:59:59 GMT"), 0, 0 },
		{ LATER("Fri, 31 Dec 9999 23:59:59 GMT"), 1, MO_RETRY_AFTER_MAX_S },
	};

	for (size_t i = 0; i < ELEMENTSOF(told); i++) {
		struct peer p;
		struct answer a = { 0 };

		peer_start(&p, told[i].answer, 0);
		assert_int_equal(mo_http_new(loop, &a.http, NULL), 0);
		_cleanup_(mo_freep) char *url = mo_printf("http://127.0.0.1:%d/", p.port);
		struct mo_http_call call = { .url = url, .path = "/", .timeout_ms = 20000 };
		assert_int_equal(mo_http_send(a.http, &call, on_answer, &a, NULL), 0);
		run_until(&a.done);
		assert_in_range((uint64_t)a.after_s, (uint64_t)told[i].least,
				(uint64_t)told[i].most);
		mo_http_free(a.http);
		peer_stop(&p);
	}
}

static void test_http_failures(void **state)
{
	struct peer silent, big;
	struct mo_http *h = NULL;
	struct answer refused = { 0 }, late = { 0 }, large = { 0 }, cancelled = { 0 };
	uint64_t id = 0;

	peer_start(&silent, NULL, 0);
	peer_start(&big, OK_ANSWER, 0);
	assert_int_equal(mo_http_new(loop, &h, NULL), 0);
	_cleanup_(mo_freep) char *silent_url = mo_printf("http://127.0.0.1:%d", silent.port),
				 *big_url = mo_printf("http://127.0.0.1:%d", big.port);
	assert_int_equal(mo_http_send(h,
				      &(struct mo_http_call){ .url = "unix:/nonexistent/sock",
							      .path = "/" },
				      on_answer, &refused, NULL),
			 0);
	assert_int_equal(mo_http_send(h,
				      &(struct mo_http_call){
					      .url = silent_url, .path = "/", .timeout_ms = 200 },
				      on_answer, &late, NULL),
			 0);
	assert_int_equal(mo_http_send(h,
				      &(struct mo_http_call){
					      .url = big_url, .path = "/", .max_body = 4 },
				      on_answer, &large, NULL),
			 0);
	assert_int_equal(mo_http_send(h, &(struct mo_http_call){ .url = silent_url, .path = "/c" },
				      on_answer, &cancelled, &id),
			 0);
	assert_int_equal(mo_http_send(h, &(struct mo_http_call){ .url = "ftp://x", .path = "/" },
				      on_answer, &cancelled, NULL),
			 -EINVAL);
	run_until(&refused.done);
	run_until(&late.done);
	run_until(&large.done);
	assert_int_equal(refused.status, 0);
	assert_int_equal(late.status, 0);
	assert_true(late.error[0]);
	assert_int_equal(large.status, 0);
	assert_string_equal(large.error, "the answer is larger than allowed");
	mo_http_cancel(h, id);
	mo_http_cancel(h, id);
	mo_http_free(h);
	assert_int_equal(cancelled.calls, 0);
	peer_stop(&silent);
	peer_stop(&big);
}

static void test_fetch_errors(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 }, err2 = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int status = 77;

	assert_int_equal(mo_http_fetch(&(struct mo_http_call){ .url = "unix:/nonexistent/sock",
							       .path = "/" },
				       NULL, NULL, &status, &body, &err),
			 -ECONNREFUSED);
	assert_int_equal(status, 77);
	assert_non_null(strstr(err.text, "unix:/nonexistent/sock: there is no such socket"));
	assert_null(strstr(err.text, "localhost"));
	assert_int_equal(mo_http_fetch(&(struct mo_http_call){ .url = "gopher:x", .path = "/" },
				       NULL, NULL, &status, &body, &err2),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_longest_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_beside_a_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turn_is_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turn_is_not_starved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_http_call, setup, teardown),
		cmocka_unit_test_setup_teardown(test_retry_after, setup, teardown),
		cmocka_unit_test_setup_teardown(test_http_failures, setup, teardown),
		cmocka_unit_test(test_fetch_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
