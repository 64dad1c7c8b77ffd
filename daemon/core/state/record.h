/* Records: accepted inputs and decisions, in order, versioned. The only thing that changes
 * state. The head says what, when, and whom it is about; what happened stands in the one member
 * that belongs to its type, so that a stored log explains itself:
 * {"v":2,"type":"fail","t":...,"job":7,"attempt":2,"node":"n4","fail":{"class":...}}.
 * A stored record can be read, as far as its version, by a moed that knows version 1 only, which
 * then refuses it by name: no key may have another kind of value than it had there
 * (record_v1.h), so the members of "job" and "node" are called transition and hello. */
#pragma once
#include "daemon/core/state/state.h"

#define RECORD_VERSION 2
enum record_type {
	REC_CONTROLLER, /* a controller started; every node becomes unreconciled */
	REC_SUBMIT,     /* job = new id */
	REC_JOB,        /* transition (table in transitions.c), or a new reason */
	REC_INTENT,
	REC_SCAN, /* attempt: an answer about what lies in checkpoint.dir */
	REC_PLACE,
	REC_ACCEPT,
	REC_NOTES,     /* attempt, node: applied above through */
	REC_FAIL,      /* attempt, node: it failed (decided once) */
	REC_GONE,      /* attempt, node: proof without a note (boot id, fence) */
	REC_FORGOTTEN, /* attempt, node; no more to say */
	REC_NODE,      /* hello: node registered or came back */
	REC_NODE_STATE,
	REC_DRAIN,
	REC_WAIT_NODE,
	REC_STRANGE, /* node holds steps we never stored */
	REC_HUNG,    /* attempt, node */
	REC_INCIDENT,
	REC_CHECKPOINT, /* state of one checkpoint decided (complete, torn, superseded ...) */
	REC_TOKEN,
	REC_TOKEN_REVOKED,
	REC_EVENT,
	REC_HEALTH, /* node: replaces what its agent reported before */
	REC_CHECK,  /* attempt: the wait for its nodes' on-failure checks */
	REC_MEASURED,
	REC_CLOCK,
	REC_TOKEN_USED, /* its node has spoken with it */
	REC_NODE_TOKEN,
	REC_ACK, /* node: findings that an operator knows of: they keep no job away in this boot */
	REC_RESTORED, /* a new incarnation begins */
	REC_OBEYS,    /* node */
	REC_DISCARD,  /* attempt, node: an operator wants this unknown step ended */
	REC_LEAVING,  /* node */
	/* attempt, node: what that node read of the engine's own configuration was judged */
	REC_CONFIG,
	REC_IMAGE,     /* node: what the recipe names is that image, from now on */
	REC_POWER,     /* node */
	REC_HANG,      /* attempt: whether it hangs */
	REC_STRAGGLER, /* attempt: which rank makes it slow */
	REC_HISTORY,   /* what is too old leaves */
	REC_SPARE,     /* job, node: it is kept for the job, or no more */
	REC_FABRIC,    /* what a check of the fabric over the job's nodes found */
	_REC_N
};
extern const char *const record_type_names[_REC_N];

struct rec_controller {
	int64_t epoch;
	/* until when jobs of a restored state wait for their nodes: at its first start only */
	int64_t restored_wait;
};
enum follows { FOLLOWS_NOTHING, FOLLOWS_FAILURE, FOLLOWS_BUSY_PORTS, _FOLLOWS_N };
struct rec_job {
	int state; /* enum job_state */
	char *reason;
	bool attempt_over; /* its GPUs are free */
	int follows;       /* what the next attempt comes after */
	bool image;        /* places are kept for it until they have its image */
	int64_t pause_us;  /* until it may; MO_NONE none */
};
struct rec_intent {
	int intent; /* enum intent */
	bool now;
	int64_t restart_from; /* iteration */
};
struct rec_place {
	int64_t port, resume; /* iteration; -1 fresh */
	bool is_restart;      /* it counts as one */
	struct place *places;
	size_t n_places;
	char **boot_ids; /* of the nodes, in the order of places */
	size_t n_boot_ids;
};
/* The agent has the launch; acts: and carries it out, or, as it turned out, has it only. */
struct rec_accept {
	bool acts;
};
struct rec_fail {
	int64_t first_rank;
	char *class, *cause;
	char **evidence;
	size_t n_evidence;
	int64_t told_after_us; /* from the death to its being reported */
};
struct rec_gone {
	char *how;
};
struct rec_hello {
	struct agent_hello said;
	int64_t learn_until; /* of a node that is new: its findings cordon it from then on */
};
struct rec_node_state {
	int state; /* enum node_state: UP SUSPECT DOWN */
	char *reason;
};
enum drain_step {
	DRAIN_OFF,
	DRAIN_ON,
	DRAIN_DONE,  /* no rank is left */
	DRAIN_CHECK, /* until: back when its GPUs were tried; none: not, `reason` */
	_DRAIN_STEP_N
};
struct rec_drain {
	int step;
	char *reason, *when;
	char *finding;        /* that makes it; NULL: an operator */
	bool broken_hardware; /* which the finding proves */
	int64_t until;        /* of a check; MO_NONE: it is over */
};
struct rec_wait_node {
	bool waits;
};
struct rec_strange {
	bool holds_unknown; /* a step that we never stored */
	char **living;      /* names of such steps */
	size_t n_living;
	bool fenced; /* whatever was there is dead */
};
/* missing: hung, because the node's agent does not know the step any more */
enum reach { REACH_ANSWERS, REACH_HUNG, REACH_MISSING, _REACH_N };
struct rec_hung {
	int reach;
};
struct rec_incident {
	struct incident details;
	char *signature;
	int64_t in_a_row;          /* failures with it */
	int64_t newest_checkpoint; /* complete */
	bool uncounted;            /* the job waits for what is outside it */
	struct skip *skip;         /* data that later attempts leave out; NULL: none more */
};
/* put_out: a node's, by hand: its name is out */
struct rec_token_revoked {
	char *id;
	bool put_out;
};
/* waits: nodes make their checks and are waited for until then; else that is over and findings
 * are what they found. later: findings are what a node told of the failure after all was decided,
 * whatever is waited for; broken: its part is, and the next attempts avoid it */
