/* What the restarts of a job took, by part: of each incident with the part that still lasts, and
 * over all of them. Pure getters. */
#pragma once
#include "daemon/core/state/state.h"

struct restart_part {
	char *part; /* of the waterfall; "total": of all parts of one restart */
	int64_t n;  /* restarts in which it is over and known */
	int64_t p50_ms, p95_ms, sum_ms;
};
extern const struct mo_desc restart_part_desc;

/* The newest incident as it is at `now`: the part that lasts is named, with what it took so far. */
void restart_open(const struct job *j, int64_t now, struct incident *newest);
/* n 0: there was no restart. */
struct restart_part *restart_parts(const struct incident *incidents, size_t n_incidents,
				   size_t *ret_n);
