/* What the ranks of a job do with processors and GPUs, of each the newest windows that its agent
 * told (struct rank_activity), and what was usual while the job was as fast as ever: never stored,
 * as live.h has it. Values of MO_NONE_F are not known. */
#pragma once
#include "lib/model/message.h"

enum activity_kind {
	ACT_DELAY,  /* percent of the time, plus 100, that it waited for a processor */
	ACT_WANTED, /* percent of the time that it had a processor or waited for one */
	ACT_BUSY,   /* percent of the time that its GPU was busy */
	ACT_MEM,    /* percent of the bandwidth of the GPU's memory */
	ACT_POWER,  /* of the GPU, watts */
	_ACTIVITY_KIND_N
};
#define ACT_WINDOWS 3 /* the median of so many counts */
struct rank_acts {
	double newest[_ACTIVITY_KIND_N][ACT_WINDOWS]; /* a ring */
	int64_t n, window, at; /* how many there were; number and time of the last; 0: none */
	int64_t n_usual;       /* windows in a row, up to the last, of a job as fast as ever */
	struct {
		double mean;
		int64_t n;
	} usual[_ACTIVITY_KIND_N];
};

/* usual: the job is as fast as it was. False: it was told before. */
bool acts_take(struct rank_acts *a, const struct rank_activity *r, bool usual, int64_t now);
/* ret[_ACTIVITY_KIND_N]: of the newest windows; nothing is known of a rank that was not heard of
 * for a while. */
void acts_now(const struct rank_acts *a, int64_t now, double *ret);
/* One of them. */
double act_now(const struct rank_acts *a, int kind, int64_t now);
void acts_usual(const struct rank_acts *a, double *ret);
