/* See bed.h. */
#include "tests/unit/http/bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/frame.h"

struct http_bed bed = { .peer_name = "peer", .bearer_name = "bearer" };

static void on_echo(void *arg, struct http_request *r)
{
	size_t n;

	snprintf(bed.seen_user, sizeof(bed.seen_user), "%s", http_caller(r)->user);
	snprintf(bed.seen_body, sizeof(bed.seen_body), "%s", http_body(r, &n));
	snprintf(bed.seen_param, sizeof(bed.seen_param), "%s",
		 http_param(r, "id") ? http_param(r, "id") : "-");
	snprintf(bed.seen_query, sizeof(bed.seen_query), "%s",
		 http_query(r, "q") ? http_query(r, "q") : "-");
	bed.seen_role = http_caller(r)->role;
	assert_null(http_param(r, "other"));
	http_reply(r, 200, "text/plain", "echo", 4, (const char *const[]){ "X-Extra: yes", NULL });
}

static void on_gone(void *arg, uint64_t id)
{
	assert_true(id <= bed.held_id);
	bed.gone_calls++;
}

static void on_hold(void *arg, struct http_request *r)
{
	bed.held_id = http_id(r);
	bed.holds++;
	http_on_gone(r, on_gone, NULL);
}

static void on_stream(void *arg, struct http_request *r)
{
	bed.held_id = http_id(r);
	http_on_gone(r, on_gone, NULL);
	http_stream_start(r, "text/event-stream");
}

static void serve(struct http_request *r, char letter)
{
	size_t n = strlen(bed.served);

	if (n + 1 < sizeof(bed.served))
		bed.served[n] = letter;
	http_reply(r, 200, "text/plain", "served", 6, NULL);
}

static void on_slow(void *arg, struct http_request *r)
{
	int64_t end = mo_clock_thread_ns() + SLOW_NS;

	while (mo_clock_thread_ns() < end)
		continue;
	serve(r, http_caller(r)->user[0]);
}

static void on_road(void *arg, struct http_request *r)
{
	http_road(r);
}

static void on_prompt(void *arg, struct http_request *r)
{
	serve(r, '!');
}

static void on_large(void *arg, struct http_request *r)
{
	char text[LARGE];

	memset(text, bed.large ? bed.large : 'a', sizeof(text));
	http_reply(r, 200, "application/json", text, sizeof(text), NULL);
}

const struct http_route bed_routes[] = {
	{ "GET", "/v1/large", ROLE_VIEWER, on_large, 0, false },
	{ "POST", "/v1/large", ROLE_VIEWER, on_large, 100, false },
	{ "GET", "/v1/slow", ROLE_VIEWER, on_slow, 0, false },
	{ "GET", "/open", ROLE_NONE, on_echo, 0, false },
	{ "GET", "/page", ROLE_NONE, on_large, 0, false },
	{ "GET", "/", ROLE_NONE, on_echo, 0, false },
	{ "GET", "/v1/things", ROLE_VIEWER, on_echo, 0, false, .query = "q limit Last-Event-ID" },
	{ "POST", "/v1/things", ROLE_USER, on_echo, 100, true },
	{ "POST", "/v1/things/{id}/stop", ROLE_OPERATOR, on_echo, 100, false },
	{ "DELETE", "/v1/things/{id}", ROLE_ADMIN, on_echo, 0, false },
	{ "POST", "/v1/agent/sync", ROLE_AGENT, on_hold, 100000, false, .frame = FRAME_SYNC,
	  .prompt = true },
	{ "POST", "/v1/agent/hello", ROLE_AGENT, on_hold, 100000, false, .most = 2,
	  .frame = FRAME_HELLO },
	{ "POST", "/v1/agent/answer", ROLE_AGENT, on_echo, 100, false, .frame = FRAME_ANSWER },
	{ "GET", FRAME_PATH, ROLE_AGENT, on_road, 0, false, .prompt = true },
	{ "GET", "/v1/hold", ROLE_VIEWER, on_hold, 0, false },
	{ "GET", "/v1/prompt", ROLE_VIEWER, on_prompt, 0, false, .prompt = true },
	{ "GET", "/v1/stream", ROLE_VIEWER, on_stream, 0, false },
};

/* The secret is the role's name, and .NAME of its user where it has one of his own. */
static bool authenticate(void *arg, const char *secret, bool by_cookie, struct http_caller *ret)
{
	if (by_cookie != (strncmp(secret, "s-", 2) == 0))
		return false;
	secret += by_cookie ? 2 : 0;
	size_t n = strcspn(secret, ".");
	for (int i = ROLE_VIEWER; i < _ROLE_N; i++)
		if (strlen(role_names[i]) == n && strncmp(secret, role_names[i], n) == 0) {
			*ret = (struct http_caller){ .role = (enum role)i,
						     .user = secret[n] ? secret + n + 1
								       : bed.bearer_name,
						     .token_id = "t1" };
			return true;
		}
	return false;
}

