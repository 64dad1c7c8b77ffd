/* Whether an attempt hangs, by what its nodes say of its ranks (struct rank_motion): the evidence,
 * what stands out, and in which words. Pure: it reads the state and what beats told, and emits
 * nothing; called by hang.c.
 *
 * What moves: iterations and words of the engine; bytes into logs and files; for a while what cards
 * of the network moved. Processors only while it imports, loads or compiles: a stuck collective
 * spins. That GPUs compute moves nothing by itself; but where none does, and those of a collective
 * spin, nobody is left who could be waited for.
 * What cannot be read is no evidence, neither for nor against; but where a rank can be read by
 * nobody it may move unseen, and the verdict is only told. */
#pragma once
#include "daemon/core/rules/hang_limits.h"

struct hang_verdict {
	int stage;          /* enum hang_stage */
	bool sure;          /* there is evidence beside the iterations, and of every rank */
	int64_t overdue_us; /* since the last iteration or word */
	int64_t quiet_us;   /* since anything moved */
	int64_t limit_us;   /* after which that is confirmed */
	bool written, network, processors; /* kinds of evidence that nothing moves */
	bool stopped, waits;               /* some rank's main process does */
	bool polls;                        /* cards do move, for longer than that counts */
	bool spin, rest;    /* all GPUs spin; some do, and else neither GPU nor processors work */
	int64_t stalled_us; /* since that is so */
	size_t unseen;      /* ranks of which nobody tells */
	size_t states[_RANK_DOING_N];
	int64_t rank; /* that stands out; MO_NONE: none does */
	int odd;      /* enum rank_doing of it */
	bool plain;   /* because of what it is itself: stopped, in the kernel, with a broken GPU */
	bool behind;  /* because its iteration is the lowest */
	const char *missing; /* what it has not done, by flight recorders; NULL; the caller's */
};
/* since: last iteration or word. fresh_us: what was heard earlier than that is not known any
 * more. ret_doing: enum rank_doing of each rank of the job, -1 of one that ended. */
struct hang_verdict hang_judge(const struct state *s, const struct job *j,
			       const struct hang_limits *l, int64_t since, int64_t now,
			       int64_t fresh_us, int *ret_doing);
/* "nothing moves for 34 s: rank 3 on n2 (pp 1) is stopped"; caller frees. */
char *hang_text(const struct job *j, const struct hang_verdict *v);
/* Lines that show it, appended. */
void hang_evidence(const struct job *j, const struct hang_limits *l, const struct hang_verdict *v,
		   char ***texts, size_t *n);
