/* With recovery.straggler: drain a job moves away from the node of its straggler, as from one that
 * somebody drains: by a planned stop behind a complete checkpoint. It moves when that pays, by what
 * the job measured of itself, and by the rule of whoever does not know whether to rent skis or to
 * buy them: as soon as the straggler has cost as much as the restart does. A slowness that passes
 * by itself then never costs more than twice what it had to, and what is no more than noise moves
 * nobody. What is ahead of the job must be worth it too: until its end, or the failure that it may
 * expect, which moves it anyway.
 *
 * It stays where the verdict may be wrong (the same rank was as slow on another node: then it is
 * what the rank does), and where nothing is won (no other node, others wait for that one, too many
 * cordoned by themselves already). */
#include "daemon/core/rules/straggler_leave.h"

#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/elsewhere.h"
#include "daemon/core/rules/events.h"
#include "daemon/core/state/slots.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/interval.h"
#include "daemon/core/state/progress.h"
#include "daemon/core/state/waiting.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"

/* Seconds: lost by the straggler so far, what a restart costs, what is ahead of the job. */
struct worth {
	double lost, restart, ahead;
};

bool straggler_may_leave(const struct job *j)
{
	return j->straggler.rank != MO_NONE && !j->straggler.alone &&
	       mo_streq(j->spec.recipe.straggler, "drain");
}

static const char *node_of(const struct job *j)
{
	mo_assert(j->straggler.rank >= 0 && (size_t)j->straggler.rank < j->run.n_ranks);
	return j->run.ranks[j->straggler.rank].node;
}

/* ---- whether it pays ---- */

/* What a start took it: the mean of all, or the longest after a failure when that was more. */
static double start_s(const struct job *j)
{
	static const int parts[] = { GPU_LAUNCH, GPU_IMAGE, GPU_INIT, GPU_LOAD };
	int64_t all = 0, longest = 0;

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		all += (size_t)parts[i] < j->n_ledger ? j->ledger[parts[i]] : 0;
	for (size_t i = 0; i < j->n_incidents; i++) {
		const struct waterfall *w = &j->incidents[i].waterfall;
		int64_t ms = MO_MAX(w->place, 0) + MO_MAX(w->image, 0) + MO_MAX(w->launch, 0) +
			     MO_MAX(w->init, 0) + MO_MAX(w->load, 0);

		longest = MO_MAX(longest, ms);
	}
	return MO_MAX((double)all / 1e6 / (double)(job_gpus(j) * MO_MAX(j->attempt, 1)),
		      (double)longest / 1e3);
}

/* from: the checkpoint that it would resume from; NULL: one that is saved now. */
static struct worth worth_of(const struct state *s, const struct job *j,
			     const struct checkpoint *from, int64_t now)
{
	const struct recipe *r = &j->spec.recipe;
	double step = (double)samples_step_us(j) / 1e6;
	int64_t reached = MO_MAX(j->progress.iteration, 0), until = job_time_up(j),
		saved = from ? MO_MIN(MO_MAX(from->saved_at, j->straggler.at), now) : now;
	struct worth w = { .ahead = interval_mttf_s(s, j) };

	w.lost = j->straggler.lost_pct / 100 * (double)(saved - j->straggler.at) / 1e6;
	w.restart = start_s(j) + (double)r->stop_grace_us / 1e6;
	if (from)
		w.restart += step * (double)MO_MAX(reached - from->iteration, 0);
	if (r->steps != MO_NONE && step > 0)
		w.ahead = MO_MIN(w.ahead, step * (double)MO_MAX(r->steps - reached, 0));
	if (until != INT64_MAX)
		w.ahead = MO_MIN(w.ahead, (double)MO_MAX(until - now, 0) / 1e6);
	return w;
}

static char *not_worth(const struct job *j, const struct worth *w)
{
	double gain = j->straggler.lost_pct / 100 * w->ahead;

	if (w->lost < w->restart)
		return mo_printf("the job has lost %.3g s by it so far, and a restart costs up to "
				 "%.3g s",
				 w->lost, w->restart);
	if (gain < w->restart)
		return mo_printf("of the %.3g s ahead it would win %.3g s, and a restart costs up "
				 "to %.3g s",
				 w->ahead, gain, w->restart);
	return NULL;
}

/* ---- whether the verdict can be relied on ---- */

static char *doubtful(const struct job *j, int64_t now)
{
	int64_t n = 0;

	for (size_t i = 0; i < j->straggler.n_found; i++) {
		const struct found_straggler *f = &j->straggler.found[i];

		n += f->left && now - f->at < LEAVES_US;
		if (f->left && f->rank == j->straggler.rank && !mo_streq(f->node, node_of(j)))
			return mo_printf("rank %lld was as slow on %s: it is what the rank does, "
					 "no node",
					 (long long)f->rank, f->node);
	}
	return n < LEAVES_MAX ? NULL
			      : mo_printf("it has left %lld nodes within a day by such verdicts",
					  (long long)n);
}

