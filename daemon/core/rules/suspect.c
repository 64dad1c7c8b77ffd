/* See suspect.h. What counts against a checkpoint: the first dead rank ended by itself, or of a
 * signal that nobody sends, after the attempt had begun to load and before an iteration of its
 * own. What does not: nodes, supervisors and launches that failed, a rank that was killed or ran
 * out of memory, a node of the attempt with a critical finding, an engine that says it did not
 * come to its load. */
#include "daemon/core/rules/suspect.h"

#include <signal.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/incident.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"

#define LOADS_MAX 2     /* deaths that make it suspect */
#define REASON_MAX 1000 /* bytes of what is known of the death before */
#define SAID_MAX 200

/* Itself, or its child by the word of a shell. */
static bool somebody_sent(const struct rank_exit *e)
{
	int64_t signal = e->signal > 0 ? e->signal : e->code > 128 ? e->code - 128 : 0;

	return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

static bool node_is_ill(const struct state *s, const struct job *j)
{
	for (size_t i = 0; i < j->run.n_places; i++) {
		const struct node *n = node_find(s, j->run.places[i].node);

		for (size_t k = 0; n && n->health && k < n->health->n_results; k++)
			if (n->health->results[k].state == CHECK_CRIT)
				return true;
	}
	return false;
}

bool suspect_counts(const struct state *s, const struct job *j, const struct blame *b)
{
	if (j->run.resume < 0 || j->progress.iteration > j->run.resume ||
	    j->progress.phase == PHASE_INIT)
		return false;
	if ((b->kind != B_EXIT && b->kind != B_SIGNAL) || mo_streq(b->rank->exit->cause, "oom") ||
	    somebody_sent(b->rank->exit))
		return false;
	return !node_is_ill(s, j);
}

static char *evidence(const struct job *j, const struct checkpoint *c, const struct blame *b,
		      const char *cause)
{
	_cleanup_(mo_freep) char *said = incident_said(b);
	struct mo_buf text = { 0 };

	if (c->failed_loads != MO_NONE && c->reason)
		mo_buf_printf(&text,
			      "%.*s; so did attempt %lld: ", mo_utf8_shown(c->reason, REASON_MAX),
			      c->reason, (long long)j->attempt);
	else
		mo_buf_printf(&text, "attempt %lld loaded it and died before a new iteration: ",
			      (long long)j->attempt);
	mo_buf_printf(&text, "rank %lld on %s: %s%.*s", (long long)b->rank->rank, b->step->node,
		      cause, mo_utf8_shown(said, SAID_MAX), said);
	return mo_buf_take(&text);
}

static void tell(struct turn *t, int64_t id, const struct checkpoint *c)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_int(&b, "iteration", c->iteration);
	data_str(&b, "path", c->path);
	data_str(&b, "reason", c->reason);
	event_emit(t, EVENT_CHECKPOINT_SUSPECT, id, NULL, MO_NONE, c->attempt, data_end(&b),
		   "checkpoint %lld is suspect: %s", (long long)c->iteration, c->reason);
}

void suspect_blame(struct turn *t, int64_t id, const struct blame *b, const char *cause)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct checkpoint *c = checkpoint_find(j, j->run.resume);
	struct checkpoint *k;
	struct record r;

	mo_assert(suspect_counts(&t->core->state, j, b));
	if (!c || (!checkpoint_usable(c) && c->state != CKPT_SUSPECT))
		return; /* it was found to be of no use meanwhile, and is not taken again */
	record_init(&r, REC_CHECKPOINT);
	r.job = id;
	k = r.checkpoint = mo_desc_dup(&checkpoint_desc, c);
	free(k->reason);
	k->reason = evidence(j, c, b, cause);
	k->failed_loads = MO_MAX(c->failed_loads, 0) + 1;
	if (k->failed_loads >= LOADS_MAX)
		k->state = CKPT_SUSPECT;
	turn_emit(t, &r);
	c = checkpoint_find(job_find(&t->core->state, id), c->iteration);
	if (c->state == CKPT_SUSPECT)
		tell(t, id, c);
}

/* The newest suspect one that the next attempt passes over; *ret_n: how many there are of them. */
static const struct checkpoint *passed_over(const struct job *j, int64_t *ret_n)
{
	int64_t taken = checkpoint_newest_at_most(j, INT64_MAX, false);
	const struct checkpoint *newest = NULL;

	*ret_n = 0;
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (j->checkpoints[i].state == CKPT_SUSPECT &&
		    j->checkpoints[i].iteration > taken) {
			newest = &j->checkpoints[i];
			++*ret_n;
		}
	return newest;
}

char *suspect_give_up(const struct job *j, const char *cause)
{
	int64_t limit = j->spec.recipe.max_cycles > 0 ? j->spec.recipe.max_cycles : 3, n;
	const struct checkpoint *c = passed_over(j, &n);

	if (n < limit || checkpoint_newest_at_most(j, INT64_MAX, false) == MO_NONE)
		return NULL;
	return mo_printf("%lld checkpoints in a row, the newest %lld, were each loaded by attempts "
			 "that died before a new iteration, the last time: %s; so many are not "
			 "damaged alike: look at the program and its nodes; older ones are left "
			 "('moectl checkpoints j-%lld')",
			 (long long)n, (long long)c->iteration, cause, (long long)j->id);
}

char *suspect_next(const struct job *j)
{
	int64_t n;
	const struct checkpoint *c = passed_over(j, &n);

	if (!c || checkpoint_newest_at_most(j, INT64_MAX, false) == MO_NONE)
		return mo_strdup("the next attempt is prepared");
	return mo_printf("the next attempt is prepared from an older checkpoint, as %lld is "
			 "suspect",
			 (long long)c->iteration);
}
