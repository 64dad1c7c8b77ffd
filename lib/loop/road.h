/* A road to the controller: a connection on which messages go as frames (lib/base/frame.h) instead
 * of by HTTP, once the controller has said 101 to a request for it. lib/http/road.c is its other
 * end. */
#pragma once
#include "lib/loop/http_client.h"
#include "lib/base/frame.h"

struct mo_road;
struct mo_road_events {
	/* 101: it stands, frames may go. Another status: the other side has none. 0 with error: it
	 * was not reached. */
	void (*opened)(void *arg, int status, const char *error);
	/* An answer; body has answer->length bytes and is valid during the call. */
	void (*answered)(void *arg, const struct frame *answer, const char *body);
	/* One that stood is gone, with all that was not answered. */
	void (*lost)(void *arg, const char *error);
};
/* Begins to open one to call->url, with its token, ca_file, timeout_ms and max_body (of an answer);
 * the rest of call does not matter. events come from the loop, never at once; each may free the
 * road, and after opened (but for 101) and lost nothing else comes. Borrows http and events. */
int mo_road_new(sd_event *loop, struct mo_http *http, const struct mo_http_call *call,
		const struct mo_road_events *events, void *arg, struct mo_road **ret);
struct mo_road *mo_road_free(struct mo_road *k);
/* Of one that stands: f->length bytes of body, copied. */
void mo_road_send(struct mo_road *k, const struct frame *f, const void *body);
