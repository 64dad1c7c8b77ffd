/* What goes into a turn and what comes out of it: an input (core_input.h) becomes records, which
 * the shell stores, and effects, which it carries out once they are stored. Plain values without
 * behaviour. */
#pragma once
#include "daemon/core/rules/core_input.h"

enum effect_type {
	/* request, status (HTTP: 200 201 403 404 409 422 429 ...), job, text = problem detail
	 * (what; why; what to do) or NULL */
	FX_REPLY,
	FX_WELCOME, /* request, welcome */
	/* request: answer an urgent message at once: reply {epoch, acks} from core_sync_reply() */
	FX_ACK,
	/* request: a sync was taken: hold it until FX_WAKE of its node, or until the beat has
	 * passed: then answer it with core_sync_reply() */
	FX_HOLD,
	/* node: a command became due: answer its held sync now with core_sync_reply() */
	FX_WAKE,
	/* job: judge what its node read of the engine's own configuration (job.config):
	 * IN_CONFIG; again at the next start */
	FX_CONFIG,
	FX_EVENT, /* event, event_type: for the log; the streams read state */
};
struct effect {
	int type;
	int64_t request;
	int status;
	int64_t job;
	char *node, *text;
	enum event_type event_type;
	struct event *event;
	struct agent_welcome *welcome;
};
extern const struct mo_desc effect_desc;
struct core_out {
	struct record *records;
	size_t n_records;
	struct effect *effects;
	size_t n_effects;
};
void core_out_done(struct core_out *out);
