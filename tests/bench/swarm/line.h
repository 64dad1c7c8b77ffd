/* One connection of an emulated agent to the controller: HTTP/1.1 or, as agents do, frames (a
 * road), one request under way, nothing waits. It is opened by the first request and kept. Unlike
 * an agent's its news have a road of their own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"

enum line_state { LINE_CLOSED, LINE_CONNECTING, LINE_IDLE, LINE_ASKED };
struct line {
	int fd;
	enum line_state state;
	struct mo_buf out, in;
	size_t sent;
	/* bytes of out that ask for the road: the rest waits for its 101; 0: it stands */
	size_t gate;
	uint32_t source;   /* address it comes from */
	long long after_s; /* Retry-After of the newest answer; 0 none */
	int64_t asked_ns;  /* when the request under way was asked for; CLOCK_MONOTONIC */
	void *owner;
};

/* Where all lines go, one for each swarm. */
struct lines {
	int epoll;
	char *host, *token;
	int64_t port;
	bool roads;
	int64_t opened, cut; /* counts: connections that were made, and that the other side ended */
};

int lines_begin(struct lines *s, const char *address, const char *token);
/* Each owner has an address of its own of 127.0.0.0/8, as nodes have: what a server grants one
 * address is not what a fleet gets. */
void line_begin(struct line *l, void *owner, size_t index);
void line_done(struct line *l);
/* Asks for POST path with the body; the line must not be under way. */
void line_post(struct lines *s, struct line *l, const char *path, const struct mo_buf *body);
/* After epoll said something of it. 0: goes on. > 0: the status of an answer, whose body is
 * body[0..n) until the next call. < 0: the connection is gone, and the request with it. */
int line_step(struct lines *s, struct line *l, uint32_t events, const char **body, size_t *n);
void line_close(struct lines *s, struct line *l);
