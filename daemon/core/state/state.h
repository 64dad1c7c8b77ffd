/* What moed knows: plain described values (lib/base/desc.h), in ascending order of id, name or seq.
 *
 * Changed only by daemon/core/update applying records; read by everyone (rules, views, the shell,
 * moectl's simulations) through const pointers, which is what the finders here return. A job and
 * a node stay where they are until they are forgotten; what they hold (steps, checkpoints, GPUs)
 * is good until the next record, which may move it.
 *
 * Replay = a snapshot (this struct, written by its description) and the records after it. So what
 * is described here is on disks of released versions: a field is added with a meaning for
 * "unknown" (that is how an older snapshot reads), and never renamed or used anew.
 *
 * What a job, a node, a token and a measured run are, is in their headers, which this one has
 * because a state consists of them. What is not here: what a beat tells and may be forgotten, and
 * what can be derived (live.h); how things are shown (view/); what a job was asked
 * (lib/model/recipe.h). */
#pragma once
#include "daemon/core/state/anchor.h"
#include "daemon/core/state/job.h"
#include "daemon/core/state/node.h"
#include "daemon/core/state/token.h"
#include "lib/base/desc.h"
#include "lib/model/job.h"

/* hash, next: derived (idems.c), never stored */
struct idem {
	char *caller, *key, *digest;
	int64_t job, time;
	uint64_t hash;
	uint32_t next;
};

struct queue;
struct live;
struct tally;
struct job_beats;
struct state {
	int64_t epoch; /* +1 at each controller start; every command carries it */
	int64_t next_job, next_port, next_event_seq;
	int64_t time; /* of the last record */
	/* clock.h: core time clock_time was CLOCK_BOOTTIME clock_boot of boot clock_boot_id;
	 * since clock_doubt no time service vouched for the wall clock at a start, MO_NONE: one
	 * did */
	char *clock_boot_id;
	int64_t clock_time, clock_boot, clock_doubt;
	/* when it was last set ahead by CLOCK_LEAP_US or more; what is older counts as old as that;
	 * MO_NONE: never */
	int64_t clock_leapt;
	/* incarnation.h: jobs below are of a backup, MO_NONE: never restored; until when they
	 * get no attempt, MO_NONE: until a time after the next start */
	int64_t restored_jobs, restored_wait;
	/* second (INCARNATION_ZERO_US) of the first incarnation; MO_NONE: the epoch of now tells
	 * it */
	int64_t born;
	/* A job and a node stay at their address until they are forgotten: a job when a newer one
	 * is submitted (or by moed --quarantine), a node never. */
	struct job **jobs;
	size_t n_jobs; /* ascending id; find with job_find() */
	struct node **nodes;
	size_t n_nodes; /* ascending name */
	/* MO_EVENTS_MAX at most, ascending seq: ring.h */
	struct event *events;
	size_t n_events;
	struct token *tokens;
	size_t n_tokens;
	struct idem *idems;
	size_t n_idems;
	struct anchor *anchors;
	size_t n_anchors; /* oldest first; a few of each stack */
	/* ascending ids of jobs that `moed --quarantine` took out: what nodes hold of them is
	 * kept there */
	int64_t *aside;
	size_t n_aside;
	/* Not described, not stored: ascending ids of jobs that have steps, owned by the core.
	 * NULL (a copy, a dry run) = visit all jobs. */
	int64_t *holders;
	size_t n_holders;
	/* Not described, not stored: what the last pass over the queue found (waiting.h); the
	 * core's. NULL (a copy, a dry run) = there was none. */
	const struct queue *queue;
	/* Neither: what beats change without a record (live.h), owned by the core. NULL (a copy,
	 * a dry run) = nothing was heard. */
	struct live *const *lives;
	/* Neither: the cluster in figures (slots.h). NULL (a copy, a dry run) = it is counted. */
	const struct tally *tally;
	const struct job_beats *beats;
	size_t n_beats;
	/* Neither: where node_at() found its last node; the core's. A beat asks ten times for the
	 * one node. NULL (a copy, a dry run) = it is looked for each time. */
	size_t *node_last;
};
extern const struct mo_desc idem_desc, state_desc;

/* Is it there? ret: its index, or that at which it would stand. */
bool job_at(const struct state *s, int64_t id, size_t *ret);
bool node_at(const struct state *s, const char *name, size_t *ret); /* name may be NULL */
/* NULL if none; the pointer is valid until the job is forgotten (struct state) */
const struct job *job_find(const struct state *s, int64_t id);
size_t state_n_holders(const struct state *s);
/* i-th job that may hold GPUs */
const struct job *state_holder(const struct state *s, size_t i);
/* the same; no node is forgotten */
const struct node *node_find(const struct state *s, const char *name);
