/* What a job waits for: a code with its arguments, made once and said by everybody in the same
 * words. schedule.c makes it for each job that it judges, in the order of the queue, and
 * leaves it in struct queue; for an attempt whose ranks are not gone, or whose node is silent,
 * the job's state says it. The recorded reason, `moectl why`, `status`, `list` and the Job
 * document ask here (waiting_of) and search for nothing again: no search for places per question,
 * no other order. What the last pass found holds until the next: whatever it depends on asks for
 * one. To add a reason: a code here, its name, row and sentence in waiting.c;
 * `build/sim --states` prints docs/states.md from the rows. */
#pragma once
#include "daemon/core/state/state.h"

enum waiting_code {
	WAITING_NOT,       /* for nothing that is known: it is about to be placed */
	WAITING_GRACE,     /* until */
	WAITING_PAUSE,     /* until, left: after failures in a row */
	WAITING_RESTORED,  /* text */
	WAITING_UNHEARD,   /* nodes: that were up when the controller before ended */
	WAITING_BEHIND,    /* job, and what that one needs and is free for it */
	WAITING_DIRECTORY, /* job: has the checkpoint.dir */
	WAITING_TOO_LARGE, /* needs, total: of the whole cluster; gpu, among, excludes */
	/* needs, usable, total; as the next, among nodes with the same software */
	WAITING_STACK,
	WAITING_IMAGES,   /* the same, among nodes that can run an image */
	WAITING_NODES,    /* needs, usable: on nodes that take work, total */
	WAITING_CAPACITY, /* needs, free; spares: GPUs on nodes that are kept for other jobs */
	/* image, node, nodes: that have it not; done, size: bytes there, error */
	WAITING_IMAGE,
	WAITING_SCAN,       /* dir, node: that scans */
	WAITING_CHECKS,     /* node, nodes */
	WAITING_UNREAD,     /* text */
	WAITING_CHECKPOINT, /* text */
	WAITING_SILENT,     /* node, nodes */
	WAITING_NOT_GONE,   /* node, nodes, attempt; how: why the first is not known to be dead */
	_WAITING_N
};
extern const char *const waiting_code_names[_WAITING_N];

/* Numbers: MO_NONE = not of this code. */
struct waiting {
	int code;
	/* the whole sentence, of codes whose rule makes it; in documents of every code */
	char *text;
	int64_t job, attempt, needs, free, usable, total, until, nodes, spares;
	char *node, *gpu, *dir;
	char *image, *error;
	int64_t left;       /* seconds until `until`, of whoever asks */
	int64_t done, size; /* bytes; unpacking: read of those that were fetched */
	bool unpacking;
	const char *how;
	bool among, excludes; /* cluster.nodes, cluster.exclude */
	int64_t waiter;       /* who waits */
};
extern const struct mo_desc waiting_desc; /* as documents show it */
/* What makes it go, and what a person can do. One row per code. */
struct waiting_kind {
	const char *sentence, *next;
};
extern const struct waiting_kind waiting_kinds[_WAITING_N];

struct waiting waiting_make(int code);
void waiting_done(struct waiting *w);
/* The sentence, with the numbers of the last pass; caller frees. */
char *waiting_text(const struct waiting *w);
/* The same for the record: without the numbers that change while nothing else does, so that a
 * change of them stores nothing. NULL: what is recorded stays, as it says what happened. Caller
 * frees. */
char *waiting_recorded(const struct waiting *w);
/* What stands as the job's reason: the sentence, behind what happened where that is worth more. */
char *waiting_reason(const struct waiting *w, const struct job *j);
/* Why a step is not known to be dead. */
const char *step_not_dead(const struct node *n, const struct step *st);
/* What it waits for at this moment; false = for nothing. *ret is made anew; the caller's. */
bool waiting_of(const struct state *s, const struct job *j, int64_t now, struct waiting *ret);

/* What the last pass over the queue found, by ascending id of the job. Of struct core; state.queue
 * lets views read it. */
struct queue {
	struct waiting *items;
	size_t n_items;
};
void queue_clear(struct queue *q);
/* the highest so far; where it stands */
size_t queue_add(struct queue *q, int64_t id);
void queue_set(struct queue *q, size_t at, struct waiting *w); /* takes what w owns */
/* the same, for who knows more of it by now */
struct waiting *queue_edit(struct queue *q, int64_t id);
const struct waiting *queue_find(const struct queue *q, int64_t id); /* NULL = not judged */
