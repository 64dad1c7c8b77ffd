/* See update_history.h. Which ones was decided when the record was made (rules/history.c); a job
 * that is not there was taken out by moed --quarantine. */
#include "daemon/core/update/update_history.h"

#include <errno.h>

#include "daemon/core/state/live.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/retained.h"
#include "daemon/core/update/ring.h"
#include "daemon/core/update/slots.h"

static bool ascending(const int64_t *ids, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (ids[i] <= ids[i - 1])
			return false;
	return true;
}

static bool may_leave(const struct job *j)
{
	return job_state_final(j->state) && j->n_steps == 0 && !j->scan.at_end;
}

void history_free(struct core *c, struct job *j)
{
	retained_leave(c, j);
	tally_job(c, j->state, -1);
	core_beats_drop(c, j->id);
	mo_desc_free(&job_desc, j);
}

int update_history(struct core *c, const struct record *r)
{
	const struct rec_history *k = r->history;
	struct state *s = &c->owned;
	size_t retained = 0;

	if ((!k->n_jobs && !k->n_events) || !ascending(k->jobs, k->n_jobs) ||
	    !ascending(k->events, k->n_events))
		return -EINVAL;
	for (size_t i = 0; i < k->n_jobs; i++) {
		const struct job *j = job_find(s, k->jobs[i]);

		if (j && !may_leave(j))
			return -EINVAL;
	}
	ring_forget(s, k->events, k->n_events);
	for (size_t i = 0; i < s->n_jobs; i++) {
		if (ids_has(k->jobs, k->n_jobs, s->jobs[i]->id))
			history_free(c, s->jobs[i]);
		else
			s->jobs[retained++] = s->jobs[i];
	}
	s->n_jobs = retained;
	return 0;
}
