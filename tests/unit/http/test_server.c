/* The server's checks and its held answers and streams, driven through real sockets on one loop. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/http/server.h"
#include "lib/loop/loop.h"

#define PATIENCE_US 20000000

static sd_event *loop;
static struct http_server *server;
static char dir[64];
static uint64_t held_id;
static int gone_calls;
static int wrong_calls;
static int64_t wrong_n;
static char wrong_source[64];
static char seen_user[64], seen_body[64], seen_param[64], seen_query[64];
static enum role seen_role;

static void on_echo(void *arg, struct http_request *r)
{
	size_t n;

	snprintf(seen_user, sizeof(seen_user), "%s", http_caller(r)->user);
	snprintf(seen_body, sizeof(seen_body), "%s", http_body(r, &n));
	snprintf(seen_param, sizeof(seen_param), "%s", http_param(r, "id") ? http_param(r, "id") : "-");
	snprintf(seen_query, sizeof(seen_query), "%s", http_query(r, "q") ? http_query(r, "q") : "-");
	seen_role = http_caller(r)->role;
	assert_null(http_param(r, "other"));
	http_reply(r, 200, "text/plain", "echo", 4, (const char *const[]){ "X-Extra: yes", NULL });
}

static void on_gone(void *arg, uint64_t id)
{
	assert_int_equal(id, held_id);
	gone_calls++;
}

static void on_hold(void *arg, struct http_request *r)
{
	held_id = http_id(r);
	http_on_gone(r, on_gone, NULL);
}

static void on_stream(void *arg, struct http_request *r)
{
	held_id = http_id(r);
	http_on_gone(r, on_gone, NULL);
	http_stream_start(r, "text/event-stream");
}

static const struct http_route routes[] = {
	{ "GET", "/open", ROLE_NONE, on_echo, 0, false },
	{ "GET", "/", ROLE_NONE, on_echo, 0, false },
	{ "GET", "/v1/things", ROLE_VIEWER, on_echo, 0, false },
	{ "POST", "/v1/things", ROLE_USER, on_echo, 100, true },
	{ "POST", "/v1/things/{id}/stop", ROLE_OPERATOR, on_echo, 100, false },
	{ "DELETE", "/v1/things/{id}", ROLE_ADMIN, on_echo, 0, false },
	{ "POST", "/v1/agent/sync", ROLE_AGENT, on_hold, 100000, false },
	{ "GET", "/v1/hold", ROLE_VIEWER, on_hold, 0, false },
	{ "GET", "/v1/stream", ROLE_VIEWER, on_stream, 0, false },
};

#define NAME_63 "a23456789012345678901234567890123456789012345678901234567890123"
static const char *peer_name = "peer", *bearer_name = "bearer";

/* The secret is the role's name. */
static bool authenticate(void *arg, const char *secret, bool by_cookie, struct http_caller *ret)
{
	if (by_cookie != (strncmp(secret, "s-", 2) == 0))
		return false;
	secret += by_cookie ? 2 : 0;
	for (int i = ROLE_VIEWER; i < _ROLE_N; i++)
		if (strcmp(secret, role_names[i]) == 0) {
			*ret = (struct http_caller){ .role = (enum role)i, .user = bearer_name, .token_id = "t1" };
			return true;
		}
	return false;
}

static bool token_alive;
static bool alive(void *arg, const char *token_id)
{
	return token_alive || strcmp(token_id, "t1") != 0;
}

static void peer(void *arg, uid_t uid, struct http_caller *ret)
{
	*ret = (struct http_caller){ .role = uid == getuid() ? ROLE_ADMIN : ROLE_NONE, .user = peer_name };
}

static void on_wrong(void *arg, const char *source, int64_t n)
{
	wrong_calls++;
	wrong_n = n;
	snprintf(wrong_source, sizeof(wrong_source), "%s", source);
}

