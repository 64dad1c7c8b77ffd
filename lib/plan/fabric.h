/* Which node, or which link between two, makes the fabric slow: a search by measurements of the
 * same collective over different nodes. Pure; who measures is the caller:
 *
 *   all nodes together       -> fast enough for what was expected: nothing is searched
 *   disjoint pairs, at once  -> the middle one (of few nodes the fastest) says how fast a pair
 *                               is; 80 % of it is slow
 *   each node of a slow pair with a node of a fast one, twice at most
 *                            -> slow there too: the node
 *   a slow pair of which both are fast with others, again
 *                            -> slow again: the link between the two
 *
 * Pairs rather than halves: two odd nodes in different halves make both slow, and each halving
 * costs a run. What takes part in a measurement that failed, or whose values were wrong, counts as
 * slow. All together are held against what was expected, never against pairs: of an all-to-all
 * half of a pair's bytes stay at home. No node is in two measurements of one round. At most
 * FABRIC_ROUNDS_MAX rounds. */
#pragma once
#include "lib/base/util.h"

#define FABRIC_ROUNDS_MAX 10
#define FABRIC_NODES_MAX 1024

/* One measurement: all nodes, or two of them. */
struct fabric_run {
	size_t a, b; /* of a pair */
	int64_t round;
	bool measured; /* there is an answer */
	double gbs;    /* of the largest size; 0: it failed */
	char *failed;  /* why; NULL: it did not */
};
enum fabric_verdict {
	FABRIC_FINE,     /* nothing stands out */
	FABRIC_ODD,      /* nodes or links do */
	FABRIC_TOGETHER, /* pairs are alike, all nodes together fail or are below expected */
	FABRIC_UNTOLD,   /* something is slow, and there is no fast node to tell which */
	FABRIC_NOTHING,  /* nothing could be measured */
	_FABRIC_VERDICT_N
};
extern const char *const fabric_verdict_names[_FABRIC_VERDICT_N];
struct fabric {
	size_t n_nodes;
	double expected; /* 10^9 bytes/s of all nodes together; 0: not known */
	int64_t round;
	struct fabric_run *runs; /* the first is that of all nodes */
	size_t n_runs;
};

/* 1 to FABRIC_NODES_MAX nodes. */
void fabric_init(struct fabric *f, size_t n_nodes, double expected);
void fabric_done(struct fabric *f);
/* Adds the runs of the next round, which begin at the index returned; n_runs: there are none, the
 * verdict can be given. All runs before must have their answers. */
size_t fabric_next(struct fabric *f);
/* gbs of the largest size; or why there is none. */
void fabric_answer(struct fabric *f, size_t run, double gbs, const char *failed);
/* What rank 0 printed, of n bytes: the answer is read from it. */
void fabric_answer_text(struct fabric *f, size_t run, const char *text);

/* What a pair of nodes reaches, by its peers; 0: no pair was measured. */
double fabric_reference(const struct fabric *f);
int fabric_verdict(const struct fabric *f);
/* By itself: slow with two nodes, one of which is fast with others. */
bool fabric_is_odd(const struct fabric *f, size_t node);
/* A pair of nodes that are both fast with others, slow twice. */
bool fabric_is_link(const struct fabric *f, const struct fabric_run *r);
/* Slow whatever it is with, or only tried with slow ones. */
bool fabric_is_untold(const struct fabric *f, size_t node);
bool fabric_is_slow(const struct fabric *f, const struct fabric_run *r);
