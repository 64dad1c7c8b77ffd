/* See unix_fetch.h. connect -> request in one write -> answer, each within what is left of the
 * call's time. The server may answer before it has read a whole body (413): the answer counts. */
#include "lib/loop/unix_fetch.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/http_answer.h"
#include "lib/loop/http_client.h"

#define MAX_BODY_DEFAULT (64u << 20)
#define PIECE 65536
#define ENDED 1 /* on_data wants no more */

struct fetch {
	const struct mo_http_call *call;
	int (*on_data)(void *arg, const char *data, size_t n);
	void *arg;
	struct http_answer answer;
	struct mo_buf *body;
	int64_t deadline; /* boot us; INT64_MAX none */
};

const char *unix_connect_error(int number)
{
	switch (number) {
	case EACCES:
		return "permission denied: who may connect is in the socket's group (ls -l shows "
		       "it)";
	case ENOENT: return "there is no such socket: is moed running there?";
	case ECONNREFUSED: return "nobody listens on it: is moed running there?";
	default: return number ? strerror(number) : "cannot connect";
	}
}

static int connect_to(const char *path, const char **ret_why)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*ret_why = "the path of the socket is too long";
	if (strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, strlen(path) + 1);
	_cleanup_(mo_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return TAKE_FD(fd);
	*ret_why = unix_connect_error(errno);
	return -ECONNREFUSED;
}

/* A line break in what a user gave would begin a header of its own. */
static bool one_line(const char *s)
{
	return !s || !s[strcspn(s, "\r\n")];
}

static int put_request(const struct mo_http_call *c, struct mo_buf *b)
{
	const char *method = c->method ? c->method : "GET";
	bool ok = one_line(method) && one_line(c->path) && one_line(c->token) &&
		  one_line(c->content_type) && !strchr(c->path, ' ');

	mo_assert(c->path && (c->body || c->body_len == 0));
	mo_buf_printf(b,
		      "%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: moe/" MO_VERSION
		      "\r\nAccept: */*\r\nConnection: close\r\n",
		      method, c->path);
	if (c->token)
		mo_buf_printf(b, "Authorization: Bearer %s\r\n", c->token);
	if (c->content_type)
		mo_buf_printf(b, "Content-Type: %s\r\n", c->content_type);
	for (size_t i = 0; c->headers && c->headers[i]; i++) {
		ok = ok && one_line(c->headers[i]);
		mo_buf_printf(b, "%s\r\n", c->headers[i]);
	}
	if (c->body_len || !mo_streq(method, "GET"))
		mo_buf_printf(b, "Content-Length: %zu\r\n", c->body_len);
	mo_buf_str(b, "\r\n");
	if (c->body_len)
		mo_buf_add(b, c->body, c->body_len);
	return ok ? 0 : -EINVAL;
}

/* What is ready; 0: the time is over. */
static int wait_for(const struct fetch *f, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		int64_t left = f->deadline == INT64_MAX
				       ? -1
				       : (f->deadline - mo_clock_boot_us() + 999) / 1000;
		if (left < 0 && f->deadline != INT64_MAX)
			return 0;
		int n = poll(&p, 1, (int)MO_MIN(left, INT32_MAX));
		if (n > 0)
			return p.revents;
		if (n < 0 && errno != EINTR)
			return events; /* the read or write that follows says what is wrong */
	}
}

static int send_all(const struct fetch *f, int fd, const char *data, size_t n)
{
	mo_assert(fd >= 0);
	while (n > 0) {
		int ready = wait_for(f, fd, POLLOUT | POLLIN);
		if (ready == 0)
			return -ETIMEDOUT;
		if (ready & POLLIN)
			/* an answer before the end of the request: the server wants no more of
			 * it */
			return 0;
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent < 0 && errno != EINTR && errno != EAGAIN)
			return 0; /* the same, and it has closed */
		if (sent > 0) {
			data += sent;
			n -= (size_t)sent;
		}
	}
	return 0;
}

static int on_body(void *arg, const char *data, size_t n)
{
	struct fetch *f = arg;
	size_t most = f->call->max_body ? f->call->max_body : MAX_BODY_DEFAULT;

	if (f->on_data && f->answer.status < 300)
		return f->on_data(f->arg, data, n) ? ENDED : 0;
	if (f->body->len + n > most)
		return -EFBIG;
	mo_buf_add(f->body, data, n);
	return 0;
}

static int receive(struct fetch *f, int fd)
{
	_cleanup_(mo_freep) char *data = mo_alloc(PIECE);

	while (f->answer.part != ANSWER_OVER) {
		if (!wait_for(f, fd, POLLIN))
			return -ETIMEDOUT;
		ssize_t n = recv(fd, data, PIECE, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n == 0 && http_answer_whole(&f->answer) ? 0 : -ECONNRESET;
		int r = http_answer_feed(&f->answer, data, (size_t)n, on_body, f);
		if (r)
			return r == ENDED ? 0 : r;
	}
	return 0;
}

static const char *why(int r)
{
	switch (r) {
	case -ETIMEDOUT: return "no answer in time";
	case -ECONNRESET: return "the connection broke off before the answer was whole";
	case -EPROTO: return "the answer is no HTTP: is something else listening there?";
	case -EFBIG: return "the answer is larger than allowed";
	default: return "the request holds a line break";
	}
}

static void fetch_done(struct fetch *f)
{
	http_answer_done(&f->answer);
}

int unix_fetch(const struct mo_http_call *call,
	       int (*on_data)(void *arg, const char *data, size_t n), void *arg, int *ret_status,
	       struct mo_buf *body, const char **ret_why)
{
	_cleanup_(fetch_done) struct fetch f = { .call = call,
						 .on_data = on_data,
						 .arg = arg,
						 .body = body,
						 .answer.head_only = mo_streq(call->method, "HEAD"),
						 .deadline = INT64_MAX };
	_cleanup_(mo_buf_done) struct mo_buf request = { 0 };

	if (call->timeout_ms > 0)
		f.deadline = mo_clock_boot_us() + 1000 * call->timeout_ms;
	int r = put_request(call, &request);
	*ret_why = why(r);
	if (r < 0)
		return r;
	_cleanup_(mo_closep) int fd = connect_to(call->url + strlen("unix:"), ret_why);
	if (fd < 0)
		return fd;
	r = send_all(&f, fd, request.data, request.len);
	if (r == 0)
		r = receive(&f, fd);
	*ret_why = why(r);
	if (r == 0)
		*ret_status = f.answer.status;
	return r;
}
