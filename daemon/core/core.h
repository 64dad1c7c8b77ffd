/* The controller's decisions. Pure: no clock, descriptor, log or randomness. step(event, now) -> records + effects; the shell stores all records of a turn in one
 * synced transaction and only then carries out the effects. State changes only through records, so replay and the simulator run the same code.
 * After a crash: core_new, core_load (snapshot), core_update for each later record, then EV_START. */
#pragma once
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "daemon/core/view/view.h"
#include "lib/base/error.h"

struct core;
struct core_config {
	int64_t port_min, port_max;        /* rank_ports, four in a row are taken */
	int64_t beat_us;                   /* 1 s */
	int64_t suspect_us, down_us;       /* silence: 2 beats (+ slack) -> suspect, 10 s -> down. Never proof of death. */
	int64_t exit_wait_us;              /* one rank's exit 0 waits 300 s for the rest */
	int64_t learn_us;                  /* health.learn, 7 days from when a node is first heard; 0 = none */
};
extern const struct core_config core_config_default;

enum core_event_type {
	EV_START,        /* controller start after replay: new epoch */
	EV_CLOCK,        /* before EV_START, and when time is found wrong: text = boot id, value = its CLOCK_BOOTTIME, flag = synchronised, job = shift, when = what to tell or NULL */
	EV_TICK,         /* core_deadline() was reached */
	EV_LATE,         /* value us: the turn came that much late; liveness deadlines move by it */
	EV_SUBMIT,       /* submit; flag = its content may be taken over (it is left empty then), which saves a copy */
	EV_CANCEL,       /* job, flag = now */
	EV_PAUSE, EV_RESUME,
	EV_RESTART,      /* job, value = from iteration or MO_NONE */
	EV_DRAIN,        /* node, text = reason, when = idle|checkpoint|now */
	EV_UNDRAIN,      /* node */
	EV_ACK,          /* node, text = check whose findings are known; NULL = the node's time of learning is over */
	EV_FENCE,        /* node, text = boot id that the person saw, NULL = any: refused when the node booted since */
	EV_HELLO,        /* hello; reply_welcome in the effect; flag = its token has expired */
	EV_SYNC,         /* sync (notes, progress, scans): always a beat; flag as of a hello */
	EV_NEWS,         /* the same struct: what somebody waits for: urgent notes, scans, health */
	EV_TOKEN,        /* token with everything filled; with token->from: traded for that one, if it is still good for it */
	EV_TOKEN_REVOKE, /* text = id */
	EV_TOKEN_USED,   /* text = id: the first word of a node with it */
	EV_REFUSED,      /* user, via; text = what was asked for and why it was refused */
	EV_RESOLVE,      /* job, value = attempt, when = kill|gone, node = one node or NULL: what becomes of steps on which controller and node disagree */
	EV_CONFIG,       /* job, value = attempt, config: the answer to FX_CONFIG */
	EV_STORE,        /* the shell tells of its store: when = event type (store.full, store.slow, store.snapshot, store.ok), text = message */
	_EV_N
};
struct core_event {
	int type;
	int64_t request;                   /* the shell's handle of whoever waits for the answer; 0 = nobody */
	int64_t job, value; bool flag;
	const char *node, *text, *when;
	const char *user; bool may_all;    /* acting user; may_all: operator/admin: may act on other users' jobs */
	const char *via;                   /* how he was known: "token 1f2e3d4c", "socket", "session of token ..." */
	struct submit *submit;             /* borrowed */
	const struct agent_hello *hello;
	const struct agent_sync *sync;
	const struct token *token;
	const struct config_read *config;
};
enum effect_type {
	FX_REPLY,        /* request, status (HTTP: 200 201 403 404 409 422 429 ...), job, text = problem detail (what; why; what to do) or NULL */
	FX_WELCOME,      /* request, welcome */
	FX_ACK,          /* request: answer a news at once: reply {epoch, acks} from core_sync_reply() */
	FX_WAKE,         /* node: a command became due: answer its held sync now with core_sync_reply() */
	FX_CONFIG,       /* job: judge what its node read of the engine's own configuration (job.config): EV_CONFIG; again at the next start */
	FX_EVENT,        /* event seq in value: to the stream */
	FX_LOG,          /* level, text, job, node */
};
struct effect {
	int type; int64_t request; int status; int64_t job, value; char *node, *text; int level;
	struct agent_welcome *welcome;
};
extern const struct mo_desc effect_desc;
struct core_out {
	struct record *records; size_t n_records;
	struct effect *effects; size_t n_effects;
};
void core_out_done(struct core_out *out);

struct core *core_new(const struct core_config *config);
void core_free(struct core *core);
MO_DEFINE_CLEANUP(struct core, core_free)
const struct state *core_state(const struct core *core);
/* Takes over a decoded snapshot (state is emptied). */
void core_load(struct core *core, struct state *state);
/* For the shell's quarantine, outside of turns. Takes a job out of the state; *ret (initialised, or NULL) gets it, and
 * stays as it is when there is none yet. Its id is given to no other, and what nodes hold of it they keep. */
void core_take_out(struct core *core, int64_t job, struct job *ret);
bool core_is_out(const struct core *core, int64_t job);
/* Puts it back and takes its content. -EINVAL with err: it was not taken out, or what it has is another's by now. */
int core_put_back(struct core *core, struct job *job, struct mo_error *err);
/* n records of starts cannot be read: their epochs were used. */
void core_epochs_lost(struct core *core, int64_t n);
/* Applies one stored record. -EINVAL: version or content this program does not understand (the shell then refuses to start). */
int core_update(struct core *core, const struct record *record);
/* One event. Appends to out. now: core time in us, never decreasing but by EV_CLOCK, the first event of its turn. Never fails: bad input becomes a reply. */
void core_step(struct core *core, const struct core_event *event, int64_t now, struct core_out *out);
/* Core time of the next tick; INT64_MAX = none. */
int64_t core_deadline(const struct core *core);
/* What a sync of this node is answered with now: acknowledgements of the node's steps and all due commands. Empty commands = hold until the beat. */
void core_sync_reply(const struct core *core, const char *node, struct sync_reply *ret);
/* The acknowledgements alone, for the answer to news: commands travel on the sync, and what was not sent must stay due. */
void core_acks(const struct core *core, const char *node, struct sync_reply *ret);
bool core_commands_due(const struct core *core, const char *node);
/* Newest sensor values of the node's GPUs and cards, NULL when there are none of the last 30 s (of cards: two minutes). */
const struct gpu_sensors *core_sensors(const struct core *core, const char *node, int64_t now, size_t *ret_n);
const struct nic_sensors *core_nics(const struct core *core, const char *node, int64_t now, size_t *ret_n);
/* What the job's GPUs and cards were last seen to do, as lines: a summary, then each GPU, the least active ones of a large job. Nothing when nothing is known. */
void core_readings(const struct core *core, const struct job *j, int64_t now, char ***texts, size_t *n_texts);
/* Adds them to the reasons of a job that makes no progress. */
void core_why_readings(const struct core *core, const struct job *j, int64_t now, struct why_view *ret);
int64_t core_health_muted(const struct core *core);   /* changes of findings that were not told as events since the start */
int64_t core_cordoned(const struct core *core);       /* nodes that are drained because of a finding */
