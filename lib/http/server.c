/* Listeners: from a socket to a connection that is known. MHD_stop_daemon panics on suspended
 * connections: all are answered and resumed first. Suspended connections do not notice that the
 * peer left: held requests end by their answer, streams by their next write. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <utlist.h>
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/http/door.h"
#include "lib/http/ended.h"
#include "lib/http/frames.h"
#include "lib/http/guard.h"
#include "lib/http/pump.h"
#include "lib/http/represent.h"
#include "lib/http/request.h"
#include "lib/http/road.h"
#include "lib/http/strict.h"

#define LISTEN_BACKLOG 4096
#define SWEEP_SLACK_US 250000
#define SWEEP_MOST_US 1000000
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Cuts off who trickles: MHD's own timeout counts every byte as life. */
static int on_sweep(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct http_server *s = userdata;

	guard_sweep(s, mo_clock_mono_ns() / 1000);
	ended_clients(s);
	sd_event_source_set_time_relative(e, (uint64_t)MO_MAX(MO_MIN(s->idle_us / 8, SWEEP_MOST_US),
							      SWEEP_SLACK_US));
	sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
	return 0;
}

static void set_address(struct connection *c, const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, c->address,
			  sizeof(c->address));
	} else if (sa->sa_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)sa)->sin6_addr;
		if (IN6_IS_ADDR_V4MAPPED(a))
			inet_ntop(AF_INET, &a->s6_addr[12], c->address, sizeof(c->address));
		else
			inet_ntop(AF_INET6, a, c->address, sizeof(c->address));
	}
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct listener *l = cls;
	struct http_server *s = l->server;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		struct connection *c = *context;
		guard_left(c);
		DL_DELETE(s->connections, c);
		l->n_connections--;
		s->stats.connections--;
		free(c);
		return;
	}
	struct connection *c = mo_alloc(sizeof(*c));
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *address =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	c->listener = l;
	c->fd = fd->connect_fd;
	if (!l->local && address && address->client_addr)
		set_address(c, address->client_addr);
	DL_APPEND(s->connections, c);
	l->n_connections++;
	s->stats.connections++;
	*context = c;
	guard_arrived(c);
}

static int listen_unix(const char *path, struct mo_error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_(mo_closep) int fd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(sa.sun_path))
		return mo_error_set(err, -ENAMETOOLONG,
				    "unix_socket %s: longer than the %zu bytes that a socket path "
				    "may have",
				    path, sizeof(sa.sun_path) - 1);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return mo_error_set(err, -EADDRINUSE,
				    "unix_socket %s: somebody answers there already: stop it or "
				    "choose another path",
				    path);
	if (errno == ECONNREFUSED)
		unlink(path);
	mo_close(TAKE_FD(fd));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || chmod(path, 0660) < 0 ||
	    listen(fd, LISTEN_BACKLOG) < 0)
		return mo_error_set(err, -errno,
				    "unix_socket %s: %s: make its directory writable or choose "
				    "another path",
				    path, strerror(errno));
	return TAKE_FD(fd);
}

static int listen_tcp(const char *address, int64_t port, int64_t *ret_port, struct mo_error *err)
{
	_cleanup_(mo_closep) int fd = -1;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_PASSIVE },
			*ai = NULL;
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} bound = { 0 };
	socklen_t n = sizeof(bound);
	char service[16];
	int one = 1, e = 0;

	snprintf(service, sizeof(service), "%d", (int)port);
	if (getaddrinfo(address, service, &hints, &ai) != 0)
		return mo_error_set(err, -EINVAL,
				    "listen %s: not a numeric address: give one such as 127.0.0.1 "
				    "or ::",
				    address);
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		e = -errno;
	freeaddrinfo(ai);
	if (e == -EADDRINUSE)
		return mo_error_set(err, e,
				    "port %d of %s is in use: stop the program that has it or "
				    "choose another port (0 = any)",
				    (int)port, address);
	if (e < 0)
		return mo_error_set(err, e, "listening on %s port %d: %s", address, (int)port,
				    strerror(-e));
	/* inherited by what is accepted */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (getsockname(fd, &bound.any, &n) < 0)
		return -errno;
	*ret_port =
		ntohs(bound.any.sa_family == AF_INET6 ? bound.six.sin6_port : bound.four.sin_port);
	return TAKE_FD(fd);
}

/* Which certificate a handshake gets: the one that was read last. */
static int retrieve(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
		    const gnutls_pk_algorithm_t *kinds, int n_kinds, gnutls_pcert_st **chain,
		    unsigned *n_chain, gnutls_privkey_t *key)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(gnutls_session_get_ptr(session),
					MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	const struct connection *c = info->socket_context;
	const struct tls_pair *pair = c->listener->server->pair;

	*chain = pair->chain;
	*n_chain = pair->n_chain;
	*key = pair->key;
	return 0;
}

