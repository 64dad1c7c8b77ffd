/* Followers of the event stream (GET /v1/events?follow=1, Server-Sent Events). */
#pragma once
#include "daemon/manager.h"

struct streams;
void streams_new(struct manager *m);
struct streams *streams_free(struct streams *s);
/* job MO_NONE, node "", type "" = all */
struct stream_filter {
	int64_t job;
	char node[64], type[64];
	/* Beside the events, whatever the filter: progress of this job, at most once a second and
	 * only when it moved; MO_NONE: of none. */
	int64_t progress;
};
/* Turns r into a stream of events with seq > after; one of type events.gone, which is not
 * stored, says how many of them are not kept. */
void streams_follow(struct manager *m, struct http_request *r, int64_t after,
		    const struct stream_filter *filter);
bool stream_wants(const struct stream_filter *f, const struct event *e);
/* How many events after this seq are not held any more that may have passed the filter: exact
 * without one, and for one job or node from its beginning; of a type, the most it can be. */
int64_t stream_gone(const struct state *s, const struct stream_filter *f, int64_t after);
/* Sends what is new; at the end of each turn, when its events are durable. */
void streams_flush(struct manager *m);
/* Ends what is streamed (logs too) or held for tokens that were revoked or have expired; after
 * token changes and when a token expires. */
void streams_check(struct manager *m);
