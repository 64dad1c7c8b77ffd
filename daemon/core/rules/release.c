/* Steps that a node does not start yet, because the job before them has not given back a GPU. The
 * agent decides that, and says it with each sync; here it is only told to people. Nothing is
 * stored: in 30 s it starts, or refuses. Called by reports.c. */
#include "daemon/core/rules/release.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/heard.h"

static void tell(struct turn *t, const char *node, const struct step_wait *w)
{
	event_emit(t, EVENT_STEP_WAITS, w->job, node, MO_NONE, w->attempt, NULL,
		   "attempt %lld of j-%lld waits on %s until a GPU is given back: %s",
		   (long long)w->attempt, (long long)w->job, node, w->text);
}

void release_reports(struct turn *t, const char *node, const struct step_report *steps, size_t n)
{
	struct live *l = core_live(t->core, node), now = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct job *j =
			steps[i].waits ? job_find(&t->core->state, steps[i].job) : NULL;
		const struct step_wait *was;
		struct step_wait *w;

		if (!j || !step_find(j, steps[i].attempt, node))
			continue;
		was = step_wait_of(&t->core->state, node, steps[i].job, steps[i].attempt);
		w = MO_GROW(now.waits, now.n_waits);
		*w = (struct step_wait){ .job = steps[i].job,
					 .attempt = steps[i].attempt,
					 .since = was ? was->since : t->now,
					 .text = mo_strdup(steps[i].waits) };
		if (!was)
			tell(t, node, w);
	}
	live_waits_clear(l);
	l->waits = now.waits;
	l->n_waits = now.n_waits;
}

/* A node that fell silent said so last, and may be proved dead since. */
static bool waits(const struct state *s, const char *node, const struct step_wait *w)
{
	const struct job *j = job_find(s, w->job);
	const struct step *st = j ? step_find(j, w->attempt, node) : NULL;

	return st && !step_dead(st);
}

int64_t core_steps_waiting(const struct core *c)
{
	int64_t n = 0;

	for (size_t i = 0; i < c->state.n_nodes; i++)
		for (size_t k = 0; k < c->lives[i]->n_waits; k++)
			n += waits(&c->state, c->state.nodes[i]->name, &c->lives[i]->waits[k]);
	return n;
}
