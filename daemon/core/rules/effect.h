/* What leaves the core at the end of a turn: an effect is a head, whom it concerns, and for some
 * types one described struct. The shell carries effects out in their order once the records of the
 * turn are stored (daemon/effects.c); the simulator does as much for its virtual agents. */
#pragma once
#include "lib/model/job.h"
#include "lib/model/message.h"

enum effect_type {
	/* request, reply; job: the one that was submitted or changed; of IN_PREFETCH its number */
	FX_REPLY,
	FX_WELCOME, /* request, node, welcome */
	/* request, node: answer urgent notes at once: {epoch, acks} of core_sync_reply() */
	FX_ACK,
	/* request, node: a sync was taken: hold it until FX_WAKE of its node, or until the beat has
	 * passed: then answer it with core_sync_reply() */
	FX_HOLD,
	FX_WAKE, /* node: a command became due: answer its held sync with core_sync_reply() */
	/* job: judge what its node read of the engine's own configuration (job.config):
	 * IN_CONFIG; again at the next start */
	FX_CONFIG,
	/* node: power it off by the site's fence_command: IN_POWER; again at the next start */
	FX_POWER,
	FX_EVENT, /* event: for the log; the streams read state */
	_FX_N
};
extern const char *const effect_type_names[_FX_N];

struct effect_reply {
	int64_t status; /* HTTP: 200 201 403 404 409 422 429 ... */
	char *text;     /* problem detail (what; why; what to do), or NULL */
	/* of a refusal: sooner than that it would be refused again; MO_NONE: nobody knows */
	int64_t after_s;
};
struct effect_event {
	int type; /* enum event_type */
	struct event *event;
};
struct effect {
	int type;
	int64_t request; /* the shell's handle of who waits for the answer */
	int64_t job;
	char *node;
	struct effect_reply *reply;
	struct agent_welcome *welcome;
	struct effect_event *event;
};
extern const struct mo_desc effect_desc, effect_reply_desc, effect_event_desc;
