/* Output lines -> samples, phases, checkpoints, by the engine's rules (PCRE2). Pure: bytes in,
 * facts out. */
#pragma once
#include "agent/core/text/line_fact.h"
#include "lib/base/error.h"
#include "lib/model/engine.h"

struct lines; /* compiled rules of one step */
int lines_new(const struct line_rule *rules, size_t n, struct lines **ret, struct mo_error *err);
struct lines *lines_free(struct lines *l);
MO_DEFINE_CLEANUP(struct lines, lines_free)
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
