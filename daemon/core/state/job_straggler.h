/* Which rank makes a job slow, as it was judged (rules/straggler.c), and the rows of job.c that
 * store it. */
#pragma once
#include "lib/base/desc.h"

/* What shows it. */
enum straggler_sign {
	SIGN_STEP,  /* its own time of a step, as its program says */
	SIGN_CLOCK, /* the clock of its GPU */
	/* by what it does with processors and GPU (rules/activity_judge.h) */
	SIGN_PROCESSOR, /* it waits for a processor */
	SIGN_IDLE,      /* its GPU is idle while those of its peers wait */
	SIGN_WORK,      /* its GPU has more to do */
	SIGN_OWN,       /* its own time of a step, against what it was before: it has few peers */
	_STRAGGLER_SIGN_N
};
extern const char *const straggler_sign_names[_STRAGGLER_SIGN_N];

/* One that was found, for the nodes' score. */
struct found_straggler {
	int64_t attempt, rank, at;
	char *node;
	double lost_pct;
	bool left; /* the job moved away from the node by it */
};
#define STRAGGLERS_MAX 32 /* of one job: the newest */
extern const struct mo_desc found_straggler_desc;

struct job_straggler {
	int64_t rank; /* MO_NONE: none stands out */
	int sign;     /* enum straggler_sign */
	int64_t at;   /* when it was found */
	bool alone;   /* one source of it alone says so: nobody is moved for it */
	/* what its peers have, or it had itself (SIGN_OWN), this many times (a clock: below 1) */
	double times;
	double lost_pct; /* of its time, that the job loses by it */
	char *text;
	char **evidence;
	size_t n_evidence;
	/* of all attempts, the oldest first */
	struct found_straggler *found;
	size_t n_found;
};

#define JOB_STRAGGLER_ROWS \
	MO_DP(job, straggler, rank, "straggler", MO_INT, \
	      "rank that makes the attempt slow; MO_NONE: none stands out", .omit = true), \
		MO_DP_ENUM(job, straggler, sign, "straggler_sign", straggler_sign_names, \
			   "what shows it", .omit = true), \
		MO_DP(job, straggler, alone, "straggler_alone", MO_BOOL, \
		      "one source alone says so: nothing follows", .omit = true), \
		MO_DP(job, straggler, at, "straggler_at", MO_INT, "when it was found, us", \
		      .omit = true), \
		MO_DP(job, straggler, times, "straggler_times", MO_REAL, \
		      "what its peers have, or it had itself, this many times", .omit = true), \
		MO_DP(job, straggler, lost_pct, "straggler_lost_pct", MO_REAL, \
		      "percent of its time that the job loses by it", .omit = true), \
		MO_DP(job, straggler, text, "straggler_text", MO_STR, "what it is, for a person", \
		      .omit = true), \
		MO_DP_LIST(job, straggler, evidence, "straggler_evidence", MO_STRS, \
			   "what shows it, a line each", .omit = true), \
		MO_DP_VEC(job, straggler, found, "stragglers", &found_straggler_desc, \
			  "that were found in all attempts, the newest last", .omit = true)
