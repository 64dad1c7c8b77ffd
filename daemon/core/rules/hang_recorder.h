/* Whom the others wait for, by PyTorch's flight recorders (struct rank_recorder) of an attempt that
 * may hang: within each process group some ranks wait in a collective that others have not joined.
 * It is evidence and names a rank; whether the attempt hangs is never judged by it. Pure; called by
 * hang.c. */
#pragma once
#include "daemon/core/state/job.h"

struct state;

#define RECORDERS_SAY "flight recorders" /* how each of its lines begins */
struct recorder_finding {
	char *text;   /* the first of the lines, without times; NULL: nobody said anything */
	bool named;   /* it says who is missing */
	int64_t rank; /* the only one that is; MO_NONE */
	char **lines;
	size_t n_lines;
};
/* since: what was heard earlier than that is of a time before. */
void recorder_judge(const struct state *s, const struct job *j, int64_t since, int64_t now,
		    struct recorder_finding *ret);
void recorder_finding_done(struct recorder_finding *f);
