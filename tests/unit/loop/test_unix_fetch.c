/* Answers as they come, whole and byte by byte; and a request over a UNIX socket against a scripted
 * server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/base/fd.h"
#include "lib/loop/curl.h"
#include "lib/loop/http_answer.h"
#include "lib/loop/http_client.h"
#include "lib/loop/http_fetch.h"

#define HEAD "HTTP/1.1 200 OK\r\n"

static int keep(void *arg, const char *data, size_t n)
{
	mo_buf_add(arg, data, n);
	return 0;
}

/* Fed in pieces of that many bytes: the value of the last feed. */
static int feed(struct http_answer *a, const char *text, size_t piece, struct mo_buf *body)
{
	int r = 0;

	*a = (struct http_answer){ .head_only = a->head_only };
	for (size_t i = 0, n = strlen(text); i < n && r == 0; i += piece)
		r = http_answer_feed(a, text + i, MO_MIN(piece, n - i), keep, body);
	return r;
}

static void is_answer(const char *text, int status, const char *want, bool over)
{
	for (size_t piece = 1; piece < 64; piece += piece < 8 ? 1 : 19) {
		_cleanup_(http_answer_done) struct http_answer a = { 0 };
		_cleanup_(mo_buf_done) struct mo_buf body = { 0 };

		assert_int_equal(feed(&a, text, piece, &body), 0);
		assert_int_equal(a.status, status);
		assert_string_equal(body.data ? body.data : "", want);
		assert_int_equal(a.part == ANSWER_OVER, over);
		assert_int_equal(http_answer_whole(&a), over || a.part == ANSWER_UNTIL_CLOSE);
	}
}

static void good_answers(void **state)
{
	is_answer(HEAD "Content-Length: 5\r\n\r\nhello", 200, "hello", true);
	is_answer(HEAD "content-length:5\n\nhello and more", 200, "hello", true);
	is_answer(HEAD "Content-Length: 0\r\n\r\n", 200, "", true);
	is_answer(HEAD "\r\nup to the end", 200, "up to the end", false);
	is_answer(HEAD "Content-Length: 9\r\n\r\nhello", 200, "hello", false);
	is_answer("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true);
	is_answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: "
		  "2\r\n\r\nno",
		  404, "no", true);
	is_answer(HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;name=value\r\n "
		       "\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
		  200, "hello 0123456789", true);
	is_answer(HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
		  200, "x", true);
	is_answer(HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", 200, "hel", false);
}

static void bad_answers(void **state)
{
	static const char *const bad[] = {
		"SSH-2.0-OpenSSH\r\n\r\n",
		"HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1\r\n\r\n",
		HEAD "Content-Length: -1\r\n\r\n",
		HEAD "Content-Length: 99999999999999999999\r\n\r\n",
		HEAD "Transfer-Encoding: gzip\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
		HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		for (size_t piece = 1; piece < 200; piece += 66) {
			_cleanup_(http_answer_done) struct http_answer a = { 0 };
			_cleanup_(mo_buf_done) struct mo_buf body = { 0 };

			assert_int_equal(feed(&a, bad[i], piece, &body), -EPROTO);
		}
	_cleanup_(http_answer_done) struct http_answer endless = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int r = http_answer_feed(&endless, HEAD, strlen(HEAD), keep, &body);
	for (size_t i = 0; i <= HTTP_HEAD_MAX && r == 0; i++)
		r = http_answer_feed(&endless, "x", 1, keep, &body);
	assert_int_equal(r, -EPROTO);
}

/* A server in a child: takes one connection, reads `wanted` bytes, answers, and closes (or keeps it
 * open and says nothing more until it is killed). */
struct server {
	char dir[64];
	char *url;
	pid_t pid;
};

static void serve(struct server *s, const char *answer, size_t wanted, bool close_it)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strncpy(s->dir, "/tmp/moe-fetch-XXXXXX", sizeof(s->dir));
	assert_non_null(mkdtemp(s->dir));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", s->dir);
	s->url = mo_printf("unix:%s/s", s->dir);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 4), 0);
	s->pid = fork();
	if (s->pid == 0) {
		char data[4096];
		int c = accept(fd, NULL, NULL);
		for (size_t n = 0; n < wanted;) {
			ssize_t k = read(c, data, sizeof(data));
			if (k <= 0)
				break;
			n += (size_t)k;
		}
		mo_write_all(c, answer, strlen(answer));
		if (close_it)
			close(c);
		pause();
		_exit(0);
	}
	close(fd);
}

