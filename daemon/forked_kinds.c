/* See forked_kinds.h. */
#include "daemon/forked_kinds.h"

const struct forked_about forked_kinds[] = {
	[FORKED_BACKUP] = { .what = "backup",
			    .at_once = 1,
			    .time_us = 600 * 1000000LL,
			    .busy = "another one is under way: try again in a moment" },
	[FORKED_DRY_RUN] = { .what = "dry run",
			     .at_once = 2,
			     .of_each_user = true,
			     .time_us = 120 * 1000000LL,
			     .limits = { .cpu_s = 20, .memory = 64 << 20 },
			     .busy = "two are under way already, or one of yours: try again in a "
				     "moment",
			     .large = "it needs more than 64 MB of memory: ask for fewer ranks "
				      "(--set cluster.gpus=N)",
			     .slow = "it takes more than 20 s: ask for fewer ranks (--set "
				     "cluster.gpus=N)" },
	[FORKED_RECIPE] = { .what = "recipe",
			    .at_once = 2,
			    .of_viewers = 1,
			    .of_each_user = true,
			    .time_us = 30 * 1000000LL,
			    .limits = { .cpu_s = 5, .memory = 64 << 20 },
			    .busy = "of more than 64 kB two are being read already, or one of "
				    "yours, or of viewers: try again in a moment",
			    .large = "reading it needs more than 64 MB of memory: make it smaller; "
				     "one of up to 64 kB is always read",
			    .slow = "reading it takes more than 5 s: make it smaller; one of up to "
				    "64 kB is always read" },
	[FORKED_CONFIG] = { .what = "configuration",
			    .at_once = 1,
			    .time_us = 30 * 1000000LL,
			    .limits = { .cpu_s = 5, .memory = 64 << 20 },
			    .busy = "another one is being judged",
			    .large = "it needs more than 64 MB of memory",
			    .slow = "it takes more than 5 s" },
};
_Static_assert(ELEMENTSOF(forked_kinds) == _FORKED_KIND_N, "a row for each kind");
