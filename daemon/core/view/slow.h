/* That a job is slower than it was, and which rank makes it so, as it was judged: for the document
 * of a job (view.h) and why. */
#pragma once
#include "daemon/core/state/state.h"
#include "daemon/core/view/why_view.h"

struct pace_view {
	double ms, usual_ms, lost_pct;
	int64_t since;
	char *text;
};
struct straggler_view {
	int64_t rank;
	char *node;
	struct rank_coords *coords;
	int sign; /* enum straggler_sign */
	bool alone;
	double times, lost_pct;
	int64_t at;
	char *text;
};
extern const struct mo_desc pace_view_desc, straggler_view_desc;

/* NULL: it is not so; callers free. */
struct pace_view *pace_view_of(const struct job *j);
struct straggler_view *straggler_view_of(const struct job *j);
void why_slow(const struct state *s, const struct job *j, int64_t now, struct why_view *w);
