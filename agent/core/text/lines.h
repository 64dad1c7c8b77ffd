/* Output lines -> samples, phases, checkpoints, by the engine's rules (PCRE2). And notify
 * datagrams. Pure: bytes in, facts out. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/model/sample.h"

struct lines; /* compiled rules of one step */
int lines_new(const struct line_rule *rules, size_t n, struct lines **ret, struct mo_error *err);
struct lines *lines_free(struct lines *l);
MO_DEFINE_CLEANUP(struct lines, lines_free)
struct line_fact {
	int kind;    /* enum line_kind, or -1 none */
	size_t rule; /* which of the rules said it */
	/* LINE_SAMPLE; attempt and time not filled. tokens_per_s, step_s and tokens are turned
	 * into per-GPU and ms values. A percentage becomes a fraction. */
	struct sample sample;
	int phase; /* LINE_PHASE; PHASE_NONE = none given */
	/* LINE_SAVED LINE_SAVING LINE_RESUMED LINE_ENDED. Without an iteration it is the number
	 * that the path ends in; not of LINE_SAVING, which may name where all saves go */
	int64_t iteration;
	char path[4096];
	bool ready;
	bool checkpoint; /* notify only: READY=1, CHECKPOINT= given */
	char status[256];
	/* values that cannot be (negative times, 1e308 TFLOP/s): left out */
	int refused;
};
/* One line without its newline, at most MO_LINE_MAX bytes; ANSI codes are removed first. Calls
 * fn for each match (several on glued lines). world: ranks of the job (tokens/s/GPU). */
void lines_feed(struct lines *l, const char *line, size_t n, int64_t world,
		void (*fn)(void *arg, const struct line_fact *f), void *arg);
/* The job's number of iterations, for rules that count only where they say the same (of_steps);
 * MO_NONE (until set) = they never do. */
void lines_steps(struct lines *l, int64_t steps);
/* How often rule i did that. */
int64_t lines_gave_up_of(const struct lines *l, size_t i);
/* How often a rule gave up on a line because its pattern backtracked too much: such a line
 * counts as no match. */
int64_t lines_gave_up(const struct lines *l);
/* Which rules did, and how often (caller frees); one that gave up on 100 lines is not tried any
 * more. */
char *lines_gave_up_rules(const struct lines *l);
/* The digits a path ends in ("/c/iter_0000020/" -> 20); MO_NONE without. */
int64_t lines_path_number(const char *path);
/* One notify datagram ("KEY=VALUE\n..."), at most 8 KiB; unknown keys are ignored. -EINVAL when
 * nothing was understood. kind is LINE_SAMPLE when a metric is given, or ITERATION alone (an
 * iteration ended); LINE_PHASE with PHASE or READY and no metric; else -1. phase, ready,
 * checkpoint and status are set beside it; iteration = ITERATION, else the digits that
 * CHECKPOINT ends in. */
int lines_notify(const char *data, size_t n, int64_t world, struct line_fact *ret);
