/* Inside of lib/http, from below: guard.c (who may keep a connection), door.c (who may not come in
 * now), held.c (what is answered later), pump.c (runs MHD), represent.c (tags, gzip), road.c
 * (roads, as bytes), route.c (the table), strict.c (of a head) <- reply.c (answers and streams) <-
 * ended.c (what nobody waits for any more) <- frames.c (what comes by roads) <- request.c (checks
 * before the handler) <- server.c (listeners). */
#pragma once
#include <microhttpd.h>
#include <sys/types.h>
#include <uthash.h>
#include "lib/http/server.h"
#include "lib/http/tls.h"

#define HTTP_SEGMENTS_MAX 8
#define HTTP_STREAM_BACKLOG_MAX (1024 * 1024)
/* Per connection, headers included: 12,500 agents fit in 100 MB. */
#define HTTP_CONNECTION_MEMORY 8192

struct listener {
	struct http_server *server;
	struct MHD_Daemon *mhd;
	sd_event_source *io;
	bool local;                     /* UNIX socket */
	int64_t n_connections, n_users; /* n_users: of users and viewers */
};
/* Where connections come from: see guard.c. */
#define SOURCE_NAME 64
struct source {
	char name[SOURCE_NAME];
	int64_t n_connections, n_strangers;
	/* CLOCK_MONOTONIC: when its wrong credentials are forgiven. */
	int64_t wrong_until_us;
	int64_t n_wrong, reported_us; /* since it was reported */
	UT_hash_handle hh;
};
/* Whoever may not have all connections: a user or viewer (whatever his tokens and addresses), or
 * the agent of a node. */
#define CLIENT_NAME 80
struct client {
	char name[CLIENT_NAME];
	bool user;
	int64_t n_connections, n_held; /* n_held: its requests that are held or streamed */
	int64_t turn;                  /* of its next request that has to wait */
	UT_hash_handle hh;
};
/* One client connection: lives from accept to close. */
struct connection {
	struct connection *prev, *next;
	struct connection *older, *newer; /* server->strangers */
	struct listener *listener;
	struct source *source;
	/* Of its last request; NULL: nobody is known, or he is not limited. */
	struct client *client;
	bool stranger; /* has not shown an accepted credential */
	int64_t since_us;
	int fd;
	/* CLOCK_MONOTONIC; 0 = none while a request is held or streamed. */
	int64_t deadline_us;
	bool peer_known;
	struct http_caller peer; /* UNIX: from SO_PEERCRED */
	char peer_user[64];
	char address[64];
	/* The request line of the request that begins has a % that is none, or %00; no UTF-8, or
	 * control characters. */
	bool bad_escape, bad_text;
	const char *uri_end; /* of that line; only to be compared with */
};
struct http_request {
	struct http_server *server;
	struct MHD_Connection *mhd;
	struct connection *connection;
	uint64_t id;
	const struct http_route *route;
	const char *method;
	char *path;
	char *segments_text; /* path cut at its slashes */
	const char *segments[HTTP_SEGMENTS_MAX];
	size_t n_segments;
	struct http_caller caller;
	struct client *client;
	char user[64], token_id[64];
	struct mo_buf body;
	size_t received;
	/* Answered inside its body: the rest is dropped, then the connection is closed. */
	bool cut;
	/* answer */
	struct MHD_Response *response; /* made, not yet queued */
	int status;
	/* started: the handler ran; registered: in server->held. */
	bool answered, queued, started, registered;
	bool inside;                      /* counted by door.c */
	struct http_request *prev, *next; /* server->waiting; of frames: roads_waiting */
	bool waits, waited, resumed;
	int64_t turn;
	/* stream */
	/* suspended: MHD does not look at the connection; resume after every change. */
	bool stream, stream_ended, suspended;
	struct mo_buf backlog;
	size_t backlog_start; /* sent up to here */
	void (*gone)(void *arg, uint64_t id);
	void *gone_arg;
	void (*drained)(void *arg, uint64_t id);
	void *drained_arg;
	/* It became a road, or came by a frame of one (road.c); handled: its handler has
	 * returned. */
	struct road *road;
	uint32_t frame_id;
	bool handled;
	int64_t after_s; /* of a refusal that does not last; 0 none */
	UT_hash_handle hh;
};
/* Of a route that anybody may ask: its newest answer, as gzip; see represent.c. */
#define REPRESENT_TAG_MAX 40
struct packed {
	char of[REPRESENT_TAG_MAX];
	struct mo_buf bytes;
};
/* Of a route: see door.c. */
struct door {
	int64_t inside;  /* that came whole and are not answered */
	int64_t left_us; /* when one of a crowd was answered last; 0: there is none */
	int64_t pace_ns; /* from one answer to the next, in the mean */
	int64_t room_us; /* when there is room for one more */
};
struct http_server {
	sd_event *loop;
	struct http_server_config config;
	char *host_name;
	struct listener tcp, local;
	sd_event_source *defer, *timer, *sweep;
	struct http_request *held; /* held requests and streams, by id */
	/* Complete, for a handler that has its turn in a later pump: in the order of turns, first
	 * come first served in each. A client has one request in a turn, so that who sends many
	 * waits for himself; who is not limited is in the present one. */
	struct http_request *waiting;
	struct door *doors;    /* of each route */
	struct packed *packed; /* likewise */
	int64_t turn;          /* of the newest that was taken */
	int64_t n_resumed;     /* that have their turn now and did not run yet */
	int64_t pump_began_ns; /* CPU time of this thread */
	struct road *roads;
	sd_event_source *roads_source; /* NULL: there was none yet */
	int roads_epoll;
	char *roads_buffer;
	sd_event_source *roads_defer;
	struct http_request *roads_waiting; /* whole frames whose handlers come later */
	struct connection *connections;
	struct connection *strangers;                    /* in the order of their coming */
	struct source *sources;                          /* by name */
	struct client *clients;                          /* by name */
	int64_t n_strangers, max_connections, max_total; /* of one listener, of all */
	int64_t reported_us, n_reported;
	int64_t port, idle_us;
	uint64_t next_id;
	bool quitting;
	char *unix_path;
	struct tls_pair *pair; /* TCP with TLS */
	struct http_stats stats;
};
