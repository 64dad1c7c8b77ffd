/* Who was first: of all that an attempt's notes, exits, refusals, boots and fences show, the one
 * thing that explains the rest. Pure; called by policy.c and incident.c.
 *   blame_find   at the first evidence, when every other rank is still to be killed
 *   blame_root   when every step is proved gone, by which time all exits are known
 * What the kinds mean for the job is policy.c's. Silence is never evidence here: a node that is
 * not heard is blamed for nothing, and an exit that we asked for is no death. */
#pragma once
#include "daemon/core/state/state.h"

/* In the order of their weight, once all exits are known. */
enum blame_kind {
	B_NONE,
	B_LATE,
	B_HANG, /* nothing moved (hang.c): nobody died of it */
	B_ENDED,
	B_EXIT,
	B_SIGNAL,
	B_NODE,
	B_LOST,
	B_REFUSED,
	B_NUMBERS, /* of the losses: no rank died */
	B_CONFIG,
	B_ELSEWHERE
};
/* step, rank: NULL = none is to blame for itself. They point into the job. */
struct blame {
	int kind;
	const struct step *step;
	const struct rank *rank;
};

/* First evidence, in the order of steps; a late exit when there is none. B_NONE: no evidence
 * yet. */
struct blame blame_find(const struct job *j, int64_t now, int64_t exit_wait_us);
struct blame blame_root(const struct state *s, const struct job *j);
/* Its exit is not 0. */
bool blame_bad(const struct rank *k);
/* It ended because we wanted it to. */
bool blame_by_us(const struct rank *k);
/* It was ended because nothing moved in it. */
bool blame_by_hang(const struct job *j);
/* The first bad death of the step that was not by us; NULL: none. */
const struct rank *blame_first(const struct job *j, const struct step *st);
/* The step that was stopped on its machine, when that explains the end; NULL = it does not. */
const struct step *blame_outside(const struct job *j, const struct blame *b);
/* "exit code 1", "signal 9 SIGKILL", "node-lost" ... Caller frees. */
char *blame_cause(const struct job *j, const struct blame *b);
/* enum failure class by name: user_error, node_fault, hang, transient. */
const char *blame_class(const struct job *j, const struct blame *b);
/* The launch was refused for what the user gave. */
bool blame_refused_user(const struct step *st);
/* The launch was refused because the node does not give back the GPUs of a job that has ended. */
bool blame_gpu_held(const struct blame *b);
/* Of B_ELSEWHERE: both places, and the ways on. Of B_CONFIG: what the files break. Caller frees. */
char *blame_elsewhere(const struct job *j);
char *blame_config(const struct job *j);
/* Appends what shows it without a word of the ranks: of the refusal, the proof. */
void blame_evidence(const struct job *j, const struct blame *b, char ***texts, size_t *n);
