/* The last lines of a rank: the evidence of its end. Of what Python's faulthandler prints of all
 * threads (PYTHONFAULTHANDLER, config/env/base.yaml), which would push everything else out, only
 * the innermost calls of the last thread stay, which is the main one. Pure. */
#pragma once
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/model/limits.h"

#define TAIL_BYTES 1024 /* of each line */
#define TAIL_CALLS 8    /* of a thread, the innermost ones */

/* All zero: it has printed nothing. */
struct tail {
	char text[MO_TAIL_LINES][TAIL_BYTES];
	uint16_t len[MO_TAIL_LINES];
	size_t n, next;
	size_t n_thread; /* newest lines that are a thread and its calls */
	bool in_thread;
};
void tail_add(struct tail *t, const char *line, size_t n);
/* An exception that was told apart from the output: its first line, which names it, and its last,
 * where those of a DataLoader's worker name theirs, behind what is there. What a line ends with is
 * there already: torch begins them with "[rank0]: ". */
void tail_error(struct tail *t, const char *text);
/* The oldest first, appended; the caller frees them. */
void tail_lines(const struct tail *t, char ***ret, size_t *n_ret);
