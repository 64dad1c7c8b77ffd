/* The supervisor's world (tests/unit/seams/world.h). Its ranks are rows of a table that live until
 * the test, or a signal, ends them. */
#pragma once
#include "tests/unit/seams/world.h"

#include "agent/stepd/stepd.h"

/* Turns, readiness and timers of this supervisor for so long, or until it is over. */
void seam_step(struct stepd *s, int64_t us);
void seam_signal_self(struct stepd *s); /* SIGTERM to the supervisor */
/* process.c */
struct seam_rank {
	int pid;
	int out, err; /* streams that it writes to */
};
struct seam_rank *seam_rank(size_t i);     /* NULL: none was forked so far */
void seam_exec_fails(int step, int error); /* of those that come; error 0: it works again */
void seam_ranks_ignore(bool signals);      /* they do not end with SIGTERM */
void seam_ranks_done(void);
