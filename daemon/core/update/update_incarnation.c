/* update.c's part for a state that was restored, and for nodes that know more than it does.
 * Called by core_update() only; what an incarnation is says state/incarnation.h. */
#include "daemon/core/update/update_incarnation.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/state/incarnation.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/slots.h"
#include "lib/base/parse.h"

#define DISCARD_MAX 64 /* of one node; older ones were obeyed long ago */

static int64_t next_multiple(int64_t n, int64_t of)
{
	return (n / of + 1) * of;
}

/* Above whatever was used in the seconds since the count began: also when the same backup, or
 * another one, is restored again, it leaps over what the incarnations between used. n: what the
 * backup knows; it is beyond that only by a burst. */
static int64_t leap(int64_t n, int64_t by, int64_t each_second, int64_t seconds)
{
	int64_t to = by + each_second * MO_MIN(MO_MAX(seconds, 0), RESTORED_S_MAX);

	return to > n ? to : next_multiple(n, by);
}

static int64_t epoch_second(int64_t epoch)
{
	return epoch / EPOCH_STARTS;
}

/* What the controllers of before did after the backup is not known: no number of them may be
 * used again. */
static void restored(struct state *s, int64_t now)
{
	if (s->born == MO_NONE)
		s->born = epoch_second(s->epoch);
	s->restored_jobs = s->next_job;
	s->restored_wait = MO_NONE;
	s->next_job = leap(s->next_job - 1, RESTORED_JOBS, RESTORED_JOBS_S, now - s->born) + 1;
	s->next_event_seq =
		leap(s->next_event_seq - 1, RESTORED_EVENTS, RESTORED_EVENTS_S, now - s->born) + 1;
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct job *j = s->jobs[i];
		int64_t born = MO_MAX(j->created_at - INCARNATION_ZERO_US, 0) / 1000000;

		if (job_state_final(j->state))
			continue;
		/* it may have trained on since, and what it saved is its own */
		j->unheard = true;
		j->attempt_floor = leap(job_next_attempt(j) - 1, RESTORED_ATTEMPTS,
					RESTORED_ATTEMPTS_S, now - born);
	}
	for (size_t i = 0; i < s->n_nodes; i++) {
		s->nodes[i]->unseen = true;
		s->nodes[i]->agent.reconciled = false;
	}
}

int update_restored(struct core *c, const struct record *r)
{
	const struct rec_restored *k = r->restored;

	if (k->epoch == MO_NONE || k->epoch <= c->owned.epoch ||
	    (k->from_backup && k->backup_at == MO_NONE))
		return -EINVAL;
	if (k->from_backup)
		restored(&c->owned, epoch_second(k->epoch));
	c->owned.epoch = k->epoch;
	slots_touch_all(c);
	c->queue_dirty = true;
	return 0;
}

int update_obeys(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);

	if (!n)
		return -EINVAL;
	n->agent.obeys = r->obeys->epoch;
	c->queue_dirty = true;
	return 0;
}

static void strs_clear(char ***strs, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		free((*strs)[i]);
	free(*strs);
	*strs = NULL;
	*n = 0;
}

/* A number that was seen is used up, where a backup may not know of it: nodes are believed
 * there, but not about numbers that nobody gave in all that time. */
static void used_up(struct state *s, const char *name)
{
	const char *dot = mo_starts_with(name, "j-") ? strstr(name, ".a") : NULL;
	_cleanup_(mo_freep) char *number =
		dot ? mo_strndup(name + 2, (size_t)(dot - name - 2)) : NULL;
	int64_t id, attempt;
	struct job *j;

	if (!number || mo_parse_i64(number, 1, INT64_MAX, &id) < 0 ||
	    mo_parse_i64(dot + 2, 1, INT64_MAX / 2, &attempt) < 0)
		return;
	j = job_edit(s, id);
	if (j && s->restored_jobs != MO_NONE && id < s->restored_jobs && attempt > j->attempt &&
	    attempt - j->attempt < RESTORED_UNKNOWN_MAX && !job_state_final(j->state))
		j->attempt_floor = MO_MAX(j->attempt_floor, attempt);
}

int update_strange(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	const struct rec_strange *k = r->strange;

	if (!n)
		return -EINVAL;
	n->strays.any = k->holds_unknown;
	strs_clear(&n->strays.steps, &n->strays.n_steps);
	for (size_t i = 0; i < k->n_living; i++) {
		mo_strs_add(&n->strays.steps, &n->strays.n_steps, k->living[i]);
		used_up(&c->owned, k->living[i]);
	}
	if (k->fenced)
		n->unseen = false;
	c->queue_dirty = true;
	return 0;
}

int update_discard(struct core *c, const struct record *r)
{
	struct node *n = node_edit(&c->owned, r->node);
	_cleanup_(mo_freep) char *name = step_name(r->job, r->attempt);

	if (!n || r->attempt == MO_NONE)
		return -EINVAL;
	if (n->strays.n_discard >= DISCARD_MAX) {
		free(n->strays.discard[0]);
		memmove(n->strays.discard, n->strays.discard + 1,
			--n->strays.n_discard * sizeof(*n->strays.discard));
	}
	mo_strs_add(&n->strays.discard, &n->strays.n_discard, name);
	return 0;
}
