/* See line.h. */
#include "tests/bench/swarm/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/base/frame.h"

#define READ_BYTES 16384

int lines_begin(struct lines *s, const char *address, const char *token)
{
	const char *at = strstr(address, "//"), *colon;

	at = at ? at + 2 : address;
	colon = strrchr(at, ':');
	*s = (struct lines){ .epoll = epoll_create1(EPOLL_CLOEXEC), .token = mo_strdup(token) };
	if (!colon || s->epoll < 0 || mo_parse_i64(colon + 1, 1, 65535, &s->port) < 0)
		return -EINVAL;
	s->host = mo_strndup(at, (size_t)(colon - at));
	return 0;
}

void line_begin(struct line *l, void *owner, size_t index)
{
	*l = (struct line){ .fd = -1,
			    .owner = owner,
			    .source = INADDR_LOOPBACK + (1U << 16) + (uint32_t)index };
}

void line_done(struct line *l)
{
	if (l->fd >= 0)
		close(l->fd);
	mo_buf_done(&l->out);
	mo_buf_done(&l->in);
}

void line_close(struct lines *s, struct line *l)
{
	(void)s;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->state = LINE_CLOSED;
	mo_buf_reset(&l->in);
}

static bool line_open(struct lines *s, struct line *l)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->port) };
	struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = l };
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(l->source) };
	int on = 1;

	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || inet_pton(AF_INET, s->host, &a.sin_addr) != 1)
		return false;
	setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(l->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (bind(l->fd, (struct sockaddr *)&from, sizeof(from)) < 0)
		return false;
	if (connect(l->fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS)
		return false;
	s->opened++;
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, l->fd, &e) == 0;
}

/* true: the connection stands. */
static bool line_write(struct line *l)
{
	size_t end = l->gate ? l->gate : l->out.len;

	while (l->sent < end) {
		ssize_t k = send(l->fd, l->out.data + l->sent, end - l->sent, MSG_NOSIGNAL);

		if (k < 0)
			return errno == EAGAIN;
		l->sent += (size_t)k;
	}
	return true;
}

static void add_request(const struct lines *s, struct line *l, const char *path,
			const struct mo_buf *body)
{
	mo_buf_printf(&l->out,
		      "POST %s HTTP/1.1\r\nHost: %s:%lld\r\nAuthorization: Bearer %s\r\n"
		      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		      path, s->host, (long long)s->port, s->token, body->len);
	mo_buf_add(&l->out, body->data, body->len);
}

static void add_frame(const struct lines *s, struct line *l, const char *path, bool open,
		      const struct mo_buf *body)
{
	static const char *const words[] = { NULL, "hello", "sync", "news", "answer" };
	struct frame f = { .length = (uint32_t)body->len, .id = 1, .code = FRAME_ANSWER };
	char head[FRAME_HEAD];

	while (f.code > FRAME_HELLO && strcmp(strrchr(path, '/') + 1, words[f.code]) != 0)
		f.code--;
	if (!open)
		mo_buf_printf(&l->out,
			      "GET " FRAME_PATH " HTTP/1.1\r\nHost: %s:%lld\r\nAuthorization: "
			      "Bearer %s\r\nConnection: Upgrade\r\nUpgrade: " FRAME_PROTOCOL
			      "\r\n\r\n",
			      s->host, (long long)s->port, s->token);
	l->gate = l->out.len;
	frame_write(&f, head);
	mo_buf_add(&l->out, head, sizeof(head));
	mo_buf_add(&l->out, body->data, body->len);
}

void line_post(struct lines *s, struct line *l, const char *path, const struct mo_buf *body)
{
	bool open = l->state != LINE_CLOSED;

	mo_buf_reset(&l->out);
	mo_buf_reset(&l->in);
	l->gate = 0;
	if (s->roads)
		add_frame(s, l, path, open, body);
	else
		add_request(s, l, path, body);
	l->sent = 0;
	l->asked_ns = mo_clock_mono_ns();
	if (!open && !line_open(s, l)) {
		line_close(s, l);
		return;
	}
	l->state = open ? LINE_ASKED : LINE_CONNECTING;
	if (open)
		line_write(l); /* an error is heard of by epoll */
}

/* The status once all of the answer is there, with its body; 0: not yet; < 0: no HTTP. */
static int answer_of(struct mo_buf *in, const char **body, size_t *n, long long *after_s)
{
	char *end, *length, *after;
	unsigned long want;
	int status;

	mo_buf_add(in, "", 1); /* ends the text for what follows */
	in->len--;
	end = strstr(in->data, "\r\n\r\n");
	if (!end)
		return 0;
	length = strcasestr(in->data, "\r\ncontent-length: ");
	if (!length || length > end || sscanf(in->data, "HTTP/1.1 %d", &status) != 1 ||
	    sscanf(length + 18, "%lu", &want) != 1)
		return -EPROTO;
	after = strcasestr(in->data, "\r\nretry-after: ");
	if (!after || after > end || sscanf(after + 15, "%lld", after_s) != 1)
		*after_s = 0;
	*body = end + 4;
	*n = want;
	return in->len - (size_t)(*body - in->data) >= want ? status : 0;
}

/* The same of a frame, and of the 101 that lets the first one go. */
static int frame_of(struct line *l, const char **body, size_t *n)
{
	const char *end;
	struct frame f;

	if (l->gate) {
		mo_buf_add(&l->in, "", 1);
		l->in.len--;
		end = strstr(l->in.data, "\r\n\r\n");
		if (end && !mo_starts_with(l->in.data, "HTTP/1.1 101 "))
			return -EPROTO;
		if (!end)
			return 0;
		l->gate = 0;
		mo_buf_reset(&l->in);
		return line_write(l) ? 0 : -ECONNRESET;
	}
	if (l->in.len < FRAME_HEAD)
		return 0;
	frame_read(l->in.data, &f);
	*body = l->in.data + FRAME_HEAD;
	*n = f.length;
	l->after_s = f.after_s;
	return l->in.len - FRAME_HEAD >= f.length ? f.code : 0;
}

static int line_read(struct line *l)
{
	char text[READ_BYTES];
	ssize_t k;

	while ((k = recv(l->fd, text, sizeof(text), 0)) > 0)
		mo_buf_add(&l->in, text, (size_t)k);
	return k < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
}

int line_step(struct lines *s, struct line *l, uint32_t events, const char **body, size_t *n)
{
	int status, r;

	if (l->state == LINE_CLOSED)
		return 0; /* said of what is closed by now */
	if (l->state == LINE_CONNECTING && (events & EPOLLOUT))
		l->state = LINE_ASKED;
	if ((events & (EPOLLOUT)) && !line_write(l)) {
		line_close(s, l);
		return -ECONNRESET;
	}
	if (!(events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
		return 0;
	r = line_read(l);
	status = !l->in.len ? 0
		 : s->roads ? frame_of(l, body, n)
			    : answer_of(&l->in, body, n, &l->after_s);
	if (status > 0 && l->state == LINE_ASKED) {
		l->state = LINE_IDLE;
		return status; /* of a connection that ended with it the next request tells */
	}
	if (r < 0 || status < 0) {
		s->cut += l->state != LINE_IDLE;
		r = l->state == LINE_IDLE ? 0 : -ECONNRESET;
		line_close(s, l);
		return r;
	}
	return 0;
}
