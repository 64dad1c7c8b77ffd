/* How engine.prepare ended, in words. Pure. */
#pragma once
#include "lib/model/note.h"

/* step: what it could not do before it was a program, NULL: it was one; error: why, an errno.
 * Else code: of its exit, or signal > 0. */
struct hook_end {
	const char *node, *program, *step;
	const char *found; /* with step: what is wrong with the program; NULL: unknown */
	int error, code, signal;
};
/* Why no rank can start; NULL: it ended as it should. Caller frees. */
char *hook_problem(const struct hook_end *e);
/* The number that goes with it: an errno, or an exit code; 0 none. */
int hook_code(const struct hook_end *e);
/* The note that refuses the step says what it printed last (n->tail). */
void hook_says_last(struct note *n);
