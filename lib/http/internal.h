/* Inside of lib/http, from below: guard.c (who may keep a connection), held.c (what is answered
 * later), pump.c (runs MHD), route.c (the table), strict.c (of a head) <- reply.c (answers and
 * streams) <- ended.c (what nobody waits for any more) <- request.c (checks before the handler)
 * <- server.c (listeners). */
#pragma once
#include <microhttpd.h>
#include <sys/types.h>
#include <uthash.h>
#include "lib/http/server.h"
#include "lib/http/tls.h"

#define HTTP_SEGMENTS_MAX 8
#define HTTP_STREAM_BACKLOG_MAX (1024 * 1024)
#define HTTP_CONNECTION_MEMORY 8192      /* per connection, headers included: 12,500 agents fit in 100 MB */

struct listener {
	struct http_server *server;
	struct MHD_Daemon *mhd;
	sd_event_source *io;
	bool local;                          /* UNIX socket */
	int64_t n_connections, n_users;      /* n_users: of users and viewers */
};
/* Where connections come from: see guard.c. */
#define SOURCE_NAME 64
struct source {
	char name[SOURCE_NAME];
	int64_t n_connections, n_strangers;
	int64_t wrong_until_us;              /* CLOCK_MONOTONIC: when its wrong credentials are forgiven */
	int64_t n_wrong, told_us;            /* since it was told */
	UT_hash_handle hh;
};
/* Whoever may not have all connections: a user or viewer (whatever his tokens and addresses), or the agent of a node. */
#define CLIENT_NAME 80
struct client {
	char name[CLIENT_NAME];
	bool user;
	int64_t n_connections, n_held;       /* n_held: its requests that are held or streamed */
	UT_hash_handle hh;
};
/* One client connection: lives from accept to close. */
struct connection {
	struct connection *prev, *next;
	struct connection *older, *newer;    /* server->strangers */
	struct listener *listener;
	struct source *source;
	struct client *client;               /* of its last request; NULL: nobody is known, or he is not limited */
	bool stranger;                       /* has not shown an accepted credential */
	int64_t since_us;
	int fd;
	int64_t deadline_us;                 /* CLOCK_MONOTONIC; 0 = none while a request is held or streamed */
	bool peer_known;
	struct http_caller peer;             /* UNIX: from SO_PEERCRED */
	char peer_user[64];
	char address[64];
	bool bad_escape, bad_text;           /* the request line of the request that begins has a % that is none, or %00; no UTF-8, or control characters */
	const char *uri_end;                 /* of that line; only to be compared with */
};
struct http_request {
	struct http_server *server;
	struct MHD_Connection *mhd;
	struct connection *connection;
	uint64_t id;
	const struct http_route *route;
	const char *method;
	char *path;
	char *segments_text;                 /* path cut at its slashes */
	const char *segments[HTTP_SEGMENTS_MAX];
	size_t n_segments;
	struct http_caller caller;
	struct client *client;
	char user[64], token_id[64];
	struct mo_buf body;
	size_t received;
	bool cut;                            /* answered inside its body: the rest is dropped, then the connection is closed */
	/* answer */
	struct MHD_Response *response;       /* made, not yet queued */
	int status;
	bool answered, queued, started, registered; /* started: the handler ran; registered: in server->held */
	struct http_request *prev, *next;    /* server->waiting */
	bool waits, waited;
	/* stream */
	bool stream, stream_ended, suspended;  /* suspended: MHD does not look at the connection; resume after every change */
	struct mo_buf backlog;
	size_t backlog_start;                /* sent up to here */
	void (*gone)(void *arg, uint64_t id);
	void *gone_arg;
	void (*drained)(void *arg, uint64_t id);
	void *drained_arg;
	UT_hash_handle hh;
};
struct http_server {
	sd_event *loop;
	struct http_server_config config;
	char *host_name;
	struct listener tcp, local;
	sd_event_source *defer, *timer, *sweep;
	struct http_request *held;           /* held requests and streams, by id */
	struct http_request *waiting;        /* complete, for a handler that has its turn in a later pump: first come, first served */
	int64_t pump_began_ns;               /* CPU time of this thread */
	struct connection *connections;
	struct connection *strangers;        /* in the order of their coming */
	struct source *sources;              /* by name */
	struct client *clients;              /* by name */
	int64_t n_strangers, max_connections, max_total;   /* of one listener, of all */
	int64_t told_us, n_told;
	int64_t port, idle_us;
	uint64_t next_id;
	bool quitting;
	char *unix_path;
	struct tls_pair *pair;               /* TCP with TLS */
	struct http_stats stats;
};

/* route.c. Fills r->segments from r->path; false when there are too many. */
bool route_split(struct http_request *r);
/* The route of r's method and path. NULL: not found, or, with *ret_path set to a route of that path, another method. */
const struct http_route *route_find(const struct http_server *s, const struct http_request *r, const struct http_route **ret_path);
/* "GET, POST" of the methods that path has. */
void route_allow(const struct http_server *s, const struct http_request *r, struct mo_buf *b);

/* guard.c. */
void guard_arrived(struct connection *c);
/* The credential of r was accepted. NULL, or why its user may not have this connection (429); caller frees. */
char *guard_accepted(struct http_request *r);
void guard_left(struct connection *c);
/* Microseconds that the connection gets for its next request. */
int64_t guard_patience(const struct connection *c);
void guard_sweep(struct http_server *s, int64_t now_us);
void guard_done(struct http_server *s);
/* The request's credential is wrong; true: one too many of its source. */
bool guard_wrong(struct http_request *r);
/* As configured, as far as the descriptors of this process allow. */
int64_t guard_connections_max(int64_t configured);

/* strict.c. What is wrong with the head: it could be understood in two ways, by us and by a proxy before us. NULL: nothing. */
const char *strict_head(struct http_request *r, const char *version);
/* MHD's unescaping: in place, to the length of the result. */
size_t strict_unescape(void *cls, struct MHD_Connection *mhd, char *s);
/* MHD's look at the request line before it is taken apart; NULL. */
void *strict_line(void *cls, const char *uri, struct MHD_Connection *mhd);

/* request.c */
enum MHD_Result request_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method, const char *version, const char *data, size_t *n, void **con_cls);
void request_completed(void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode code);

/* held.c: http_find() finds it from then on, until then. */
void held_add(struct http_request *r);
void held_remove(struct http_request *r);

/* ended.c */
/* The token of r may do nothing any more. */
bool ended_token(const struct http_request *r);
/* Ends what is held or streamed for users who have gone. */
void ended_clients(struct http_server *s);

/* reply.c */
/* 401, with the scheme. */
void reply_refuse(struct http_request *r, const char *detail);
/* An answer while the body is still coming: MHD takes none then, so it is written past it. The connection has to be closed after it. */
void reply_cut(struct http_request *r, int status, const char *fmt, ...) _printf_(3, 4);
enum MHD_Result reply_queue(struct http_request *r);

/* pump.c */
int pump_begin(struct http_server *s);
int pump_watch(struct http_server *s, struct listener *l);
/* This pump took as long as one callback of the loop should. */
bool pump_spent(const struct http_server *s);
/* MHD has work that its epoll descriptor does not show (a resumed connection). */
void pump_later(struct http_server *s);
/* Now, and whatever waits for its turn too. */
void pump_all(struct http_server *s);
void pump_end(struct http_server *s);
