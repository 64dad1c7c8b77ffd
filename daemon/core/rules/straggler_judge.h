/* Who stands out among ranks that should do the same. Pure; called by straggler.c.
 *
 * Peers are the ranks of one pipeline stage: stages have different layers. One stands out by as
 * much as makes a job slow, and far beyond what its peers deviate by; where many do, it is no rank
 * but the work, or the job, and none is named. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One rank's reading. */
struct rank_value {
	int64_t rank, stage;
	double value; /* MO_NONE_F: not known */
};
struct standout {
	int64_t rank;                /* MO_NONE: none stands out */
	double value, median, sigma; /* its own; of its stage */
	size_t n_peers;              /* ranks of its stage */
	size_t n_odd, n_known;       /* of all stages: that stand out, that could be judged */
};
#define PEERS_MIN 3 /* of two that differ nobody knows which one is right */

/* What a rank takes now and took before, of those that tell both. */
struct rank_past {
	int64_t rank, stage;
	double now, usual, sigma; /* sigma: what it deviated by then */
};

/* Sorts the readings. above: who has more stands out, else who has less. share: by so much of the
 * median at least. */
struct standout standout_of(struct rank_value *readings, size_t n, bool above, double share);
/* Who became slower than it was itself, of those that have too few peers, while the others did
 * not: where many did it is the job. median and sigma of *ret are its past. share: by so much of
 * that at least; good: who has less has not. Sorts them. */
struct standout standout_of_past(struct rank_past *r, size_t n, double share, double good);
/* That rank has, of the median of its peers, so many times as much; 0: that is not known. */
double standout_times(struct rank_value *readings, size_t n, int64_t rank);
