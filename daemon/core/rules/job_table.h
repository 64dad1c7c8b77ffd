/* The transitions of a job as data. Every state x trigger pair has at least one row; the first
 * whose guard holds is taken. docs/states.md is this table. */
#pragma once
#include "daemon/core/state/state.h"

enum job_trigger {
	T_PLACED,    /* an attempt got its GPUs */
	T_UP,        /* every rank of the attempt was started */
	T_ITERATION, /* the attempt's first iteration */
	T_FAILED,    /* the attempt failed: every other rank is killed */
	T_NODE_DOWN, /* a node with ranks is silent and the iteration stands */
	T_NODE_BACK, /* it is back, or the iteration advances */
	T_RETRY,     /* a failed attempt is proved gone and another one follows */
	T_GIVE_UP,   /* no attempt follows */
	T_COMPLETED, /* all ranks ended 0 and the last iteration was reached */
	T_STOPPED,   /* a planned stop is proved done */
	T_TIME_LIMIT,
	T_DRAIN,
	V_CANCEL,
	V_PAUSE,
	V_RESUME,
	V_RESTART,
	_TRIGGER_N
};
enum job_guard {
	G_ALWAYS,
	G_LIVE,    /* some step is not proved dead */
	G_HEALTHY, /* an attempt is placed, and did not fail; it may have ended */
	/* no iteration was ever seen, or one of this attempt was; and no node is waited for */
	G_FIRST,
	G_STARTED, /* G_FIRST, and every rank of the attempt was started */
	/* the planned stop's intent; AGAIN = restart or drain */
	G_CANCEL,
	G_PAUSE,
	G_AGAIN,
	G_TIME,
	G_NOT_CANCEL,
	_GUARD_N
};
#define NEXT_IGNORE (-1)
#define NEXT_REFUSE (-2) /* a verb the state forbids: 409 with text */
struct job_row {
	int state, trigger, guard, next;
	const char *text;
};
extern const struct job_row job_rows[];
extern const size_t n_job_rows;
extern const char *const job_trigger_names[_TRIGGER_N], *const job_guard_names[_GUARD_N];
bool job_guard_holds(const struct job *j, int guard);
const struct job_row *job_row_find(const struct job *j, int trigger); /* never NULL */
