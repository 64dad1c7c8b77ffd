/* The kinds of work that a forked child does: how many at once, within which limits, and what is
 * told who asked for more. */
#pragma once
#include "daemon/forked_child.h"

struct forked_about {
	const char *what, *busy, *large, *slow;
	size_t at_once, of_viewers; /* of_viewers 0: they have no such work */
	bool of_each_user;
	int64_t time_us; /* until the answer was taken, too */
	struct forked_limits limits;
};
extern const struct forked_about forked_kinds[]; /* by enum forked_kind */