static int setup_idle(int64_t idle_s)
{
	_cleanup_(mo_error_done) struct mo_error err = {0};
	static char path[80];

	gone_calls = wrong_calls = 0;
	token_alive = true;
	snprintf(dir, sizeof(dir), "/tmp/http-test-XXXXXX");
	if (!mkdtemp(dir) || sd_event_new(&loop) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/sock", dir);
	struct http_server_config config = { .routes = routes, .n_routes = ELEMENTSOF(routes), .authenticate = authenticate, .alive = alive, .peer = peer, .unix_path = path, .tcp_address = "127.0.0.1",
					     .idle_timeout_s = idle_s, .max_connections = 64, .on_wrong = on_wrong };
	int r = http_server_new(loop, &config, &server, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	return r;
}
static int setup(void **state) { return setup_idle(30); }
static int setup_impatient(void **state) { return setup_idle(1); }

static int teardown(void **state)
{
	server = http_server_free(server);
	loop = sd_event_unref(loop);
	return mo_rm_rf(dir);
}

/* from: the last number of 127.0.0.N, where the client calls from. */
static int dial_from(int from)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)http_server_port(server)) };
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u | (unsigned)from) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	int r = connect(fd, (struct sockaddr *)&to, sizeof(to));
	assert_true(r == 0 || errno == EINPROGRESS);
	return fd;
}

static int dial(bool local)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)http_server_port(server)) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/sock", dir);
	int r = local ? connect(fd, (struct sockaddr *)&un, sizeof(un)) : connect(fd, (struct sockaddr *)&in, sizeof(in));
	assert_true(r == 0 || errno == EINPROGRESS);
	return fd;
}

/* Runs the loop once and reads what came; true at the end of the connection. */
static bool receive(int fd, struct mo_buf *b)
{
	char data[65536];

	assert_true(sd_event_run(loop, 20000) >= 0);
	ssize_t n = read(fd, data, sizeof(data));
	if (n > 0)
		mo_buf_add(b, data, (size_t)n);
	return n == 0 || (n < 0 && errno != EAGAIN);
}

static void wait_for(int fd, struct mo_buf *b, const char *words)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (!b->data || !strstr(b->data, words)) {
		assert_true(mo_clock_boot_us() < end);
		assert_false(receive(fd, b) && (!b->data || !strstr(b->data, words)));
	}
}

static void wait_closed(int fd, struct mo_buf *b)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (!receive(fd, b))
		assert_true(mo_clock_boot_us() < end);
}

static void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* Sends head (lines without the last empty one) and body; returns the status. */
static int ask(bool local, const char *head, const char *body)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(local);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	int status = 0;

	for (int i = 0; i < 3; i++)
		sd_event_run(loop, 1000);
	_cleanup_(mo_freep) char *text = body ? mo_printf("%s\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body) : mo_printf("%s\r\n\r\n", head);
	put(fd, text);
	while (!got.data || !strstr(got.data, "\r\n\r\n")) {
		assert_true(mo_clock_boot_us() < end);
		if (receive(fd, &got))
			break;
	}
	assert_non_null(got.data);
	assert_int_equal(sscanf(got.data, "HTTP/1.1 %d", &status), 1);
	return status;
}

#define TCP "\r\nHost: 127.0.0.1"
#define AS(role) TCP "\r\nAuthorization: Bearer " role
#define JSON "\r\nContent-Type: application/json"

