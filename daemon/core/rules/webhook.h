/* Which events a webhook is sent, how many at once, and when it is tried again. Asked by the shell
 * outside of turns; what it sends and when it fails is no part of the state. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/model/webhook.h"

#define WEBHOOK_EVENTS_MAX 50
/* How far a webhook is: like a follower of the stream it reads the ring of events at its own pace,
 * so that nothing waits for it and nothing is queued. Times are the core's, in us. */
struct webhook_pace {
	int64_t next;     /* seq wanted next */
	int64_t due;      /* nothing is sent before */
	int64_t failures; /* in a row */
};
/* Borrows the events: until the state changes. */
struct webhook_batch {
	const struct event *events[WEBHOOK_EVENTS_MAX];
	size_t n;
	int64_t next;   /* seq wanted once these are delivered */
	int64_t missed; /* events that left the ring unread, of any type */
};
enum webhook_result {
	WEBHOOK_DELIVERED,
	WEBHOOK_REFUSED, /* the receiver does not take these, and never will */
	WEBHOOK_FAILED,  /* to be tried again */
	_WEBHOOK_RESULT_N
};
extern const char *const webhook_result_names[_WEBHOOK_RESULT_N];

bool webhook_wants(const struct webhook *w, const struct state *s, const struct event *e);
/* The oldest that it wants from seq `next` on. */
void webhook_batch(const struct webhook *w, const struct state *s, int64_t next,
		   struct webhook_batch *ret);
/* status of HTTP; MO_NONE: there was no answer */
enum webhook_result webhook_judge(int64_t status);
/* A delivery up to `next` has ended so. */
void webhook_ended(struct webhook_pace *p, enum webhook_result result, int64_t next, int64_t now);
