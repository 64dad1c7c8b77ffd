/* Load for benchmarks: N connections to a UNIX socket, each with one request under way, for some
 * seconds.
 *   load SOCKET CLIENTS SECONDS[:REQUESTS] METHOD PATH [BODY-FILE]
 *       ends after that time or number, whichever is first; prints {"n":requests,"errors":not
 *           2xx,"seconds":s,"p50_ms":..,"p99_ms":..}; "#######" in the body becomes the number of
 *           the request, so that no two are alike
 *   load SOCKET CLIENTS SECONDS stream PATH                connections that only read: prints
 *                                                          "open" once each has got something, then
 *                                                          {"events":lines that begin with id:}
 *   load SOCKET serve BODY-FILE                            the floor: a bare libmicrohttpd that
 *                                                          answers every request with the file, on
 *                                                          epoll, one thread
 * Only what moed and the floor send back is understood: a status line and Content-Length. */
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS_MAX 16000
#define BUCKETS 40000 /* of 10 us */

struct client {
	int fd;
	char *in;
	size_t len, cap;
	long long sent_ns;
};

static long long now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

static char *read_file(const char *path, size_t *n)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);
	if (!f || !text)
		fail(path);
	*n = fread(text, 1, (1 << 20) - 1, f);
	fclose(f);
	return text;
}

static int unix_socket(const char *path, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof(a->sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		fail("socket");
	return fd;
}

static void send_request(struct client *c, const char *request, size_t n)
{
	c->sent_ns = now_ns();
	c->len = 0;
	while (n > 0) {
		ssize_t k = send(c->fd, request, n, MSG_NOSIGNAL);
		if (k < 0)
			fail("send");
		request += k;
		n -= (size_t)k;
	}
}

/* Reads what is there; the status once the whole answer has come, else 0. */
static int receive(struct client *c)
{
	if (c->cap - c->len < 65536 && !(c->in = realloc(c->in, c->cap = c->cap * 2 + 65536)))
		fail("memory");
	ssize_t k = recv(c->fd, c->in + c->len, c->cap - c->len - 1, 0);
	if (k <= 0)
		fail("the server closed a connection");
	c->in[c->len += (size_t)k] = '\0';
	char *body = strstr(c->in, "\r\n\r\n"), *length = strcasestr(c->in, "\r\ncontent-length: ");
	size_t want = 0;
	int status = 0;
	if (!body || !length || length > body || sscanf(length + 18, "%zu", &want) != 1 ||
	    sscanf(c->in, "HTTP/1.1 %d", &status) != 1)
		return 0;
	return c->len - (size_t)(body + 4 - c->in) >= want ? status : 0;
}

static double percentile(const long *buckets, long n, double share)
{
	long seen = 0;
	for (int i = 0; i < BUCKETS; i++)
		if ((seen += buckets[i]) >= share * n)
			return (i + 1) / 100.0;
	return BUCKETS / 100.0;
}

static struct client clients[CLIENTS_MAX];
static struct epoll_event events[CLIENTS_MAX];

static int connect_all(const char *path, int n_clients)
{
	struct sockaddr_un a;
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < n_clients; i++) {
		clients[i].fd = unix_socket(path, &a);
		if (connect(clients[i].fd, (struct sockaddr *)&a, sizeof(a)) < 0)
			fail(path);
		struct epoll_event e = { .events = EPOLLIN, .data.ptr = &clients[i] };
		epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &e);
	}
	return epoll;
}

static int stream(const char *path, int n_clients, double seconds, const char *request, size_t n)
{
	int epoll = connect_all(path, n_clients), begun = 0;
	long long end = 0;
	long seen = 0;
	for (int i = 0; i < n_clients; i++)
		send_request(&clients[i], request, n);
	while (!end || now_ns() < end) {
		int ready = epoll_wait(epoll, events, CLIENTS_MAX, 100);
		for (int i = 0; i < ready; i++) {
			struct client *c = events[i].data.ptr;
			char text[65537];
			ssize_t k = recv(c->fd, text, sizeof(text) - 1, 0);
			if (k <= 0)
				fail("the server closed a stream");
			text[k] = '\0';
			begun += c->len == 0;
			c->len += (size_t)k;
			for (const char *at = text; end && (at = strstr(at, "id: ")); at++)
				seen++;
		}
		if (begun == n_clients && !end) {
			end = now_ns() + (long long)(seconds * 1e9);
			puts("open");
			fflush(stdout);
		}
	}
	printf("{\"events\":%ld}\n", seen);
	return 0;
}

