/* Steps that a node holds and we do not have: of a controller whose state was put away, of a job in
 * quarantine, or old ones that may be forgotten. One that lives keeps its node from work, and is
 * reported once. */
#include "daemon/core/rules/strays.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/proof.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/incarnation.h"

/* An agent takes no attempt of a job before it has proved the one before gone from its node:
 * what it holds proves that much of its own node. */
static void later_attempt(struct turn *t, const char *name, int64_t job, int64_t attempt)
{
	const struct job *j = job_find(&t->core->state, job);

	for (const struct step *st = j ? step_next(j, name, -1) : NULL;
	     st && st->attempt < attempt;) {
		int64_t known = st->attempt;
		_cleanup_(mo_freep) char *how =
			mo_printf("the node took attempt %lld of the job after it",
				  (long long)attempt);

		if (!st->gone)
			proof_step(t, job, st, how);
		st = step_next(j, name, known);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order and each once: a node that tells its thousands in another order each time says
 * nothing new, and one is found among them quickly. */
static void sort_names(char **names, size_t *n)
{
	size_t retained = 0;

	qsort(names, *n, sizeof(*names), by_name);
	for (size_t i = 0; i < *n; i++) {
		if (retained > 0 && strcmp(names[retained - 1], names[i]) == 0)
			free(names[i]);
		else
			names[retained++] = names[i];
	}
	*n = retained;
}

static bool same_names(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
	for (size_t i = 0; i < n_a && n_a == n_b; i++)
		if (!mo_streq(a[i], b[i]))
			return false;
	return n_a == n_b;
}

/* Takes r's content when something changed. */
static void strange(struct turn *t, const char *name, struct record *r)
{
	const struct node *n = node_find(&t->core->state, name);
	struct rec_strange *k = r->strange;

	r->node = mo_strdup(name);
	k->holds_unknown = k->n_living > 0;
	if (k->n_living > 0)
		sort_names(k->living, &k->n_living);
	if (n->strays.any != k->holds_unknown ||
	    !same_names(n->strays.steps, n->strays.n_steps, k->living, k->n_living))
		turn_emit(t, r);
	else
		mo_desc_done(&record_desc, r);
}

/* Was it stored once, or may it have been, after the backup that this state comes from? Then it
 * may be forgotten when it is gone. A job that is final takes no attempt again: one above its
 * last is of a controller whose state was put away for this one. */
static bool is_ours(const struct core *c, const struct job *j, const struct step_report *rep)
{
	return !job_is_out(&c->state, rep->job) && rep->job > 0 && rep->job < c->state.next_job &&
	       (!j || job_state_final(j->state) || rep->attempt < job_next_attempt(j));
}

/* Steps we do not have. One that lives keeps its node from work. fresh: as in fleet_reports(). */
void stray_steps(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps,
		 bool fresh)
{
	struct live *l = core_live(t->core, name);
	struct record r;

	record_init(&r, REC_STRANGE);
	l->n_strays = 0;
	for (size_t i = 0; i < n_steps; i++) {
		const struct job *j = job_find(&t->core->state, steps[i].job);
		const struct node *n = node_find(&t->core->state, name);
		struct stray stray = { .job = steps[i].job,
				       .attempt = steps[i].attempt,
				       .written = steps[i].written,
				       .gone = steps[i].state == STEP_GONE };
		_cleanup_(mo_freep) char *step = NULL;

		if (j && step_find(j, steps[i].attempt, name))
			continue;
		stray.ours = is_ours(t->core, j, &steps[i]);
		*MO_GROW(l->strays, l->n_strays) = stray;
		if (fresh && j && !stray.gone && stray.attempt > j->attempt)
			later_attempt(t, name, stray.job, stray.attempt);
		if (stray.gone)
			continue;
		step = step_name(stray.job, stray.attempt);
		/* those of an earlier version are in no order: they are reported once more at the
		 * most */
		if (n->strays.n_steps == 0 || !bsearch(&step, n->strays.steps, n->strays.n_steps,
						       sizeof(*n->strays.steps), by_name))
			event_emit(t, EVENT_STEP_UNKNOWN, stray.job, name, MO_NONE, stray.attempt,
				   NULL,
				   "node %s holds step %s, which %s; it is kept and the node gets "
				   "no work until it ends, or 'moectl resolve %s --kill' ends it",
				   name, step,
				   job_is_out(&t->core->state, stray.job)
					   ? "is of a job in quarantine (moed --put-back)"
					   : "this controller never stored",
				   step);
		mo_strs_add(&r.strange->living, &r.strange->n_living, step);
	}
	strange(t, name, &r);
}

int stray_command(const struct core *c, const char *node, const struct stray *s)
{
	bool discarded = step_discarded(node_find(&c->state, node), s->job, s->attempt);

	if (s->gone)
		return s->ours || discarded ? CMD_FORGET : -1;
	return discarded ? CMD_KILL : -1;
}