static void serve_end(struct server *s)
{
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	mo_rm_rf(s->dir);
	free(s->url);
}

static int fetch(const struct server *s, struct mo_http_call call, int *status, struct mo_buf *body,
		 struct mo_error *err)
{
	call.url = s->url;
	call.path = call.path ? call.path : "/x";
	return mo_http_fetch(&call, NULL, NULL, status, body, err);
}

static void requests(void **state)
{
	static const struct {
		const char *answer;
		bool close_it;
		int want;
		const char *body;
	} rows[] = {
		{ HEAD "Content-Length: 5\r\n\r\nhello", false, 0, "hello" },
		{ HEAD "\r\nhello", true, 0, "hello" },
		{ HEAD "Content-Length: 9\r\n\r\nhello", true, -ECONNRESET, NULL },
		{ "", true, -ECONNRESET, NULL },
		{ HEAD "Content-Length: 9\r\n\r\nhello", false, -ETIMEDOUT, NULL },
		{ "220 mail.example ESMTP\r\n\r\n", true, -EPROTO, NULL },
		{ HEAD
		  "Content-Length: "
		  "65\r\n\r\n12345678901234567890123456789012345678901234567890123456789012345",
		  true, -EFBIG, NULL },
	};

	for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
		struct server s;
		_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
		_cleanup_(mo_error_done) struct mo_error err = { 0 };
		int status = 77;

		serve(&s, rows[i].answer, 1, rows[i].close_it);
		assert_int_equal(fetch(&s,
				       (struct mo_http_call){
					       .timeout_ms =
						       rows[i].want == -ETIMEDOUT ? 300 : 20000,
					       .max_body = 64 },
				       &status, &body, &err),
				 rows[i].want);
		assert_int_equal(status, rows[i].want ? 77 : 200);
		if (rows[i].body)
			assert_string_equal(body.data, rows[i].body);
		else
			assert_true(strstr(err.text, s.url) != NULL &&
				    strlen(err.text) > strlen(s.url) + 5);
		serve_end(&s);
	}
	assert_null(curl); /* none of this needed libcurl */
}

/* 413 before the body was read: the answer counts, not the broken pipe. */
static void early_answer(void **state)
{
	struct server s;
	_cleanup_(mo_freep) char *big = mo_alloc(8 << 20);
	int status = 0;

	memset(big, 'x', 8 << 20);
	serve(&s, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno", 1, false);
	assert_int_equal(fetch(&s,
			       (struct mo_http_call){ .method = "POST",
						      .body = big,
						      .body_len = 8 << 20,
						      .timeout_ms = 20000 },
			       &status, NULL, NULL),
			 0);
	assert_int_equal(status, 413);
	serve_end(&s);
}

static int first_piece(void *arg, const char *data, size_t n)
{
	mo_buf_add(arg, data, n);
	return 1;
}

static void streams_and_line_breaks(void **state)
{
	struct server s;
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int status = 0;

	serve(&s, HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n", 1, false);
	struct mo_http_call call = { .url = s.url, .path = "/follow", .timeout_ms = 20000 };
	assert_int_equal(mo_http_fetch(&call, first_piece, &got, &status, NULL, NULL), 0);
	assert_string_equal(got.data, "event");
	assert_int_equal(status, 200);
	call.token = "secret\r\nX-Role: admin";
	assert_int_equal(mo_http_fetch(&call, NULL, NULL, &status, NULL, &err), -EINVAL);
	serve_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_answers),
		cmocka_unit_test(bad_answers),
		cmocka_unit_test(requests),
		cmocka_unit_test(early_answer),
		cmocka_unit_test(streams_and_line_breaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
