/* What the server checks of a request before anybody answers it, driven through real sockets on one
 * loop. */
#include "tests/unit/http/bed.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"

static void test_credentials_and_roles(void **state)
{
	expect(200, "GET /open HTTP/1.1" TCP, NULL);
	expect(200, "GET / HTTP/1.1" TCP, NULL);
	expect(401, "GET /v1/things HTTP/1.1" TCP, NULL);
	expect(401, "GET /v1/things HTTP/1.1" AS("wrong"), NULL);
	expect(401, "GET /v1/things HTTP/1.1" AS("none"), NULL);
	expect(401, "GET /v1/things HTTP/1.1" TCP "\r\nAuthorization: Basic dmlld2Vy", NULL);
	expect(401, "GET /v1/nothing HTTP/1.1" TCP, NULL);
	expect(404, "GET /v1/nothing HTTP/1.1" AS("viewer"), NULL);
	expect(404, "GET /v1/things/ HTTP/1.1" AS("viewer"), NULL);
	expect(404, "GET /v1/a/b/c/d/e/f/g/h/i/j HTTP/1.1" AS("viewer"), NULL);
	expect(200, "GET /v1/things?q=7 HTTP/1.1" AS("viewer"), NULL);
	assert_string_equal(bed.seen_query, "7");
	assert_string_equal(bed.seen_user, "bearer");
	expect(405, "DELETE /v1/things HTTP/1.1" AS("admin"), NULL);
	expect(401, "DELETE /v1/things HTTP/1.1" TCP, NULL);
	expect(405, "POST /open HTTP/1.1" TCP, NULL);
	expect(403, "POST /v1/things/9/stop HTTP/1.1" AS("user"), NULL);
	expect(200, "POST /v1/things/9/stop HTTP/1.1" AS("operator"), NULL);
	assert_string_equal(bed.seen_param, "9");
	expect(403, "DELETE /v1/things/x HTTP/1.1" AS("operator"), NULL);
	expect(200, "DELETE /v1/things/x HTTP/1.1" AS("admin"), NULL);
	/* agents and people never share a route */
	expect(403, "GET /v1/things HTTP/1.1" AS("agent"), NULL);
	expect(403, "POST /v1/agent/sync HTTP/1.1" AS("admin") JSON, "{}");
}

/* A name that the route does not list is no question of it: said before a handler runs. */
static void test_query_names(void **state)
{
	static const struct {
		const char *head, *said;
	} cases[] = {
		{ "GET /v1/things?limt=7 HTTP/1.1" AS("viewer"),
		  "?limt: GET /v1/things takes no such value in its query string; did you mean "
		  "limit?" },
		{ "GET /v1/things?q=7&wanted HTTP/1.1" AS("viewer"),
		  "string; it takes q, limit\"" },
		{ "GET /v1/things?Last-Event-ID=7 HTTP/1.1" AS("viewer"),
		  "string; it takes q, limit\"" },
		{ "GET /open?q=7 HTTP/1.1" TCP, "string, nor any other\"" },
		{ "HEAD /v1/things?limt=7 HTTP/1.1" AS("viewer"), "400 Bad Request" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
		_cleanup_(mo_closep) int fd = dial(false);
		_cleanup_(mo_freep) char *head = mo_printf("%s\r\n\r\n", cases[i].head);

		snprintf(bed.seen_query, sizeof(bed.seen_query), "unasked");
		put(fd, head);
		wait_for(fd, &got, cases[i].said);
		assert_non_null(strstr(got.data, "HTTP/1.1 400 "));
		assert_string_equal(bed.seen_query, "unasked");
	}
	expect(200, "GET /v1/things?q=7&limit=x HTTP/1.1" AS("viewer"), NULL);
	assert_string_equal(bed.seen_query, "7");
}

static void test_unix_peer(void **state)
{
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 200);
	assert_string_equal(bed.seen_user, "peer");
	assert_int_equal(bed.seen_role, ROLE_ADMIN);
	/* a token given there decides alone */
	assert_int_equal(ask(true,
			     "GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer",
			     NULL),
			 200);
	assert_int_equal(bed.seen_role, ROLE_VIEWER);
	assert_int_equal(ask(true,
			     "GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong",
			     NULL),
			 401);
}

#define NAME_63 "a23456789012345678901234567890123456789012345678901234567890123"