struct rec_check {
	bool waits, later, broken;
	char **nodes;
	size_t n_nodes;
	int64_t until;
	bool thorough; /* with the programs of doubt, on node `doubted`; NULL: on all */
	char *doubted;
	char **findings;
	size_t n_findings;
};
/* run: what the job does against its plan */
struct rec_measured {
	struct measured run;
	bool calibrates; /* later plans */
};
/* boottime_us: CLOCK_BOOTTIME of that boot at the record's time */
struct rec_clock {
	char *boot_id;
	int64_t boottime_us, shift_us; /* shift of time (clock.h) */
	bool synchronised;             /* a time service vouches for the wall clock */
};
struct rec_token_used {
	char *id;
};
struct rec_node_token {
	bool expired; /* the node speaks with one that is */
};
struct rec_ack {
	char **findings;
	size_t n_findings;
	char *by;
	bool learning_over; /* its time of learning is; by NULL: by itself */
};
struct rec_restored {
	int64_t epoch;     /* before the first start of the new incarnation */
	int64_t backup_at; /* time of the backup */
	bool from_backup;  /* the state is that of one */
};
struct rec_obeys {
	int64_t epoch; /* that the node's agent obeyed, above ours */
};
struct rec_image {
	char *digest;
};
struct rec_hang {
	int stage; /* enum hang_stage */
	int64_t since, rank;
	bool acts;
	char *text, *recorder;
	char **evidence;
	size_t n_evidence;
};
struct rec_straggler {
	int64_t rank; /* MO_NONE: none stands out any more */
	int sign;     /* enum straggler_sign */
	double times, lost_pct;
	char *text;
	char **evidence;
	size_t n_evidence;
	bool alone; /* one source alone says so: nothing follows */
	bool left;  /* the job moves away from its node; nothing else is said then */
};
/* Ascending; who decided it (rules/history.c) names each, so that a later program with other rules
 * replays what was. */
struct rec_history {
	int64_t *jobs; /* that ended */
	size_t n_jobs;
	int64_t *events; /* by seq */
	size_t n_events;
};
/* enum power_step; text: what the command said */
struct rec_power {
	int step;
	char *text;
};
enum spare_step {
	SPARE_KEPT,
	SPARE_PASSED, /* its checks were made, and it serves */
	SPARE_LEFT,   /* reason */
	_SPARE_STEP_N
};
struct rec_spare {
	int step;
	char *reason;
};
/* The node's machine is going down in order, or does not after all. */
struct rec_leaving {
	bool leaving;
};

struct record {
	int64_t version;
	int type;
	int64_t time;
	int64_t job, attempt; /* whom it is about; MO_NONE and NULL where it is about no such */
	char *node;
	/* the one of its type; the others NULL */
	struct rec_controller *controller;
	struct submit *submit;
	struct rec_job *transition;
	struct rec_intent *intent;
	struct scan_result *scan;
	struct rec_place *place;
	struct rec_accept *accept;
	struct note *notes;
	size_t n_notes;
	struct rec_fail *fail;
	struct rec_gone *gone;
	struct rec_hello *hello;
	struct rec_node_state *node_state;
	struct rec_drain *drain;
	struct rec_wait_node *wait_node;
	struct rec_strange *strange;
	struct rec_hung *hung;
	struct rec_incident *incident;
	struct checkpoint *checkpoint;
	struct token *token;
	struct rec_token_revoked *token_revoked;
	struct event *event;
	struct node_health *health;
	struct rec_check *check;
	struct rec_measured *measured;
	struct rec_clock *clock;
	struct rec_token_used *token_used;
	struct rec_node_token *node_token;
	struct rec_ack *ack;
	struct rec_restored *restored;
	struct rec_obeys *obeys;
	struct rec_leaving *leaving;
	struct config_read *config;
	struct rec_image *image;
	struct rec_power *power;
	struct rec_hang *hang;
	struct rec_straggler *straggler;
	struct rec_history *history;
	struct rec_spare *spare;
	struct fabric_check *fabric; /* its time is the record's */
};
extern const struct mo_desc rec_incident_desc, rec_measured_desc, record_desc;

/* A record of now, with an empty member of its type where that is a rec_ struct; the others
 * (submit, scan, token ...) are given by the caller. r need not be initialised; freed with
 * mo_desc_done(&record_desc, r). */
void record_init(struct record *r, int type);
/* It has the member that its type needs. */
bool record_whole(const struct record *r);
