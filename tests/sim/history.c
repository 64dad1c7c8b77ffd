/* What is forgotten because of its age, held to what is still needed: in some seeds an age of less
 * than a minute, so that it happens while everything breaks. */
#include "tests/sim/check.h"

#include "daemon/core/state/live.h"

/* An unfinished job saves where it saved. */
static bool dir_in_use(const struct state *st, const struct job *j)
{
	for (size_t i = 0; j->saves.dir && i < st->n_jobs; i++)
		if (!job_state_final(st->jobs[i]->state) &&
		    mo_streq(st->jobs[i]->saves.dir, j->saves.dir))
			return true;
	return false;
}

static bool drained(const struct state *st, const char *node)
{
	const struct node *n = node_find(st, node);

	return n && n->drain.asked;
}

static bool speaks_against_a_node(const struct state *st, const struct job *j)
{
	for (size_t i = 0; i < j->n_incidents; i++)
		if (drained(st, j->incidents[i].node))
			return true;
	return false;
}

static void check_leaves(struct sim *s, const struct job *j, int64_t time)
{
	const struct state *st = core_state(s->ctl.shadow);
	struct truth *t = sim_job(s, j->id);

	if (!job_state_final(j->state) || time - j->ended_at < HISTORY)
		sim_violation(s, "j-%lld is forgotten, it is %s for %lld s", (long long)j->id,
			      job_state_names[j->state], (long long)((time - j->ended_at) / S));
	if (j->n_steps || past_known_live(s, j))
		sim_violation(s, "j-%lld is forgotten with %zu steps", (long long)j->id,
			      j->n_steps);
	if (dir_in_use(st, j))
		sim_violation(s, "j-%lld is forgotten, and another job saves to %s",
			      (long long)j->id, j->saves.dir);
	if (speaks_against_a_node(st, j))
		sim_violation(s, "j-%lld is forgotten, and failed on a node that is drained",
			      (long long)j->id);
	check_samples(s, j);
	t->acked = t->cancel_acked = t->pause_acked = false;
	s->fault_counts[F_FORGOTTEN]++;
}

void check_history(struct sim *s, const struct record *r)
{
	const struct state *st = core_state(s->ctl.shadow);

	if (r->type != REC_HISTORY)
		return;
	for (size_t i = 0; i < st->n_jobs; i++) {
		const struct job *j = st->jobs[i];

		if (ids_has(r->history->jobs, r->history->n_jobs, j->id))
			check_leaves(s, j, r->time);
		else if (job_state_final(j->state) && r->time - j->ended_at >= HISTORY)
			s->fault_counts[F_STILL_NEEDED]++;
	}
	for (size_t i = 0; i < st->n_events; i++) {
		const struct event *e = &st->events[i];
		bool leaves = ids_has(r->history->events, r->history->n_events, e->seq);
		const struct job *j = e->job == MO_NONE ? NULL : job_find(st, e->job);

		if (leaves && (r->time - e->time < HISTORY || drained(st, e->node) ||
			       (j && !ids_has(r->history->jobs, r->history->n_jobs, j->id))))
			sim_violation(s, "event %lld is forgotten: %s", (long long)e->seq,
				      e->message);
	}
}