static void test_credentials_and_roles(void **state)
{
	assert_int_equal(ask(false, "GET /open HTTP/1.1" TCP, NULL), 200);
	assert_int_equal(ask(false, "GET / HTTP/1.1" TCP, NULL), 200);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" TCP, NULL), 401);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("wrong"), NULL), 401);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("none"), NULL), 401);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" TCP "\r\nAuthorization: Basic dmlld2Vy", NULL), 401);
	assert_int_equal(ask(false, "GET /v1/nothing HTTP/1.1" TCP, NULL), 401);
	assert_int_equal(ask(false, "GET /v1/nothing HTTP/1.1" AS("viewer"), NULL), 404);
	assert_int_equal(ask(false, "GET /v1/things/ HTTP/1.1" AS("viewer"), NULL), 404);
	assert_int_equal(ask(false, "GET /v1/a/b/c/d/e/f/g/h/i/j HTTP/1.1" AS("viewer"), NULL), 404);
	assert_int_equal(ask(false, "GET /v1/things?q=7 HTTP/1.1" AS("viewer"), NULL), 200);
	assert_string_equal(seen_query, "7");
	assert_string_equal(seen_user, "bearer");
	assert_int_equal(ask(false, "DELETE /v1/things HTTP/1.1" AS("admin"), NULL), 405);
	assert_int_equal(ask(false, "DELETE /v1/things HTTP/1.1" TCP, NULL), 401);
	assert_int_equal(ask(false, "POST /open HTTP/1.1" TCP, NULL), 405);
	assert_int_equal(ask(false, "POST /v1/things/9/stop HTTP/1.1" AS("user"), NULL), 403);
	assert_int_equal(ask(false, "POST /v1/things/9/stop HTTP/1.1" AS("operator"), NULL), 200);
	assert_string_equal(seen_param, "9");
	assert_int_equal(ask(false, "DELETE /v1/things/x HTTP/1.1" AS("operator"), NULL), 403);
	assert_int_equal(ask(false, "DELETE /v1/things/x HTTP/1.1" AS("admin"), NULL), 200);
	/* agents and people never share a route */
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("agent"), NULL), 403);
	assert_int_equal(ask(false, "POST /v1/agent/sync HTTP/1.1" AS("admin") JSON, "{}"), 403);
}

static void test_unix_peer(void **state)
{
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 200);
	assert_string_equal(seen_user, "peer");
	assert_int_equal(seen_role, ROLE_ADMIN);
	/* a token given there decides alone */
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer", NULL), 200);
	assert_int_equal(seen_role, ROLE_VIEWER);
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong", NULL), 401);
}

/* A name that is too long is nobody's: the first bytes of it may be another user. */
static void test_long_names(void **state)
{
	static const char with_token[] = "GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer";

	peer_name = bearer_name = NAME_63;
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 200);
	assert_string_equal(seen_user, NAME_63);
	assert_int_equal(ask(true, with_token, NULL), 200);
	assert_string_equal(seen_user, NAME_63);
	peer_name = bearer_name = NAME_63 "x";
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 401);
	assert_int_equal(ask(true, with_token, NULL), 401);
	peer_name = "peer";
	bearer_name = "bearer";
}

static void test_browser_guards(void **state)
{
	assert_int_equal(ask(false, "GET /open HTTP/1.1\r\nHost: evil.example", NULL), 421);
	assert_int_equal(ask(false, "GET /open HTTP/1.1\r\nHost: localhost:7070", NULL), 200);
	assert_int_equal(ask(false, "GET /open HTTP/1.1\r\nHost: [::1]:7070", NULL), 200);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-viewer", NULL), 200);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-user" JSON, "{}"), 403);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-user\r\nX-Moe: 1" JSON, "{}"), 200);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") "\r\nOrigin: http://evil.example" JSON, "{}"), 403);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") "\r\nOrigin: http://127.0.0.1" JSON, "{}"), 200);
}

static void test_bodies(void **state)
{
	_cleanup_(mo_freep) char *big = mo_alloc(102);

	memset(big, 'a', 101);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") JSON, "{\"a\":1}"), 200);
	assert_string_equal(seen_body, "{\"a\":1}");
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") "\r\nContent-Type: application/yaml; charset=utf-8", "a: 1"), 200);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") "\r\nContent-Type: text/plain", "a"), 415);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user"), "a"), 415);
	assert_int_equal(ask(false, "POST /v1/things/1/stop HTTP/1.1" AS("operator") "\r\nContent-Type: application/yaml", "a"), 415);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") JSON, big), 413);
	assert_int_equal(ask(false, "POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 99999999999", NULL), 413);
	/* chunked: counted, dropped and refused */
	seen_body[0] = 0;
	_cleanup_(mo_freep) char *chunked = mo_printf("POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n%s\r\n0", big);
	assert_int_equal(ask(false, chunked, NULL), 413);
	assert_string_equal(seen_body, "");
	_cleanup_(mo_freep) char *small = mo_printf("POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0");
	assert_int_equal(ask(false, small, NULL), 200);
	assert_string_equal(seen_body, "abcde");
}

/* A session is no bearer token, and a token is no session. */
static void test_credentials_stay_apart(void **state)
{
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("s-viewer"), NULL), 401);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=viewer", NULL), 401);
}