static bool alive(void *arg, const char *token_id)
{
	return bed.token_alive || strcmp(token_id, "t1") != 0;
}

static void peer(void *arg, uid_t uid, struct http_caller *ret)
{
	*ret = (struct http_caller){ .role = uid == getuid() ? ROLE_ADMIN : ROLE_NONE,
				     .user = bed.peer_name };
}

static void on_wrong(void *arg, const char *source, int64_t n)
{
	bed.wrong_calls++;
	bed.wrong_n = n;
	snprintf(bed.wrong_source, sizeof(bed.wrong_source), "%s", source);
}

static int setup_idle(int64_t idle_s)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	static char path[80];

	bed.gone_calls = bed.wrong_calls = bed.holds = 0;
	memset(bed.served, 0, sizeof(bed.served));
	bed.token_alive = true;
	snprintf(bed.dir, sizeof(bed.dir), "/tmp/http-test-XXXXXX");
	if (!mkdtemp(bed.dir) || sd_event_new(&bed.loop) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/sock", bed.dir);
	struct http_server_config config = { .routes = bed_routes,
					     .n_routes = ELEMENTSOF(bed_routes),
					     .authenticate = authenticate,
					     .alive = alive,
					     .peer = peer,
					     .unix_path = path,
					     .tcp_address = "127.0.0.1",
					     .idle_timeout_s = idle_s,
					     .max_connections = 64,
					     .on_wrong = on_wrong };
	int r = http_server_new(bed.loop, &config, &bed.server, &err);
	if (r < 0)
		print_error("%s\n", err.text);
	return r;
}

int bed_setup(void **state)
{
	return setup_idle(30);
}

int bed_setup_impatient(void **state)
{
	return setup_idle(1);
}

int bed_teardown(void **state)
{
	bed.server = http_server_free(bed.server);
	bed.loop = sd_event_unref(bed.loop);
	return mo_rm_rf(bed.dir);
}

int dial_from(int from)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)http_server_port(bed.server)) };
	struct sockaddr_in own = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0x7f000000u | (unsigned)from) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	int r = connect(fd, (struct sockaddr *)&to, sizeof(to));
	assert_true(r == 0 || errno == EINPROGRESS);
	return fd;
}

int dial(bool local)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)http_server_port(bed.server)) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/sock", bed.dir);
	int r = local ? connect(fd, (struct sockaddr *)&un, sizeof(un))
		      : connect(fd, (struct sockaddr *)&in, sizeof(in));
	assert_true(r == 0 || errno == EINPROGRESS);
	return fd;
}

bool receive(int fd, struct mo_buf *b)
{
	char data[65536];

	assert_true(sd_event_run(bed.loop, 20000) >= 0);
	ssize_t n = read(fd, data, sizeof(data));
	if (n > 0)
		mo_buf_add(b, data, (size_t)n);
	return n == 0 || (n < 0 && errno != EAGAIN);
}

void wait_for(int fd, struct mo_buf *b, const char *words)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (!b->data || !strstr(b->data, words)) {
		assert_true(mo_clock_boot_us() < end);
		assert_false(receive(fd, b) && (!b->data || !strstr(b->data, words)));
	}
}

void wait_closed(int fd, struct mo_buf *b)
{
	int64_t end = mo_clock_boot_us() + PATIENCE_US;

	while (!receive(fd, b))
		if (mo_clock_boot_us() > end)
			fail_msg("not closed: %s", b->data ? b->data : "no answer");
}

void put(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* The status of what the server answers; 0: it closed the connection without a word. */
static int status_of_answer(int fd)
{
	_cleanup_(mo_buf_done) struct mo_buf got = { 0 };
	int64_t end = mo_clock_boot_us() + PATIENCE_US;
	int status = 0;

	while (!got.data || !strstr(got.data, "\r\n\r\n")) {
		assert_true(mo_clock_boot_us() < end);
		if (receive(fd, &got))
			break;
	}
	return got.data && sscanf(got.data, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

int say(int fd, const char *head)
{
	_cleanup_(mo_freep) char *text = mo_printf("%s\r\n\r\n", head);

	return send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ? 0 : status_of_answer(fd);
}

int ask(bool local, const char *head, const char *body)
{
	_cleanup_(mo_freep) char *text =
		body ? mo_printf("%s\r\nContent-Length: %zu\r\n\r\n%s", head, strlen(body), body)
		     : mo_printf("%s\r\n\r\n", head);
	_cleanup_(mo_closep) int fd = dial(local);
	int status;

	for (int i = 0; i < 3; i++)
		sd_event_run(bed.loop, 1000);
	put(fd, text);
	status = status_of_answer(fd);
	assert_int_not_equal(status, 0);
	return status;
}
