/* Which rows of the table by which jobs move (docs/states.md) were asked for by the rules: the
 * linker puts this function in place of job_row_find() (mk/sim.mk). */
#include "tests/sim/sim.h"

#include <assert.h>

static int64_t *rows;

const struct job_row *__real_job_row_find(const struct job *j, int trigger);
const struct job_row *__wrap_job_row_find(const struct job *j, int trigger);

void coverage_begin(int64_t *counts)
{
	assert(n_job_rows <= ROWS_MAX);
	rows = counts;
}

const struct job_row *__wrap_job_row_find(const struct job *j, int trigger)
{
	const struct job_row *row = __real_job_row_find(j, trigger);

	rows[row - job_rows]++;
	return row;
}

/* What no seed is held to: nothing in the simulator asks for it. */
static bool excused(const struct job_row *r)
{
	return r->next == NEXT_IGNORE;
}

static void print(const struct job_row *r, int64_t n)
{
	printf("event       %-11s %-15s %-22s -> %-12s %10lld\n", job_state_names[r->state],
	       job_trigger_names[r->trigger], job_guard_names[r->guard],
	       r->next == NEXT_REFUSE   ? "refused"
	       : r->next == NEXT_IGNORE ? "ignored"
					: job_state_names[r->next],
	       (long long)n);
}

int coverage_print(const int64_t *counts)
{
	int never = 0;

	for (size_t i = 0; i < n_job_rows; i++) {
		print(&job_rows[i], counts[i]);
		never += counts[i] == 0 && !excused(&job_rows[i]);
	}
	return never;
}