/* What could mean two things is refused, and the connection is closed: what follows is no request. */
static void test_strict_heads(void **state)
{
	static const char *const bad[] = {
		"GET /v1/things%00.svg HTTP/1.1" AS("viewer"),
		"GET /v1/things?q=%00 HTTP/1.1" AS("viewer"),
		"GET /v1/things%zz HTTP/1.1" AS("viewer"),
		"GET /v1/things/%ff HTTP/1.1" AS("viewer"),
		"GET /v1/things/\xff HTTP/1.1" AS("viewer"),
		"GET /v1/things?q=a%0d%0aX:1 HTTP/1.1" AS("viewer"),
		"GET /v1/things?q=1% HTTP/1.1" AS("viewer"),
		"GET /v1/things\1 HTTP/1.1" AS("viewer"),
		"GET /v1/things\1HTTP/1.1 HTTP/1.1" AS("viewer"),
		"GET /v1/things HTTP/1.1" AS("viewer") TCP,
		"GET /v1/things HTTP/1.1" AS("viewer") "\r\nAuthorization: Bearer admin",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 2\r\nContent-Length: 2",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 2\r\nContent-Length: 30",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: chunked\r\nContent-Length: 2",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: gzip, chunked",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length : 2",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 2\r\n folded",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nX: 1\r\n\tfolded\r\nContent-Length: 2",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: +2",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 99999999999999999999",
		"POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 0x2",
		"GET /v1/things HTTP/1.1\r\nAuthorization: Bearer viewer",
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		_cleanup_(mo_buf_done) struct mo_buf got = {0};
		_cleanup_(mo_closep) int fd = dial(false);
		_cleanup_(mo_freep) char *text = mo_printf("%s\r\n\r\nGET /open HTTP/1.1" TCP "\r\n\r\n", bad[i]);
		size_t n = strlen(text);
		for (char *p = text; *p; p++)
			*p = *p == 1 ? 0 : *p;           /* \1 stands for a NUL */
		assert_int_equal(write(fd, text, n), (ssize_t)n);
		int64_t end = mo_clock_boot_us() + PATIENCE_US;
		while (!receive(fd, &got))
			if (mo_clock_boot_us() > end)
				fail_msg("%s: not closed: %s", bad[i], got.data ? got.data : "no answer");
		int status = 0;
		if (!got.data || sscanf(got.data, "HTTP/1.1 %d", &status) != 1 || status / 100 != 4 || strstr(got.data, " 200 "))
			fail_msg("%s: %s", bad[i], got.data ? got.data : "no answer");
	}
	/* what is plain stays so */
	assert_int_equal(ask(false, "GET /v1/things?q=%e2%82%ac+%25 HTTP/1.1" AS("viewer"), NULL), 200);
	assert_string_equal(seen_query, "\u20ac %");
	assert_int_equal(ask(false, "POST /v1/things/a%2Fb/stop HTTP/1.1" AS("operator"), NULL), 404);
}

