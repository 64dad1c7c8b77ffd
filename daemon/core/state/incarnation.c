/* See incarnation.h: numbers and names, derived from an epoch or a node alone. */
#include "daemon/core/state/incarnation.h"

#include "lib/base/assert.h"
#include "lib/base/parse.h"

int64_t incarnation_epoch(int64_t before, int64_t wall_us)
{
	int64_t now = MO_MAX(wall_us - INCARNATION_ZERO_US, 0) / 1000000;

	mo_assert(wall_us >= 0);
	return MO_MAX(now, MO_MAX(before, 0) / EPOCH_STARTS + 1) * EPOCH_STARTS;
}

char *epoch_text(int64_t epoch)
{
	char of[32];

	if (epoch < EPOCH_STARTS)
		return mo_printf("epoch %lld", (long long)epoch);
	mo_time_format(epoch / EPOCH_STARTS * 1000000 + INCARNATION_ZERO_US, of);
	return mo_printf("start %lld of the incarnation of %s", (long long)(epoch % EPOCH_STARTS),
			 of);
}

char *step_name(int64_t job, int64_t attempt)
{
	return mo_printf("j-%lld.a%lld", (long long)job, (long long)attempt);
}

bool step_discarded(const struct node *n, int64_t job, int64_t attempt)
{
	_cleanup_(mo_freep) char *name = n->strays.n_discard ? step_name(job, attempt) : NULL;

	return name && mo_enum_parse((const char *const *)n->strays.discard, n->strays.n_discard,
				     name) >= 0;
}
