/* HTTP server (libmicrohttpd, external epoll) on the sd-event loop: TCP and UNIX listeners, routes
 * in one table with a role column (deny by default), held requests, streams. Checked for every
 * request before its handler: that its head means one thing only (400), Host (TCP), credential
 * (401), route (404), method (405), role (403), Origin and X-Moe (403), content type (415), size
 * (413). When a token ends, what is held or streamed for it ends too. A client that has not sent
 * its whole request within idle_timeout_s is cut off, however busily it trickles. */
#pragma once
#include <systemd/sd-event.h>
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* NONE: no credential needed. AGENT is a class of its own: only the agent routes. */
enum role { ROLE_NONE, ROLE_VIEWER, ROLE_USER, ROLE_OPERATOR, ROLE_ADMIN, ROLE_AGENT, _ROLE_N };
extern const char *const role_names[_ROLE_N];

struct http_request; /* lives until answered (or the client left) */
struct http_caller {
	enum role role;
	const char *user;
	bool local, by_cookie;
	const char *token_id;
};
typedef void (*http_handler)(void *arg, struct http_request *r);
struct http_route {
	const char *method; /* GET POST DELETE */
	const char *path;   /* "/v1/jobs/{id}/ranks": {x} matches one segment */
	enum role role;     /* least role; ROLE_AGENT: agents only */
	http_handler handler;
	size_t max_body;
	bool yaml; /* the body may be YAML too; else JSON only (415) */
	/* Names of the query string, separated by blanks, NULL none (capitals in front:
	 * headers). Others are refused with 400. */
	const char *query;
	/* Its handler is quick and somebody's time runs: it never waits for its turn. */
	bool prompt;
	/* So many that came whole may wait for their answer; the head of the next gets 503, and is
	 * asked to come again. 0: any number. */
	int64_t most;
	/* Its word where it comes by a frame of a road (enum frame_word); 0: by requests only. */
	int frame;
};
struct http_server_config {
	const struct http_route *routes;
	size_t n_routes;
	void *arg;
	/* Who is this bearer token, or, by_cookie, this value of the session cookie? One is never
	 * the other. false = unknown. Never blocks. */
	bool (*authenticate)(void *arg, const char *secret, bool by_cookie,
			     struct http_caller *ret);
	/* False once that token may do nothing any more; NULL: all live for ever. */
	bool (*alive)(void *arg, const char *token_id);
	/* Role of a UNIX socket peer. */
	void (*peer)(void *arg, uid_t uid, struct http_caller *ret);
	/* A request is answered with 403, for that reason. NULL: nobody wants to know. */
	void (*refused)(void *arg, const struct http_request *r, const char *why);
	const char *unix_path; /* NULL none; made 0660 */
	const char *tcp_address;
	int64_t tcp_port;                         /* port 0 = any, -1 = none */
	const char *tls_cert_file, *tls_key_file; /* both or none */
	/* Host headers accepted on TCP besides IP addresses, localhost and this machine's name;
	 * NULL-terminated, may be NULL. */
	const char *const *host_names;
	/* Slow clients: 30; at most 10 before the first accepted credential. */
	int64_t idle_timeout_s;
	/* Of each listener; a quarter of them is never for who has shown no accepted credential. */
	int64_t max_connections;
	/* Of one user or viewer, of one node's agent; 0: as many as there are. */
	int64_t user_connections, node_connections;
	/* Before a body is read; false after it answered. NULL: all are. */
	bool (*admit_head)(void *arg, struct http_request *r);
	/* Before each handler; likewise. */
	bool (*admit)(void *arg, struct http_request *r);
	/* n wrong credentials from there since the last call; at most one call a minute for each
	 * source. NULL: nobody is called. */
	void (*on_wrong)(void *arg, const char *source, int64_t n);
};
struct http_server;
/* -EADDRINUSE with what to do. */
int http_server_new(sd_event *loop, const struct http_server_config *config,
		    struct http_server **ret, struct mo_error *err);
struct http_server *http_server_free(struct http_server *s);
/* Reads the certificate and its key anew, for connections from now on. On an error those of before
 * stay. Only with tls_cert_file. */
int http_server_read_tls(struct http_server *s, struct mo_error *err);
int64_t http_server_port(const struct http_server *s);
/* Held requests and streams of the caller of r, by all of his connections; 0 for whom nothing
 * limits. */
int64_t http_held_of_caller(const struct http_request *r);
/* A token ended: held requests of it get 401, its streams are cut, their owners are notified as if
 * the client had left. */
void http_server_check_tokens(struct http_server *s);
/* by_class[4] = answers 4xx; cut: connections of strangers beyond a limit; wrong credentials. */
struct http_stats {
	int64_t requests, by_class[6], connections, held, streams, roads, cut, wrong;
};
void http_server_stats(const struct http_server *s, struct http_stats *ret);

const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r);
/* Path segment {name}; NULL none. */
const char *http_param(const struct http_request *r, const char *name);
/* Query string value; NULL none. */
const char *http_query(const struct http_request *r, const char *name);
const char *http_header(const struct http_request *r, const char *name);
/* Whole body, at most route's max (413 was sent otherwise). */
const char *http_body(const struct http_request *r, size_t *ret_n);
const struct http_caller *http_caller(const struct http_request *r);
/* Numeric source address, "" on UNIX. */
const char *http_peer_address(const struct http_request *r);
/* Never reused; for core_input.request. */
uint64_t http_id(const struct http_request *r);
/* s NULL: none. Of a held request or stream (after its handler returned, or http_hold); NULL
 * when the client left. */
struct http_request *http_find(struct http_server *s, uint64_t id);
/* Inside the handler: http_find() works from now on. */
void http_hold(struct http_request *r);
/* Answers and ends r; body is copied. extra_headers: "Name: value" strings, NULL-terminated, may
 * be NULL. May be called in the handler or later (the request is held meanwhile). Of status 200 to
 * a GET it gets a tag, 304 where the client names that one, and gzip where it takes that
 * (represent.c). */
void http_reply(struct http_request *r, int status, const char *content_type, const void *body,
		size_t n, const char *const *extra_headers);
/* With a body of problem+json. */
void http_problem(struct http_request *r, int status, const char *fmt, ...) _printf_(3, 4);
/* And when to try again: a refusal that does not last. */
void http_problem_later(struct http_request *r, int status, int64_t after_s, const char *fmt, ...)
	_printf_(4, 5);
/* Inside the handler: makes a road of r's connection, or answers why not. From now on the same
 * caller asks by frames for what routes with a `frame` do; each is a request of its own. */
void http_road(struct http_request *r);
/* Turns r into a stream (SSE or text): http_stream_write appends (returns -EPIPE when gone,
 * -ENOBUFS when more than 1 MiB is still unread: the client is then closed). */
void http_stream_start(struct http_request *r, const char *content_type);
int http_stream_write(struct http_request *r, const void *data, size_t n);
void http_stream_end(struct http_request *r);
/* Bytes written and not yet taken by the connection. */
size_t http_stream_backlog(const struct http_request *r);
/* fn is called whenever the backlog became empty; it may write more. */
void http_stream_on_drained(struct http_request *r, void (*fn)(void *arg, uint64_t id), void *arg);
/* fn is called when the client goes away before the answer/stream ended. */
void http_on_gone(struct http_request *r, void (*fn)(void *arg, uint64_t id), void *arg);
