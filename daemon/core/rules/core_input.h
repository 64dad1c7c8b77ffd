/* What goes into a turn: one thing that the shell heard, as a described struct, so that it can be
 * printed, stored and decided again as JSON. Who makes an input owns it with all it points to;
 * core_decide() borrows it, and takes nothing but the content of `submit`. Plain values without
 * behaviour. */
#pragma once
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "lib/model/event_type.h"

enum core_input_type {
	IN_START, /* controller start after replay: new epoch */
	IN_CLOCK, /* before IN_START, and when time is found wrong */
	IN_TICK,  /* core_deadline() was reached */
	IN_LATE,  /* the turn came late */
	IN_SUBMIT,
	IN_CANCEL,
	IN_PAUSE,
	IN_RESUME,
	IN_RESTART,
	IN_DRAIN,
	IN_UNDRAIN,
	IN_ACK,
	IN_FENCE,
	IN_HELLO,  /* answered with FX_WELCOME */
	IN_SYNC,   /* notes, progress, scans: always a beat */
	IN_URGENT, /* the same message: what somebody waits for: urgent notes, scans, health */
	IN_TOKEN,
	IN_TOKEN_REVOKE,
	IN_TOKEN_USED,    /* the first word of a node with it */
	IN_REFUSED,       /* somebody was refused what he asked for */
	IN_RESOLVE,       /* what becomes of steps on which controller and node disagree */
	IN_CONFIG,        /* the answer to FX_CONFIG */
	IN_STORE,         /* the shell tells of its store, or of a node */
	IN_EXEC,          /* a command beside a rank */
	IN_PREFETCH,      /* nodes are to have an image before a job needs it */
	IN_IMAGES_REMOVE, /* images are to go from nodes */
	IN_POWER,         /* the answer to FX_POWER */
	IN_FABRIC,        /* what a check of the fabric over a job's nodes found */
	_IN_N
};
extern const char *const core_input_type_names[_IN_N];

/* Who asks. user NULL: the controller itself. */
struct in_caller {
	char *user;
	char *via;    /* how he was known: "token 1f2e3d4c", "socket", "session of token ..." */
	bool may_all; /* operator or admin: may act on other users' jobs */
};
struct in_clock {
	char *boot_id;
	int64_t boottime_us; /* CLOCK_BOOTTIME of that boot */
	bool synced;         /* the wall clock is */
	int64_t shift_us;    /* all stored times move by it */
	char *told;          /* what to say of it; NULL = nothing */
};
/* Liveness deadlines move by it. */
struct in_late {
	int64_t late_us;
};
struct in_cancel {
	int64_t job;
	bool now; /* without the stop signal's grace */
};
struct in_pause {
	int64_t job;
};
struct in_resume {
	int64_t job;
};
struct in_restart {
	int64_t job;
	int64_t from_iteration; /* MO_NONE = the newest checkpoint, 0 = afresh */
};
struct in_drain {
	char *node, *reason;
	char *when; /* idle, checkpoint or now; NULL = idle */
};
struct in_undrain {
	char *node;
	bool force; /* whatever its GPUs compute */
};
struct in_ack {
	char *node;
	char *check;  /* its findings are known */
	bool learned; /* instead: the node's time of learning is over */
};
struct in_fence {
	char *node;
	char *boot_seen; /* by the person: refused when the node booted since; NULL = any */
};
struct in_hello {
	struct agent_hello *message;
	bool token_expired;
};
struct in_sync {
	struct agent_sync *message;
	bool token_expired;
};
struct in_token_id {
	char *id;
};
struct in_refused {
	char *what; /* was asked for, and why it was refused */
};
struct in_resolve {
	int64_t job, attempt;
	char *how;  /* kill or gone */
	char *node; /* NULL = each */
};
struct in_config {
	int64_t job, attempt;
	struct config_read *read;
};
struct in_store {
	char *event; /* its type, such as store.slow */
	char *message;
	char *node; /* NULL = of none */
};
struct in_exec {
	int64_t job, rank;
	char **argv;
	size_t n_argv;
	bool admin; /* who asks is one: beside ranks of other users' jobs too */
};
struct in_prefetch {
	char *image, *auth_file; /* as in a recipe; auth_file NULL = none */
	char **nodes;
	size_t n_nodes; /* none: all that are up */
	bool allow_root;
};
struct in_images_remove {
	char *what; /* a digest, or a name */
	char **nodes;
	size_t n_nodes; /* none: all */
};
struct in_power {
	char *node, *boot_id; /* as it was when the command was run */
	bool off;
	char *text; /* of the command, or why it did not run */
};
struct in_fabric {
	int64_t job;
	struct fabric_result found; /* checked: fabric_result_problem() */
};
struct core_input {
	int type;        /* enum core_input_type */
	int64_t request; /* the shell's handle of whoever waits for the answer; 0 = nobody */
	struct in_caller by;
	/* the one of its type; START and TICK have none */
	struct in_clock *clock;
	struct in_late *late;
	struct submit *submit; /* its content goes into the job: it is empty then */
	struct in_cancel *cancel;
	struct in_pause *pause;
	struct in_resume *resume;
	struct in_restart *restart;
	struct in_drain *drain;
	struct in_undrain *undrain;
	struct in_ack *ack;
	struct in_fence *fence;
	struct in_hello *hello;
	struct in_sync *sync; /* SYNC, NEWS */
	/* with everything filled; with its `from`: traded for that one, if it is still good */
	struct token *token;
	struct in_token_id *token_id; /* TOKEN_REVOKE, TOKEN_USED */
	struct in_refused *refused;
	struct in_resolve *resolve;
	struct in_config *config;
	struct in_store *store;
	struct in_exec *exec;
	struct in_prefetch *prefetch;
	struct in_images_remove *images_remove;
	struct in_power *power;
	struct in_fabric *fabric;
};
extern const struct mo_desc core_input_desc, in_clock_desc, in_late_desc, in_cancel_desc,
	in_pause_desc, in_resume_desc, in_restart_desc, in_drain_desc, in_undrain_desc, in_ack_desc,
	in_fence_desc, in_hello_desc, in_sync_desc, in_token_id_desc, in_refused_desc,
	in_resolve_desc, in_config_desc, in_store_desc, in_exec_desc, in_prefetch_desc,
	in_images_remove_desc, in_power_desc, in_fabric_desc;
/* in need not be initialised; mo_desc_done(&core_input_desc, in) frees what it is given. */
void core_input_init(struct core_input *in, int type);
