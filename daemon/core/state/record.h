/* Records: accepted inputs and decisions, in order, versioned. The only thing that changes
 * state. One flat described struct; each type uses the fields named beside it. */
#pragma once
#include "daemon/core/state/state.h"

#define RECORD_VERSION 1
enum record_type {
	/* value = epoch: a controller started; every node becomes unreconciled; iteration =
	 * state.restored_wait at the first start of a restored state */
	REC_CONTROLLER,
	REC_SUBMIT, /* job = new id, submit */
	/* job, state, text = reason: transition (table in transitions.c); flag = the attempt is
	 * over: its GPUs are free; value = 1: the next attempt follows a failure, 2: follows
	 * busy ports */
	REC_JOB,
	REC_INTENT, /* job, value = intent, flag = now, iteration = restart --from */
	/* job, attempt, scan: what lies in checkpoint.dir; flag = the answer to an order to
	 * remove some (checkpoint.keep) */
	REC_SCAN,
	/* job, attempt, places, value = port, iteration = resume (-1 fresh), flag = it counts as
	 * a restart; boot ids in texts[] parallel to places */
	REC_PLACE,
	/* job, attempt, node, flag: the agent has the launch and acts on it (flag), or, as it
	 * turned out, has it only */
	REC_ACCEPT,
	REC_NOTES, /* job, attempt, node, notes: applied above through */
	/* job, attempt, rank = first rank, node, text = class, cause, texts = evidence, value =
	 * us from the death to its being told: the attempt failed (decided once) */
	REC_FAIL,
	/* job, attempt, node, text = how: proof without a note (boot id, fence) */
	REC_GONE,
	REC_FORGOTTEN,  /* job, attempt, node */
	REC_NODE,       /* hello: node registered or came back */
	REC_NODE_STATE, /* node, value = enum node_state (UP SUSPECT DOWN), text */
	/* node, flag = on, text = reason, cause = when, texts[0] = finding that makes it (none:
	 * an operator), texts[1] (any) = it proves broken hardware; value = 1: it is done, no
	 * rank is left */
	REC_DRAIN,
	REC_WAIT_NODE, /* job, flag */
	/* node, flag: holds a step we never stored, texts = its living ones; value = 1: fenced,
	 * whatever was there is dead */
	REC_STRANGE,
	/* job, attempt, node, flag; value = 1: its agent does not know it any more */
	REC_HUNG,
	/* job, incident, text = signature, value = failures of it in a row, iteration = newest
	 * complete checkpoint */
	REC_INCIDENT,
	/* job, checkpoint: state of one checkpoint decided (complete, torn, superseded ...) */
	REC_CHECKPOINT,
	REC_TOKEN,         /* token */
	REC_TOKEN_REVOKED, /* text = id; flag: a node's, by hand: its name is out */
	REC_EVENT,         /* event */
	REC_HEALTH,        /* node, health: replaces what its agent told before */
	/* job, attempt; flag: texts = nodes that make their on-failure checks, value = until
	 * when they are waited for; else that wait is over, texts = what was found */
	REC_CHECK,
	/* job, measured: what it does against its plan; flag = it calibrates later plans */
	REC_MEASURED,
	/* text = boot id, iteration = its CLOCK_BOOTTIME in us at the record's time, flag = a
	 * time service vouches for the wall clock; value = shift of time (clock.h) */
	REC_CLOCK,
	REC_TOKEN_USED, /* text = id: its node has spoken with it */
	REC_NODE_TOKEN, /* node, flag: it speaks with a token that has expired */
	/* node, texts = findings that an operator knows of: they keep no job away in this boot;
	 * cause = who; flag = its time of learning is over (cause NULL: by itself) */
	REC_ACK,
	/* value = epoch before the first start of a new incarnation, iteration = time of the
	 * backup (MO_NONE: there is none), flag = the state is that of a backup */
	REC_RESTORED,
	REC_OBEYS,   /* node, value = epoch that its agent obeyed, above ours */
	REC_DISCARD, /* job, attempt, node: an operator wants this unknown step ended */
	/* node, flag: its machine is going down in order, or does not after all */
	REC_LEAVING,
	/* job, attempt, node, config: what that node read of the engine's own configuration was
	 * judged */
	REC_CONFIG,
	_REC_N
};
extern const char *const record_type_names[_REC_N];

struct record {
	int64_t version;
	int type;
	int64_t time;
	int64_t job, attempt, rank, value, iteration;
	int state;
	bool flag;
	char *node, *text, *cause;
	char **texts;
	size_t n_texts;
	struct place *places;
	size_t n_places;
	struct note *notes;
	size_t n_notes;
	struct submit *submit;
	struct agent_hello *hello;
	struct scan_result *scan;
	struct incident *incident;
	struct checkpoint *checkpoint;
	struct token *token;
	struct event *event;
	struct node_health *health;
	struct measured *measured;
	struct config_read *config;
};
extern const struct mo_desc record_desc;