/* ---- whether there is another node ---- */

/* Who takes the first slots that are free; NULL: nobody waits for them. */
static const struct job *first_waiting(const struct state *s)
{
	for (size_t i = 0; s->queue && i < s->queue->n_items; i++) {
		const struct waiting *w = &s->queue->items[i];
		const struct job *j = job_find(s, w->waiter);
		bool takes = w->code == WAITING_CAPACITY || w->code == WAITING_BEHIND ||
			     w->code == WAITING_IMAGE || w->code == WAITING_SCAN ||
			     w->code == WAITING_CHECKS || w->code == WAITING_PAUSE ||
			     w->code == WAITING_GRACE;

		if (j && takes && j->run.n_places == 0 && !job_state_final(j->state))
			return j;
	}
	return NULL;
}

static char *no_room(const struct state *s, const struct job *j)
{
	const struct node *n = node_find(s, node_of(j));
	const struct job *other = first_waiting(s);
	struct place *places = NULL;
	size_t n_places = 0;
	struct slots slots;
	struct recipe away = j->spec.recipe;
	_cleanup_(mo_freep) char **names = mo_alloc_array(away.n_exclude + 1, sizeof(*names));
	int found;

	if (n && n->drain.asked && !n->drain.cordon)
		return mo_printf("%s is drained already (%s)", n->name, n->drain.when);
	if (n && !n->drain.asked && !cordon_room_in(s, false))
		return mo_strdup("as many nodes are cordoned already as happens by itself");
	if (other)
		return mo_printf("j-%lld waits for GPUs, and would get them first",
				 (long long)other->id);
	for (size_t i = 0; i < away.n_exclude; i++)
		names[i] = away.exclude[i];
	names[away.n_exclude++] = j->run.ranks[j->straggler.rank].node;
	away.exclude = names;
	slots_init_without(s, j, &slots);
	slots_for(&slots, s, j);
	found = place_in(s, &slots, &away, &places, &n_places, NULL);
	slots_done(&slots);
	mo_vec_clear(&place_desc, (void **)&places, &n_places);
	return found == 0 ? NULL : mo_printf("there is no room for it without %s", node_of(j));
}

/* ---- both ---- */

static char *no_use(const struct state *s, const struct job *j, const struct checkpoint *from,
		    int64_t now, struct worth *ret)
{
	char *why = doubtful(j, now);

	*ret = worth_of(s, j, from, now);
	return why ? why : not_worth(j, ret);
}

char *straggler_stays(const struct state *s, const struct job *j, int64_t now)
{
	struct worth w;
	char *why = no_use(s, j, NULL, now, &w);
	_cleanup_(mo_freep) char *room = why ? NULL : no_room(s, j);

	return room ? mo_printf("%s; room is searched again when nodes change, or jobs that have "
				"GPUs or wait for them",
				room)
		    : why;
}

static bool leave(struct turn *t, int64_t id, const struct worth *w)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t rank = j->straggler.rank;
	_cleanup_(mo_freep) char *node = mo_strdup(node_of(j)), *reason = NULL;
	struct mo_buf b = { 0 };
	struct record r;

	reason = mo_printf("%s; it lost %.3g s by it, a restart costs up to %.3g s, and %.3g s are "
			   "ahead: the job moves elsewhere",
			   j->straggler.text, w->lost, w->restart, w->ahead);
	elsewhere_cordon(t, id, node, "straggler", j->straggler.text);
	record_init(&r, REC_STRAGGLER);
	r.job = id;
	r.attempt = j->attempt;
	r.straggler->rank = rank;
	r.straggler->left = true;
	turn_emit(t, &r);
	data_real(&b, "lost_s", w->lost);
	data_real(&b, "restart_s", w->restart);
	data_real(&b, "ahead_s", w->ahead);
	event_emit(t, EVENT_STRAGGLER_LEFT, id, node, rank, j->attempt, data_end(&b), "%s", reason);
	job_intent(t, id, INTENT_DRAIN, false, j->restart_from);
	job_move(t, id, T_DRAIN, false, 0, reason);
	return true;
}

bool straggler_leave_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct checkpoint *from =
		straggler_may_leave(j) ? checkpoint_since(j, j->straggler.at) : NULL;
	_cleanup_(mo_freep) char *why = NULL;
	struct worth w;

	if (!from || job_row_find(j, T_DRAIN)->next < 0)
		return false;
	why = no_use(&t->core->state, j, from, t->now, &w);
	if (why || !core_search_room(t->core, j))
		return false;
	why = no_room(&t->core->state, j);
	return !why && leave(t, id, &w);
}
