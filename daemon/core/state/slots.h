/* Which GPU slots are free, of nodes that take work. Follows from the state alone: slots_init()
 * makes it anew, the core keeps one that is right after each turn (update/slots.h). What is given
 * away while places are searched (slots_take()) is nobody's until the record of the placement. */
#pragma once
#include "daemon/core/state/state.h"

/* Of one node. well: for health.preflight: standard. */
struct node_slots {
	int64_t *free;
	size_t n_free;
	bool usable, well;
	/* points of its score, whole ones: a single failure that may have been anybody's moves
	 * nobody */
	int64_t lemon;
	int64_t spare_of; /* the job that it is a spare of; MO_NONE none */
};
struct slots {
	size_t n;
	struct node_slots **nodes; /* of each of state.nodes */
	struct node_slots *own;    /* where these are; NULL: the core's */
	/* For whom places are searched now (slots_for()): its spares are free for it alone, and it
	 * likes nodes of less `strange`; NULL: all are the same to it. */
	int64_t job;
	int *strange;
	/* nodes of other software than `stack` are not taken (health.h) */
	bool one_stack;
	uint64_t stack;
};
/* The cluster in figures. free: what a job could have now; awaited: nodes (node_awaited()). */
struct tally {
	int64_t gpus, free, awaited, nodes[_NODE_STATE_N], jobs[_JOB_STATE_N];
	size_t n_stale; /* nodes that changed since; 0 after each turn */
};

/* Why it gets no work as a node; NULL = fit. */
const char *node_unfit(const struct state *s, const struct node *n);
/* It was up when the controller before ended, would take work, and was not heard since: soon it is,
 * or it is suspect. */
bool node_awaited(const struct node *n);
/* Why this step keeps its node from new work; NULL = it does not. */
const char *step_uncertain(const struct state *s, const struct step *st);
/* Of a node whose jobs with steps there are given, in place of what *io was of it; but `lemon`,
 * which is not of the node alone, stays. */
void node_slots_make(const struct state *s, const struct node *n, const int64_t *jobs,
		     size_t n_jobs, struct node_slots *io);
bool node_slots_equal(const struct node_slots *a, const struct node_slots *b);
void node_slots_done(struct node_slots *slots);

void slots_init(const struct state *s, struct slots *ret);
/* As if that job had no places: what would be free for it if it moved. */
void slots_init_without(const struct state *s, const struct job *j, struct slots *ret);
/* Places are searched for this job from now on: its spares are free for it. */
void slots_for(struct slots *slots, const struct state *s, const struct job *j);
void slots_done(struct slots *slots);
void slots_take(struct slots *slots, const struct state *s, const struct place *places,
		size_t n_places);
/* What a job could have of that node now. */
int64_t node_slots_open(const struct node_slots *slots);
/* The state's, or counted anew where it has none of now. */
void tally_of(const struct state *s, struct tally *ret);
/* slots: of the same state, with no places taken beyond its jobs'. */
void tally_count(const struct state *s, const struct slots *slots, struct tally *ret);