/* A name that is too long is nobody's: the first bytes of it may be another user. */
static void test_long_names(void **state)
{
	static const char with_token[] =
		"GET /v1/things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer";

	bed.peer_name = bed.bearer_name = NAME_63;
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 200);
	assert_string_equal(bed.seen_user, NAME_63);
	assert_int_equal(ask(true, with_token, NULL), 200);
	assert_string_equal(bed.seen_user, NAME_63);
	bed.peer_name = bed.bearer_name = NAME_63 "x";
	assert_int_equal(ask(true, "GET /v1/things HTTP/1.1\r\nHost: x", NULL), 401);
	assert_int_equal(ask(true, with_token, NULL), 401);
	bed.peer_name = "peer";
	bed.bearer_name = "bearer";
}

static void test_browser_guards(void **state)
{
	expect(421, "GET /open HTTP/1.1\r\nHost: evil.example", NULL);
	expect(200, "GET /open HTTP/1.1\r\nHost: localhost:7070", NULL);
	expect(200, "GET /open HTTP/1.1\r\nHost: [::1]:7070", NULL);
	expect(200, "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-viewer", NULL);
	expect(403, "POST /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-user" JSON, "{}");
	expect(200,
	       "POST /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=s-user\r\nX-Moe: 1" JSON,
	       "{}");
	expect(403, POST "\r\nOrigin: http://evil.example" JSON, "{}");
	expect(200, POST "\r\nOrigin: http://127.0.0.1" JSON, "{}");
}

static void test_bodies(void **state)
{
	_cleanup_(mo_freep) char *big = mo_alloc(102);

	memset(big, 'a', 101);
	expect(200, POST JSON, "{\"a\":1}");
	assert_string_equal(bed.seen_body, "{\"a\":1}");
	expect(200, POST "\r\nContent-Type: application/yaml; charset=utf-8", "a: 1");
	expect(415, POST "\r\nContent-Type: text/plain", "a");
	expect(415, POST, "a");
	expect(415,
	       "POST /v1/things/1/stop HTTP/1.1" AS(
		       "operator") "\r\nContent-Type: application/yaml",
	       "a");
	expect(413, POST JSON, big);
	expect(413, POST JSON "\r\nContent-Length: 99999999999", NULL);
	/* chunked: counted, dropped and refused */
	bed.seen_body[0] = 0;
	_cleanup_(mo_freep) char *chunked =
		mo_printf(POST JSON "\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n%s\r\n0", big);
	expect(413, chunked, NULL);
	assert_string_equal(bed.seen_body, "");
	expect(200, POST JSON "\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0",
	       NULL);
	assert_string_equal(bed.seen_body, "abcde");
}

/* A session is no bearer token, and a token is no session. */
static void test_credentials_stay_apart(void **state)
{
	expect(401, "GET /v1/things HTTP/1.1" AS("s-viewer"), NULL);
	expect(401, "GET /v1/things HTTP/1.1" TCP "\r\nCookie: moe_session=viewer", NULL);
}

/* \1 stands for a NUL. What follows the head is no request. */
static void refused_and_closed(const char *head)
{
	_cleanup_(mo_freep) char *text =
		mo_printf("%s\r\n\r\nGET /open HTTP/1.1" TCP "\r\n\r\n", head);
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	_cleanup_(mo_closep) int fd = dial(false);
	size_t n = strlen(text);
	int status = 0;

	for (char *p = text; *p; p++)
		*p = *p == 1 ? 0 : *p;
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	wait_closed(fd, &got);
	if (!got.data || sscanf(got.data, "HTTP/1.1 %d", &status) != 1 || status / 100 != 4 ||
	    strstr(got.data, " 200 "))
		fail_msg("%s: %s", head, got.data ? got.data : "no answer");
}

/* What could mean two things is refused, and the connection is closed: what follows is no
 * request. */
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
		POST JSON "\r\nContent-Length: 2\r\nContent-Length: 2",
		POST JSON "\r\nContent-Length: 2\r\nContent-Length: 30",
		POST JSON "\r\nContent-Length: 2\r\nTransfer-Encoding: chunked",
		POST JSON "\r\nTransfer-Encoding: chunked\r\nContent-Length: 2",
		POST JSON "\r\nTransfer-Encoding: gzip, chunked",
		POST JSON "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		POST JSON "\r\nContent-Length : 2",
		POST JSON "\r\nContent-Length: 2\r\n folded",
		POST JSON "\r\nX: 1\r\n\tfolded\r\nContent-Length: 2",
		POST JSON "\r\nContent-Length: +2",
		POST JSON "\r\nContent-Length: 99999999999999999999",
		POST JSON "\r\nContent-Length: 0x2",
		"GET /v1/things HTTP/1.1\r\nAuthorization: Bearer viewer",
	};

	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		refused_and_closed(bad[i]);
	/* what is plain stays so */
	expect(200, "GET /v1/things?q=%e2%82%ac+%25 HTTP/1.1" AS("viewer"), NULL);
	assert_string_equal(bed.seen_query, "\u20ac %");
	expect(404, "POST /v1/things/a%2Fb/stop HTTP/1.1" AS("operator"), NULL);
}

