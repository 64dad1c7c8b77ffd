/* Whether a job's attempt hangs, and the rows of job.c that store it. */
#pragma once
#include "lib/base/desc.h"

/* As it was judged (rules/hang.c). */
enum hang_stage {
	HANG_NONE = -1,
	HANG_SUSPECTED, /* its nodes are asked what moves, nothing else */
	HANG_CONFIRMED,
	_HANG_STAGE_N
};
extern const char *const hang_stage_names[_HANG_STAGE_N];
struct job_hang {
	int stage;
	int64_t at, since; /* judged so; since when nothing moves */
	bool acts;         /* confirmed, and the attempt ends by it */
	int64_t rank;      /* the one that stands out; MO_NONE: none does */
	char *text;
	char *recorder; /* what flight recorders say of who waits for whom; NULL: nothing */
	char **evidence;
	size_t n_evidence;
	/* of all attempts: confirmed, and of these, those after which it moved on */
	int64_t n_confirmed, n_wrong;
};

#define JOB_HANG_ROWS \
	MO_DP_ENUM(job, hang, stage, "hang", hang_stage_names, \
		   "whether the attempt hangs, as it was judged; null: something moves", \
		   .omit = true), \
		MO_DP(job, hang, at, "hang_at", MO_INT, "when it was judged so, us", \
		      .omit = true), \
		MO_DP(job, hang, since, "hang_since", MO_INT, "since when nothing moves, us", \
		      .omit = true), \
		MO_DP(job, hang, acts, "hang_acts", MO_BOOL, \
		      "confirmed, and the attempt ends by it", .omit = true), \
		MO_DP(job, hang, rank, "hang_rank", MO_INT, \
		      "rank that stands out; MO_NONE: none does", .omit = true), \
		MO_DP(job, hang, text, "hang_text", MO_STR, "what it is, for a person", \
		      .omit = true), \
		MO_DP(job, hang, recorder, "hang_recorder", MO_STR, \
		      "what flight recorders say of who waits for whom", .omit = true), \
		MO_DP_LIST(job, hang, evidence, "hang_evidence", MO_STRS, \
			   "what shows it, a line each", .omit = true), \
		MO_DP(job, hang, n_confirmed, "hangs_confirmed", MO_INT, \
		      "verdicts of all attempts", .omit = true), \
		MO_DP(job, hang, n_wrong, "hangs_wrong", MO_INT, \
		      "of these, after which it moved on", .omit = true)
