/* A measurement of the fabric is a job like any other: the recipe of whoever checks, over the nodes
 * that are to be looked at, and what its rank 0 printed. Nothing of it is known to the controller.
 *
 * What never happens: a job that somebody stopped, or that never started, counts as a measurement;
 * a job of ours runs on unseen when the wait is given up (it is cancelled, and ends by its time
 * limit where even that is not heard). */
#pragma once
#include "cli/options.h"
#include "lib/base/buf.h"

struct fabric_recipe {
	const char *file;
	struct mo_buf text;
	struct strs sets; /* --set of whoever checks */
	int64_t gpus;     /* of each node */
	int64_t limit_s;  /* of a measurement; what takes longer hangs */
};
struct fabric_job {
	char *id;
	int64_t sent_at;
	bool ended;
	char *failed;      /* why it has no result; NULL: it completed */
	struct mo_buf out; /* of rank 0, when it completed */
};
void fabric_job_done(struct fabric_job *j);
/* 0 or an exit status (printed). */
int fabric_submit(struct cli *cli, const struct fabric_recipe *r, const char *const *nodes,
		  size_t n, struct fabric_job *ret);
/* Until all have ended; else they are cancelled. 0 or an exit status (printed). */
int fabric_wait(struct cli *cli, const struct fabric_recipe *r, struct fabric_job *jobs, size_t n);
void fabric_cancel(struct cli *cli, struct fabric_job *jobs, size_t n);
