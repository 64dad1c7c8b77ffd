/* See streak.h. */
#include "daemon/core/rules/streak.h"

#include "lib/base/assert.h"

/* failures in a row without a new checkpoint, each different: at most this times max_cycles */
#define CYCLES_FACTOR 3
#define MIN_US (60 * 1000000LL)

bool streak_same(const struct incident *inc, const struct failing *f)
{
	return mo_streq(inc->class, f->class) && mo_streq(inc->rule, f->rule) &&
	       (f->rule || mo_streq(inc->cause, f->cause));
}

/* Between the incident before and this moment the job came further, and not for a moment. */
static bool won(const struct incident *before, int64_t iteration, int64_t at)
{
	return iteration != MO_NONE &&
	       (before->iteration == MO_NONE || iteration > before->iteration) &&
	       at - before->time >= STREAK_WON_US;
}

size_t streak_open(const struct job *j)
{
	size_t i = j->n_incidents;

	for (; i > 0 && j->incidents[i - 1].time >= j->streak.since; i--)
		if (i < j->n_incidents &&
		    won(&j->incidents[i - 1], j->incidents[i].iteration, j->incidents[i].time))
			break;
	return i;
}

size_t streak_begin(const struct job *j, const struct failing *f)
{
	size_t n = j->n_incidents;

	return n > 0 && won(&j->incidents[n - 1], j->progress.watermark, f->at) ? n
										: streak_open(j);
}

int64_t streak_pause(const struct job *j, const struct failing *f)
{
	static const int64_t seconds[] = { 0, 5, 15, 60, 300 };
	int64_t longest = j->spec.recipe.backoff_us;
	size_t before = 0;

	for (size_t i = streak_begin(j, f); i < j->n_incidents; i++)
		before += streak_same(&j->incidents[i], f);
	before = MO_MIN(before, ELEMENTSOF(seconds) - 1);
	return MO_MIN(seconds[before] * 1000000,
		      longest == MO_NONE ? seconds[ELEMENTSOF(seconds) - 1] * 1000000 : longest);
}

struct budget streak_budget(const struct job *j, const struct failing *f, int64_t newest)
{
	_cleanup_(mo_freep) char *signature =
		mo_printf("%s: %s", f->class, f->rule ? f->rule : f->cause);
	bool in_a_row = j->streak.cycles > 0 && newest == j->streak.checkpoint,
	     same = in_a_row && mo_streq(signature, j->streak.signature);
	struct budget b = { .same = same ? j->streak.same + 1 : 1,
			    .any = in_a_row ? j->streak.cycles + 1 : 1,
			    .since = f->at };

	for (int64_t left = b.any - 1, i = (int64_t)j->n_incidents - 1; left > 0 && i >= 0; i--) {
		b.since = j->incidents[i].time;
		b.won = MO_MAX(j->progress.watermark - MO_MAX(j->incidents[i].iteration, 0), 0);
		left--;
	}
	return b;
}

static int64_t limit_of(const struct job *j)
{
	return j->spec.recipe.max_cycles > 0 ? j->spec.recipe.max_cycles : 3;
}

static bool has_time(const struct job *j, bool patient)
{
	return patient && j->spec.recipe.backoff_us != 0;
}

char *streak_spent(const struct job *j, const struct budget *b, bool patient)
{
	int64_t limit = limit_of(j);

	mo_assert(b->same > 0 && b->any >= b->same);
	if (has_time(j, patient) && j->failure.at - b->since < STREAK_PATIENCE_US)
		return NULL;
	if (b->same >= limit)
		return mo_printf("failed the same way %lld times without a new checkpoint",
				 (long long)b->same);
	if (b->any >= limit * CYCLES_FACTOR)
		return mo_printf("failed %lld times without a new checkpoint, the last time",
				 (long long)b->any);
	return NULL;
}

char *streak_budget_text(const struct job *j, const struct budget *b, bool patient)
{
	return mo_printf("failure %lld of its kind in a row without a new checkpoint, %lld min and "
			 "%lld iterations since the first; it is given up after %lld, or %lld of "
			 "any kind%s",
			 (long long)b->same, (long long)((j->failure.at - b->since) / MIN_US),
			 (long long)b->won, (long long)limit_of(j),
			 (long long)(limit_of(j) * CYCLES_FACTOR),
			 has_time(j, patient) ? ", and not before 1 h of them" : "");
}
