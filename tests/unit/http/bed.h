/* A server with routes of every kind on one loop, and clients that speak to it by real sockets. For
 * all test_*.c of this room. */
#pragma once
#include "tests/unit/unit.h"

#include <stdio.h>

#include "lib/base/buf.h"
#include "lib/http/server.h"

#define PATIENCE_US 20000000
#define SLOW_NS 6000000 /* CPU time of GET /v1/slow: longer than a pump may take */
#define TCP "\r\nHost: 127.0.0.1"
#define AS(role) TCP "\r\nAuthorization: Bearer " role
#define LARGE 4000
#define POST "POST /v1/things HTTP/1.1" AS("user")
#define JSON "\r\nContent-Type: application/json"

struct http_bed {
	sd_event *loop;
	struct http_server *server;
	char dir[64];                        /* its socket is there, as "sock" */
	const char *peer_name, *bearer_name; /* who calls by the socket, and with a token */
	bool token_alive;
	/* what the routes saw */
	char seen_user[64], seen_body[64], seen_param[64], seen_query[64];
	enum role seen_role;
	char large;       /* of which letter /v1/large has LARGE; 0: a */
	char served[64];  /* by /v1/slow: the first letters of its callers; ! by /v1/prompt */
	uint64_t held_id; /* of the newest held request or stream */
	int gone_calls, wrong_calls, holds;
	int64_t wrong_n;
	char wrong_source[64];
};
extern struct http_bed bed;
extern const struct http_route bed_routes[];

int bed_setup(void **state);
int bed_setup_impatient(void **state); /* a second is long for it */
int bed_teardown(void **state);

/* Connections: by the socket or by TCP; by TCP from 127.0.0.N. */
int dial(bool local);
int dial_from(int n);
/* Runs the loop once and reads what came; true at the end of the connection. */
bool receive(int fd, struct mo_buf *b);
void wait_for(int fd, struct mo_buf *b, const char *words);
void wait_closed(int fd, struct mo_buf *b);
void put(int fd, const char *text);
/* Sends a head (lines without the last empty one) on an open connection; the status, or 0 when it
 * was closed instead. */
int say(int fd, const char *head);
/* The same with a connection of its own and a body, and it is answered. */
int ask(bool local, const char *head, const char *body);
#define expect(status, head, body) assert_int_equal(ask(false, head, body), status)
