/* What goes into a turn and what comes out of it: an event of the shell becomes records, which
 * the shell stores, and effects, which it carries out once they are stored. Plain values without
 * behaviour. */
#pragma once
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "lib/model/event_type.h"

enum core_event_type {
	EV_START, /* controller start after replay: new epoch */
	/* before EV_START, and when time is found wrong: text = boot id, value = its
	 * CLOCK_BOOTTIME, flag = synchronised, job = shift, when = what to tell or NULL */
	EV_CLOCK,
	EV_TICK, /* core_deadline() was reached */
	EV_LATE, /* value us: the turn came that much late; liveness deadlines move by it */
	/* submit; flag = its content may be taken over (it is left empty then), which saves a
	 * copy */
	EV_SUBMIT,
	EV_CANCEL, /* job, flag = now */
	EV_PAUSE,
	EV_RESUME,
	EV_RESTART, /* job, value = from iteration or MO_NONE */
	EV_DRAIN,   /* node, text = reason, when = idle|checkpoint|now */
	EV_UNDRAIN, /* node */
	/* node, text = check whose findings are known; NULL = the node's time of learning is
	 * over */
	EV_ACK,
	/* node, text = boot id that the person saw, NULL = any: refused when the node booted
	 * since */
	EV_FENCE,
	EV_HELLO, /* hello; reply_welcome in the effect; flag = its token has expired */
	EV_SYNC,  /* sync (notes, progress, scans): always a beat; flag as of a hello */
	EV_NEWS,  /* the same struct: what somebody waits for: urgent notes, scans, health */
	/* token with everything filled; with token->from: traded for that one, if it is still
	 * good for it */
	EV_TOKEN,
	EV_TOKEN_REVOKE, /* text = id */
	EV_TOKEN_USED,   /* text = id: the first word of a node with it */
	EV_REFUSED,      /* user, via; text = what was asked for and why it was refused */
	/* job, value = attempt, when = kill|gone, node = one node or NULL: what becomes of steps
	 * on which controller and node disagree */
	EV_RESOLVE,
	EV_CONFIG, /* job, value = attempt, config: the answer to FX_CONFIG */
	/* the shell tells of its store, or of a node: value = enum event_type, text = message,
	 * node */
	EV_STORE,
	_EV_N
};
struct core_event {
	int type;
	/* the shell's handle of whoever waits for the answer; 0 = nobody */
	int64_t request;
	int64_t job, value;
	bool flag;
	const char *node, *text, *when;
	/* acting user; may_all: operator/admin: may act on other users' jobs */
	const char *user;
	bool may_all;
	/* how he was known: "token 1f2e3d4c", "socket", "session of token ..." */
	const char *via;
	struct submit *submit; /* borrowed */
	const struct agent_hello *hello;
	const struct agent_sync *sync;
	const struct token *token;
	const struct config_read *config;
};
enum effect_type {
	/* request, status (HTTP: 200 201 403 404 409 422 429 ...), job, text = problem detail
	 * (what; why; what to do) or NULL */
	FX_REPLY,
	FX_WELCOME, /* request, welcome */
	/* request: answer a news at once: reply {epoch, acks} from core_sync_reply() */
	FX_ACK,
	/* request: a sync was taken: hold it until FX_WAKE of its node, or until the beat has
	 * passed: then answer it with core_sync_reply() */
	FX_HOLD,
	/* node: a command became due: answer its held sync now with core_sync_reply() */
	FX_WAKE,
	/* job: judge what its node read of the engine's own configuration (job.config):
	 * EV_CONFIG; again at the next start */
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