/* Takes fd. */
static int start(struct http_server *s, struct listener *l, int fd, bool tls, struct mo_error *err)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem secure[] = {
		{ tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0, (void *)retrieve },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES },
		{ MHD_OPTION_END, 0, NULL },
	};

	l->server = s;
	l->mhd =
		MHD_start_daemon(flags, 0, NULL, NULL, request_access, s, MHD_OPTION_LISTEN_SOCKET,
				 fd, MHD_OPTION_NOTIFY_COMPLETED, request_completed, s,
				 MHD_OPTION_UNESCAPE_CALLBACK, strict_unescape, NULL,
				 MHD_OPTION_URI_LOG_CALLBACK, strict_line, NULL,
				 MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
				 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_MEMORY,
				 MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->max_connections,
				 MHD_OPTION_ARRAY, secure, MHD_OPTION_END);
	if (!l->mhd) {
		mo_close(fd);
		return mo_error_set(err, -EINVAL, "starting the %s server", tls ? "HTTPS" : "HTTP");
	}
	return pump_watch(s, l);
}

int http_server_read_tls(struct http_server *s, struct mo_error *err)
{
	struct tls_pair *pair = NULL;
	int r = tls_pair_load(s->config.tls_cert_file, s->config.tls_key_file, &pair, err);

	if (r < 0)
		return r;
	pair->older = s->pair;
	s->pair = pair;
	return 0;
}

static int start_tcp(struct http_server *s, struct mo_error *err)
{
	bool tls = s->config.tls_cert_file;
	int r = tls ? http_server_read_tls(s, err) : 0;

	if (r < 0)
		return r;
	int fd = listen_tcp(s->config.tcp_address, s->config.tcp_port, &s->port, err);
	return fd < 0 ? fd : start(s, &s->tcp, fd, tls, err);
}

static int start_unix(struct http_server *s, struct mo_error *err)
{
	int fd = listen_unix(s->config.unix_path, err);

	if (fd < 0)
		return fd;
	s->unix_path = mo_strdup(s->config.unix_path);
	s->local.local = true;
	return start(s, &s->local, fd, false, err);
}

static int add_sources(struct http_server *s)
{
	int r = pump_begin(s);

	if (r >= 0)
		r = sd_event_add_time_relative(s->loop, &s->sweep, CLOCK_MONOTONIC, 0,
					       SWEEP_SLACK_US, on_sweep, s);
	return r;
}

int http_server_new(sd_event *loop, const struct http_server_config *config,
		    struct http_server **ret, struct mo_error *err)
{
	struct http_server *s = mo_alloc(sizeof(*s));
	char name[256] = "";

	s->loop = sd_event_ref(loop);
	s->config = *config;
	doors_new(s);
	represent_new(s);
	s->idle_us = config->idle_timeout_s * 1000000;
	s->max_connections = guard_connections_max(config->max_connections);
	s->max_total = guard_connections_max(2 * config->max_connections);
	gethostname(name, sizeof(name) - 1);
	s->host_name = mo_strdup(name);
	int r = add_sources(s);
	if (r >= 0 && config->unix_path)
		r = start_unix(s, err);
	if (r >= 0 && config->tcp_port >= 0)
		r = start_tcp(s, err);
	if (r < 0) {
		http_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void stop(struct listener *l)
{
	sd_event_source_disable_unref(l->io);
	if (l->mhd)
		MHD_stop_daemon(l->mhd);
}

struct http_server *http_server_free(struct http_server *s)
{
	struct http_request *r, *tmp;

	if (!s)
		return NULL;
	s->quitting = true;
	HASH_ITER(hh, s->held, r, tmp) {
		if (r->stream)
			http_stream_end(r);
		else
			http_problem(r, 503, "the controller is stopping: try again in a moment");
	}
	roads_end(s, NULL);
	pump_all(s);
	stop(&s->tcp);
	stop(&s->local);
	pump_end(s);
	roads_done(s);
	sd_event_source_disable_unref(s->sweep);
	guard_done(s);
	if (s->unix_path)
		unlink(s->unix_path);
	sd_event_unref(s->loop);
	tls_pair_free(s->pair);
	free(s->unix_path);
	free(s->host_name);
	free(s->doors);
	represent_done(s);
	free(s);
	return NULL;
}

int64_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_stats(const struct http_server *s, struct http_stats *ret)
{
	*ret = s->stats;
	ret->held = (int64_t)HASH_COUNT(s->held) - s->stats.streams;
}
