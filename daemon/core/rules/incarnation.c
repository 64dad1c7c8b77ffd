/* See incarnation.h: why jobs wait, and the operator's decision about steps on which controller
 * and node disagree. */
#include "daemon/core/rules/incarnation.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/proof.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/core/update/wake.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

/* ---- why a job waits ---- */

char *strange_text(const struct node *n)
{
	struct mo_buf b = { 0 };

	for (size_t k = 0; k < n->n_strange && b.len < 256; k++)
		mo_buf_printf(&b, "%s%s", b.len ? ", " : "", n->strange[k]);
	return b.len ? mo_buf_take(&b) : NULL;
}

char *unknown_steps_text(const struct state *s, int64_t job)
{
	_cleanup_(mo_freep) char *prefix = mo_printf("j-%lld.", (long long)job);
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < s->n_nodes; i++)
		for (size_t k = 0; k < s->nodes[i].n_strange; k++)
			if (mo_starts_with(s->nodes[i].strange[k], prefix) && b.len < 512)
				mo_buf_printf(&b, "%s%s on %s", b.len ? ", " : "",
					      s->nodes[i].strange[k], s->nodes[i].name);
	return b.len ? mo_buf_take(&b) : NULL;
}

static const struct node *some_unseen(const struct state *s, size_t *ret_n)
{
	const struct node *found = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < s->n_nodes; i++)
		if (s->nodes[i].unseen) {
			found = found ? found : &s->nodes[i];
			++*ret_n;
		}
	return found;
}

char *incarnation_holds(const struct state *s, const struct job *j, int64_t now, int64_t *ret_until)
{
	const struct node *unseen;
	size_t n;

	/* Ids from there on were never used before: what a node says it runs of them is no
	 * attempt of theirs. */
	if (s->restored_jobs == MO_NONE || j->id >= s->restored_jobs)
		return NULL;
	_cleanup_(mo_freep) char *unknown = unknown_steps_text(s, j->id);
	if (unknown)
		return mo_printf("steps of it run that this controller never stored: %s; waits "
				 "until they end, or for a decision: moectl resolve",
				 unknown);
	unseen = some_unseen(s, &n);
	if (unseen)
		return mo_printf("the state was restored from a backup and %s%s not heard since: "
				 "it may hold an attempt that the backup does not know; waits "
				 "(moectl fence %s --confirmed, when it is off)",
				 unseen->name, n > 1 ? " and others were" : " was", unseen->name);
	if (s->restored_wait == MO_NONE || now >= s->restored_wait)
		return NULL;
	*ret_until = s->restored_wait;
	return mo_strdup("the state was restored from a backup: waits a moment for nodes that the "
			 "backup does not know");
}

/* ---- an agent that knows more than this state ---- */

void incarnation_obeyed(struct turn *t, const char *node, int64_t epoch)
{
	const struct node *n = node_find(&t->core->state, node);
	_cleanup_(mo_freep) char *theirs = epoch_text(epoch),
				 *ours = epoch_text(t->core->state.epoch);
	struct record r;

	if (n->obeys == epoch)
		return;
	record_init(&r, REC_OBEYS);
	r.node = mo_strdup(node);
	r.obeys->epoch = epoch;
	turn_emit(t, &r);
	event_emit(t, EVENT_CONTROLLER_STALE, MO_NONE, node, MO_NONE, MO_NONE, NULL,
		   "node %s obeyed a controller that is later (%s) than this state (%s), which is "
		   "an old copy or of another controller: it gets no work, its steps run on; stop "
		   "moed and bring the newest state back (moed --restore FILE)",
		   node, theirs, ours);
}

/* ---- the decision ---- */

static const char *decider(const struct turn *t)
{
	return t->input->by.user ? t->input->by.user : "an operator";
}

static size_t discard(struct turn *t, const struct in_resolve *in, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < t->core->state.n_nodes; i++) {
		const struct node *k = &t->core->state.nodes[i];
		struct record r;

		if ((in->node && !mo_streq(in->node, k->name)) ||
		    mo_enum_parse((const char *const *)k->strange, k->n_strange, name) < 0)
			continue;
		n++;
		if (step_discarded(k, in->job, in->attempt))
			continue;
		record_init(&r, REC_DISCARD);
		r.node = mo_strdup(k->name);
		r.job = in->job;
		r.attempt = in->attempt;
		turn_emit(t, &r);
		event_emit(t, EVENT_STEP_RESOLVED, in->job, k->name, MO_NONE, in->attempt, NULL,
			   "the unknown step %s on %s is ended, says %s", name, k->name,
			   decider(t));
		wake_node(t->core, k->name);
	}
	return n;
}

/* Only what its living agent does not have: what it has, it ends itself. */
static size_t state_gone(struct turn *t, const struct in_resolve *in, const char *name)
{
	const struct job *j = job_find(&t->core->state, in->job);
	size_t n = 0;

	for (size_t i = 0; j && i < j->n_steps; i++) {
		const struct step *st = &j->steps[i];
		_cleanup_(mo_freep) char *how = NULL;

		if (st->attempt != in->attempt || st->gone || !st->missing ||
		    (in->node && !mo_streq(in->node, st->node)))
			continue;
		n++;
		event_emit(t, EVENT_STEP_RESOLVED, in->job, st->node, MO_NONE, in->attempt, NULL,
			   "step %s has no process on %s, says %s", name, st->node, decider(t));
		how = mo_printf("%s said that no process of it is left", decider(t));
		proof_step(t, in->job, st, how);
		j = job_find(&t->core->state, in->job);
	}
	return n;
}

void incarnation_resolve(struct turn *t)
{
	const struct in_resolve *in = t->input->resolve;
	_cleanup_(mo_freep) char *name = step_name(in->job, in->attempt);
	bool kill = mo_streq(in->how, "kill");

	if (!t->input->by.may_all)
		turn_reply(t, 403, MO_NONE, "step %s: only an operator may do that", name);
	else if (!kill && !mo_streq(in->how, "gone"))
		turn_reply(t, 422, MO_NONE, "how: must be kill or gone");
	else if (kill ? discard(t, in, name) : state_gone(t, in, name))
		turn_reply(t, 200, MO_NONE, NULL);
	else if (kill)
		turn_reply(t, 409, MO_NONE,
			   "step %s: no node%s%s holds it as a step that this controller never "
			   "stored; see 'moectl why NODE'",
			   name, in->node ? " " : "", in->node ? in->node : "");
	else
		turn_reply(t, 409, MO_NONE,
			   "step %s: it is not missing%s%s: a step that its agent has is ended by "
			   "cancelling or restarting its job",
			   name, in->node ? " on " : "", in->node ? in->node : "");
}