/* A folded line that ends where the buffer of the connection ends is put behind the name in place,
 * over the blanks or over the value. */
static void test_folded_anywhere(void **state)
{
	static const char *const folded[] = { " 2\r\n a", "2\r\n a", "\t2\n\ta" };
	char pad[4200] = "";

	for (size_t n = 3900; n < 4100; n++)
		for (size_t i = 0; i < ELEMENTSOF(folded); i++) {
			_cleanup_(mo_freep) char *head = NULL;

			memset(pad, 'a', n);
			head = mo_printf(POST JSON "\r\nX-Pad: %s\r\nContent-Length:%s", pad,
					 folded[i]);
			refused_and_closed(head);
		}
}

/* A body without a length that does not end: 413 as soon as it is too long, and the end soon
 * after. */
static void test_endless_body(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	static char block[4096 + 10] = "1000\r\n";
	_cleanup_(mo_closep) int fd = dial(false);
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	size_t sent = 0;

	bed.seen_body[0] = 0;
	memset(block + 6, 'a', 4096);
	memcpy(block + 6 + 4096, "\r\n", 2);
	put(fd, POST JSON "\r\nTransfer-Encoding: chunked\r\n\r\n");
	for (bool closed = false; !closed && sent < 100u << 20;) {
		assert_true(mo_clock_boot_us() < end);
		ssize_t n = send(fd, block + sent % (6 + 4096 + 2),
				 6 + 4096 + 2 - sent % (6 + 4096 + 2), MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		closed = receive(fd, &got) || (n < 0 && errno != EAGAIN);
	}
	assert_non_null(got.data);
	assert_non_null(strstr(got.data, "HTTP/1.1 413 "));
	assert_non_null(strstr(got.data, "larger than the 100 bytes"));
	assert_in_range(sent, 0, 20u << 20);
	assert_string_equal(bed.seen_body, "");
}

static void test_keep_alive_and_headers(void **state)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
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
	http_server_stats(bed.server, &stats);
	assert_int_equal(stats.requests, 3);
	assert_int_equal(stats.by_class[2], 1);
	assert_int_equal(stats.by_class[4], 2);
	assert_int_equal(stats.connections, 1);
}

static void test_busy_addresses(void **state)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 }, err2 = { 0 }, err3 = { 0 };
	_cleanup_(mo_freep) char *path = mo_path(bed.dir, "sock"),
				 *stale = mo_path(bed.dir, "stale");
	struct http_server *second = NULL;
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	struct http_server_config config = { .routes = bed_routes,
					     .n_routes = 1,
					     .tcp_address = "127.0.0.1",
					     .tcp_port = http_server_port(bed.server),
					     .idle_timeout_s = 1,
					     .max_connections = 10 };
	assert_int_equal(http_server_new(bed.loop, &config, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "is in use"));
	config.tcp_port = -1;
	config.unix_path = path;
	assert_int_equal(http_server_new(bed.loop, &config, &second, &err2), -EADDRINUSE);
	assert_int_equal(access(path, F_OK), 0);
	config.tcp_port = 0;
	config.unix_path = NULL;
	config.tcp_address = "example.org";
	assert_int_equal(http_server_new(bed.loop, &config, &second, &err3), -EINVAL);
	/* a socket file left by a killed server is replaced */
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", stale);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	mo_close(fd);
	config.tcp_port = -1;
	config.unix_path = stale;
	assert_int_equal(http_server_new(bed.loop, &config, &second, NULL), 0);
	http_server_free(second);
	assert_int_equal(access(stale, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_credentials_and_roles, bed_setup,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_query_names, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_unix_peer, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_long_names, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_browser_guards, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_bodies, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_credentials_stay_apart, bed_setup,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_strict_heads, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_folded_anywhere, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_endless_body, bed_setup, bed_teardown),
		cmocka_unit_test_setup_teardown(test_keep_alive_and_headers, bed_setup,
						bed_teardown),
		cmocka_unit_test_setup_teardown(test_busy_addresses, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
