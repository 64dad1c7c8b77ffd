/* The last lines of a rank: the evidence of its end. Pure. */
#pragma once
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/model/limits.h"

#define TAIL_BYTES 1024 /* of each line */

/* All zero: it has printed nothing. */
struct tail {
	char text[MO_TAIL_LINES][TAIL_BYTES];
	uint16_t len[MO_TAIL_LINES];
	size_t n, next;
};
void tail_add(struct tail *t, const char *line, size_t n);
/* The oldest first, appended; the caller frees them. */
void tail_lines(const struct tail *t, char ***ret, size_t *n_ret);