#define MARK "#######"
#define MARKS_MAX 8
static char *marks[MARKS_MAX];

static void find_marks(char *request)
{
	int n = 0;
	for (char *at = request; n < MARKS_MAX && (at = strstr(at, MARK)); at += strlen(MARK))
		marks[n++] = at;
}

/* Of a number below 1e7, so that each request has as many bytes. */
static void send_numbered(struct client *c, const char *request, size_t n)
{
	static long number;
	char digits[32];
	snprintf(digits, sizeof(digits), "%07ld", number++ % 10000000);
	for (int i = 0; i < MARKS_MAX && marks[i]; i++)
		memcpy(marks[i], digits, strlen(MARK));
	send_request(c, request, n);
}

static int load(const char *path, int n_clients, double seconds, long most, const char *request,
		size_t n)
{
	static long buckets[BUCKETS];
	int epoll = connect_all(path, n_clients);
	long long began = now_ns(), end = began + (long long)(seconds * 1e9), now = began;
	long done = 0, errors = 0;
	for (int i = 0; i < n_clients; i++)
		send_numbered(&clients[i], request, n);
	while (now < end && done < most) {
		int ready = epoll_wait(epoll, events, CLIENTS_MAX, 1000);
		for (int i = 0; i < ready; i++) {
			struct client *c = events[i].data.ptr;
			int status = receive(c);
			if (status == 0)
				continue;
			long long took = (now_ns() - c->sent_ns) / 10000;
			buckets[took < BUCKETS ? took : BUCKETS - 1]++;
			done++;
			if ((status < 200 || status > 299) && errors++ == 0)
				fprintf(stderr, "%s\n", c->in);
			send_numbered(c, request, n);
		}
		now = now_ns();
	}
	printf("{\"n\":%ld,\"errors\":%ld,\"seconds\":%.4f,\"p50_ms\":%.2f,\"p99_ms\":%.2f}\n",
	       done, errors, (double)(now - began) / 1e9, percentile(buckets, done, 0.5),
	       percentile(buckets, done, 0.99));
	return errors > 0;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *data, size_t *n,
			      void **context)
{
	static int seen;
	if (!*context || *n) { /* headers first, then the body until nothing is left of it */
		*context = &seen;
		*n = 0;
		return MHD_YES;
	}
	return MHD_queue_response(c, 200, arg);
}

static int serve(const char *path, const char *file)
{
	struct sockaddr_un a;
	size_t n;
	char *body = read_file(file, &n);
	int fd = unix_socket(path, &a);
	unlink(path);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 128) < 0)
		fail(path);
	struct MHD_Response *r = MHD_create_response_from_buffer(n, body, MHD_RESPMEM_PERSISTENT);
	MHD_add_response_header(r, "Content-Type", "application/json");
	if (!MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, r,
			      MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_END))
		fail("MHD_start_daemon");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[2], "serve"))
		return serve(argv[1], argv[3]);
	if (argc < 6) {
		fprintf(stderr, "usage: load SOCKET CLIENTS SECONDS[:REQUESTS] METHOD|stream PATH "
				"[BODY-FILE] | load SOCKET serve BODY-FILE\n");
		return 2;
	}
	size_t body_len = 0;
	char *body = argc > 6 ? read_file(argv[6], &body_len) : calloc(1, 1), *request = NULL;
	int n_clients = 0, n;
	double seconds = 0;
	long most = __LONG_MAX__;
	if (!body || sscanf(argv[2], "%d", &n_clients) != 1 || n_clients < 1 ||
	    n_clients > CLIENTS_MAX || sscanf(argv[3], "%lf:%ld", &seconds, &most) < 1)
		return 2;
	bool streams = !strcmp(argv[4], "stream");
	n = asprintf(&request,
		     "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
		     "application/json\r\nContent-Length: %zu\r\n\r\n%s",
		     streams ? "GET" : argv[4], argv[5], body_len, body);
	find_marks(request);
	if (n > 0 && streams)
		return stream(argv[1], n_clients, seconds, request, (size_t)n);
	return n < 0 ? 1 : load(argv[1], n_clients, seconds, most, request, (size_t)n);
}
