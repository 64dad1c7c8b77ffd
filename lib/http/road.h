/* Roads, as bytes: see road.c. */
#pragma once
#include "lib/http/internal.h"
#include "lib/base/frame.h"

#define ROAD_READ_BYTES 32768

struct road {
	struct http_request *asked;                         /* what it began with: who speaks */
	gnutls_session_t tls;                               /* NULL: plain */
	struct http_request *requests[FRAME_UNDER_WAY_MAX]; /* that are not answered yet */
	size_t n_requests;
	struct mo_buf in;  /* the beginning of a frame */
	struct mo_buf out; /* what could not be sent yet, */
	size_t sent;       /* but for so much of it */
	/* CLOCK_MONOTONIC, 0 none: since when a frame comes in parts, an answer is not read. */
	int64_t partial_us, stuck_us;
	bool half_record; /* GnuTLS has to send the rest of a record before anything else */
	bool ended;
	struct road *prev, *next; /* server->roads */
};
/* A road of r's connection; road_gone() (frames.h) frees it. */
struct road *road_new(struct http_request *r);
/* When its connection is cut off unless something happens. */
void road_deadline(struct road *k);
/* The socket is shut down, and MHD asks for the connection again. */
void road_end(struct road *k);
/* n bytes as they are, now; false: the road has ended. */
bool road_write(struct road *k, const char *data, size_t n);
/* A frame, now or when the other end reads again. */
void road_say(struct road *k, const struct frame *f, const void *body);
/* What could not be sent before. */
void road_flush(struct road *k);
/* Up to ROAD_READ_BYTES; -EAGAIN: none now; 0, or another error: there will be none. */
ssize_t road_read(struct road *k, char *data);
/* Says the answer of a request that came by a frame. It is freed, unless its handler runs. */
void road_answer(struct http_request *r, const void *body, size_t n);
/* Of a frame; it is the road's until it is freed. */
void road_request_add(struct road *k, struct http_request *r);
void road_request_free(struct http_request *r);
/* Those of which that is true; NULL: all. */
void roads_end(struct http_server *s, bool (*which)(const struct http_request *asked));