/* A body without a length that does not end: 413 as soon as it is too long, and the end soon after. */
static void test_endless_body(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	static char block[4096 + 10] = "1000\r\n";
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	size_t sent = 0;

	seen_body[0] = 0;
	memset(block + 6, 'a', 4096);
	memcpy(block + 6 + 4096, "\r\n", 2);
	put(fd, "POST /v1/things HTTP/1.1" AS("user") JSON "\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (bool closed = false; !closed && sent < 100u << 20;) {
		assert_true(mo_clock_boot_us() < end);
		ssize_t n = send(fd, block + sent % (6 + 4096 + 2), 6 + 4096 + 2 - sent % (6 + 4096 + 2), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		closed = receive(fd, &got) || (n < 0 && errno != EAGAIN);
	}
	assert_non_null(got.data);
	assert_non_null(strstr(got.data, "HTTP/1.1 413 "));
	assert_non_null(strstr(got.data, "larger than the 100 bytes"));
	assert_in_range(sent, 0, 20u << 20);
	assert_string_equal(seen_body, "");
}

/* What is held or streamed for a token ends with it; what is of others stays. */
static void test_end_of_a_token(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf held = {0}, stream = {0}, local = {0}, late = {0};
	_cleanup_(mo_closep) int held_fd = dial(false), stream_fd = dial(false), local_fd = dial(true), late_fd = dial(false);

	put(late_fd, "POST /v1/things HTTP/1.1" AS("user") JSON "\r\nContent-Length: 2\r\n\r\n{");
	put(local_fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(local_fd, &local, "\r\n\r\n");
	uint64_t local_id = held_id;
	put(stream_fd, "GET /v1/stream HTTP/1.1" AS("viewer") "\r\n\r\n");
	wait_for(stream_fd, &stream, "\r\n\r\n");
	http_stream_write(http_find(server, held_id), "never", 5);
	token_alive = false;
	http_server_check_tokens(server);
	assert_int_equal(gone_calls, 1);
	wait_for(stream_fd, &stream, "\r\n0\r\n\r\n");
	assert_null(strstr(stream.data, "never"));
	seen_body[0] = 0;
	put(late_fd, "}");
	wait_for(late_fd, &late, "401");
	assert_string_equal(seen_body, "");
	token_alive = true;
	held_id = 0;
	put(held_fd, "GET /v1/hold HTTP/1.1" AS("viewer") "\r\n\r\n");
	while (!held_id)
		receive(held_fd, &held);
	token_alive = false;
	http_server_check_tokens(server);
	assert_int_equal(gone_calls, 2);
	wait_for(held_fd, &held, "401");
	held_id = local_id;
	assert_int_equal(http_stream_write(http_find(server, local_id), "still", 5), 0);
	wait_for(local_fd, &local, "still");
}

static void test_keep_alive_and_headers(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(false);
	struct http_stats stats;

	put(fd, "GET /v1/things HTTP/1.1" AS("viewer") "\r\n\r\n");
	wait_for(fd, &got, "echo");
	assert_non_null(strstr(got.data, "X-Extra: yes"));
	assert_non_null(strstr(got.data, "nosniff"));
	assert_non_null(strstr(got.data, "no-store"));
	mo_buf_reset(&got);
	put(fd, "GET /v1/nothing HTTP/1.1" AS("viewer") "\r\n\r\n");
	wait_for(fd, &got, "404");
	mo_buf_reset(&got);
	put(fd, "DELETE /v1/things HTTP/1.1" AS("viewer") "\r\n\r\n");
	wait_for(fd, &got, "Allow: GET, POST");
	http_server_stats(server, &stats);
	assert_int_equal(stats.requests, 3);
	assert_int_equal(stats.by_class[2], 1);
	assert_int_equal(stats.by_class[4], 2);
	assert_int_equal(stats.connections, 1);
}

static void test_held(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	held_id = 0;
	put(fd, "GET /v1/hold HTTP/1.1" AS("viewer") "\r\n\r\n");
	while (!held_id) {
		assert_true(mo_clock_boot_us() < end);
		receive(fd, &got);
	}
	sd_event_run(loop, 1000);
	assert_int_equal(got.len, 0);
	struct http_request *r = http_find(server, held_id);
	assert_non_null(r);
	assert_null(http_find(server, held_id + 1));
	http_reply(r, 201, "text/plain", "late", 4, NULL);
	http_reply(r, 500, "text/plain", "twice", 5, NULL);
	wait_for(fd, &got, "late");
	assert_non_null(strstr(got.data, "201"));
	assert_int_equal(gone_calls, 0);
	assert_null(http_find(server, held_id));
}

static void test_stream(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(true);
	struct http_stats stats;

	put(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(fd, &got, "\r\n\r\n");
	struct http_request *r = http_find(server, held_id);
	assert_int_equal(http_stream_write(r, "data: one\n\n", 11), 0);
	wait_for(fd, &got, "data: one\n\n");
	assert_int_equal(http_stream_write(r, "data: two\n\n", 11), 0);
	wait_for(fd, &got, "data: two\n\n");
	http_server_stats(server, &stats);
	assert_int_equal(stats.streams, 1);
	http_stream_end(r);
	assert_int_equal(http_stream_write(r, "x", 1), -EPIPE);
	wait_for(fd, &got, "\r\n0\r\n\r\n");
	assert_int_equal(gone_calls, 0);
}

/* A client that leaves, and one that does not read: both end, and the owner is told. */
static void test_stream_lost(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0}, got2 = {0};
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	static char block[65536];
	int fd = dial(true), r = 0;

	put(fd, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(fd, &got, "\r\n\r\n");
	mo_close(fd);
	while (!gone_calls) {
		struct http_request *q = http_find(server, held_id);
		assert_true(mo_clock_boot_us() < end);
		if (q)
			http_stream_write(q, ": beat\n\n", 8);
		sd_event_run(loop, 10000);
	}
	assert_int_equal(gone_calls, 1);
	_cleanup_(mo_closep) int deaf = dial(true);
	put(deaf, "GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n");
	wait_for(deaf, &got2, "\r\n\r\n");
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 1000 && r == 0; i++) {
		r = http_stream_write(http_find(server, held_id), block, sizeof(block));
		sd_event_run(loop, 0);
	}
	assert_int_equal(r, -ENOBUFS);
	wait_closed(deaf, &got2);
	assert_null(http_find(server, held_id));
}

/* One byte now and then is not life: the head must be there in time. */
static void test_slow_client(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	put(fd, "GET /open HT");
	while (!receive(fd, &got)) {
		assert_true(mo_clock_boot_us() < end);
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
	}
	assert_true(got.len == 0 || !strstr(got.data, "200"));
}

#define CROWD 300

/* One request on an open connection; its status. */
static int say(int fd, const char *head)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_freep) char *text = mo_printf("%s\r\n\r\n", head);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	int status = 0;

	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return 0;
	while (!got.data || !strstr(got.data, "\r\n\r\n")) {
		assert_true(mo_clock_boot_us() < end);
		if (receive(fd, &got))
			break;
	}
	return got.data && sscanf(got.data, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

static int64_t connections(void)
{
	struct http_stats stats;

	http_server_stats(server, &stats);
	return stats.connections;
}

/* Hundreds who say nothing, from one address and from many, keep nobody out, and send nobody away who has shown who he is. */
static void test_idle_crowd(void **state)
{
	int crowd[CROWD], agents[40];
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	for (size_t i = 0; i < ELEMENTSOF(agents); i++) {
		agents[i] = dial(false);
		assert_int_equal(say(agents[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	}
	for (size_t i = 0; i < CROWD; i++) {
		crowd[i] = dial_from(i < CROWD / 2 ? 1 : 2 + (int)i % 100);
		sd_event_run(loop, 1000);
		if (i % 50 == 49) {
			assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("viewer"), NULL), 200);
			assert_int_equal(ask(false, "GET /open HTTP/1.1" TCP, NULL), 200);
			assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 200);
		}
	}
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		assert_int_equal(say(agents[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	while (connections() > 64) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(loop, 10000);
	}
	for (size_t i = 0; i < CROWD; i++)
		mo_close(crowd[i]);
	for (size_t i = 0; i < ELEMENTSOF(agents); i++)
		mo_close(agents[i]);
}

/* Of one address few strangers stay, though there is room; as many as there is room for who have shown who they are. */
static void test_strangers_of_one_address(void **state)
{
	int all[32], kept[8];
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
		kept[i] = dial_from(1);
		assert_int_equal(say(kept[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	}
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		all[i] = dial_from(1);
	_cleanup_(mo_closep) int other = dial_from(2);
	while (connections() < (int64_t)(ELEMENTSOF(kept) + ELEMENTSOF(all) + 1)) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(loop, 10000);
	}
	while (connections() > (int64_t)(ELEMENTSOF(kept) + 8 + 1)) {
		assert_true(mo_clock_boot_us() < end);
		sd_event_run(loop, 10000);
	}
	for (int i = 0; i < 20; i++)
		sd_event_run(loop, 10000);
	assert_int_equal(connections(), ELEMENTSOF(kept) + 8 + 1);
	for (size_t i = 0; i < ELEMENTSOF(kept); i++)
		assert_int_equal(say(kept[i], "GET /v1/things HTTP/1.1" AS("viewer")), 200);
	assert_int_equal(say(other, "GET /open HTTP/1.1" TCP), 200);
	/* the newest are those that stayed */
	assert_int_equal(say(all[ELEMENTSOF(all) - 1], "GET /open HTTP/1.1" TCP), 200);
	assert_int_equal(say(all[0], "GET /open HTTP/1.1" TCP), 0);
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		mo_close(all[i]);
	for (size_t i = 0; i < ELEMENTSOF(kept); i++)
		mo_close(kept[i]);
}

/* Of wrong credentials an address has few tries; right ones pass beside them, other addresses have their own, and somebody is told once. */
static void test_wrong_credentials(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	int seen_401 = 0, seen_429 = 0;

	for (int i = 0; i < 200 && seen_429 < 3; i++) {
		int status = ask(false, i % 2 ? "GET /v1/things HTTP/1.1" AS("guess") : "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-guess", NULL);
		seen_401 += status == 401;
		seen_429 += status == 429;
		assert_true(status == 401 || status == 429);
		assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" AS("viewer"), NULL), 200);
	}
	assert_int_equal(seen_429, 3);
	assert_in_range(seen_401, 10, 150);
	assert_int_equal(ask(false, "GET /v1/things HTTP/1.1" TCP, NULL), 401);
	_cleanup_(mo_closep) int other = dial_from(2);
	assert_int_equal(say(other, "GET /v1/things HTTP/1.1" AS("guess")), 401);
	assert_int_equal(wrong_calls, 2);
	assert_string_equal(wrong_source, "127.0.0.2");
	assert_int_equal(wrong_n, 1);
	/* it is said when to come again, and the connection is closed */
	while (!got.data || !strstr(got.data, " 429 ")) {
		_cleanup_(mo_closep) int fd = dial(false);
		mo_buf_reset(&got);
		put(fd, "GET /v1/things HTTP/1.1" AS("guess") "\r\n\r\n");
		wait_for(fd, &got, "\r\n\r\n");
		if (strstr(got.data, " 429 "))
			wait_closed(fd, &got);
	}
	assert_non_null(strstr(got.data, "Retry-After: "));
}

/* The held request of a leaving server is answered, not dropped. */
static void test_stop_answers(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = {0};
	_cleanup_(mo_closep) int fd = dial(true);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	held_id = 0;
	put(fd, "GET /v1/hold HTTP/1.1\r\nHost: x\r\n\r\n");
	while (!held_id) {
		assert_true(mo_clock_boot_us() < end);
		receive(fd, &got);
	}
	server = http_server_free(server);
	wait_closed(fd, &got);
	assert_non_null(strstr(got.data, "503"));
}

static void test_busy_addresses(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = {0}, err2 = {0}, err3 = {0};
	_cleanup_(mo_freep) char *path = mo_path(dir, "sock"), *stale = mo_path(dir, "stale");
	struct http_server *second = NULL;
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	struct http_server_config config = { .routes = routes, .n_routes = 1, .tcp_address = "127.0.0.1", .tcp_port = http_server_port(server), .idle_timeout_s = 1, .max_connections = 10 };
	assert_int_equal(http_server_new(loop, &config, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "is in use"));
	config.tcp_port = -1;
	config.unix_path = path;
	assert_int_equal(http_server_new(loop, &config, &second, &err2), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	config.tcp_port = 0;
	config.unix_path = NULL;
	config.tcp_address = "example.org";
	assert_int_equal(http_server_new(loop, &config, &second, &err3), -EINVAL);
	/* a socket file left by a killed server is replaced */
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", stale);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	mo_close(fd);
	config.tcp_port = -1;
	config.unix_path = stale;
	assert_int_equal(http_server_new(loop, &config, &second, NULL), 0);
	http_server_free(second);
	assert_int_equal(access(stale, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_credentials_and_roles, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unix_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_browser_guards, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bodies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_credentials_stay_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strict_heads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_endless_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_of_a_token, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keep_alive_and_headers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stream_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_client, setup_impatient, teardown),
		cmocka_unit_test_setup_teardown(test_idle_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_strangers_of_one_address, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrong_credentials, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_busy_addresses, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
