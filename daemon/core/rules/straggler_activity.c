/* Who stands out by what ranks do with processors and GPUs (activity_judge.h), for how long, and
 * what is said of it. Ranks of all nodes are held against each other, whose agents' minutes begin
 * at different times: what holds for some minutes shows in all of them. */
#include "daemon/core/rules/straggler_activity.h"

#include "daemon/core/rules/rank_words.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/pace.h"

#define JUDGED_US (30 * 1000000LL) /* between two judgements */
#define STAYS_US (150 * 1000000LL) /* between the first sight and the verdict: two more windows */

bool activity_due(const struct job_beats *b, int64_t now)
{
	return b->acted && (!b->acted_at || now - b->acted_at >= JUDGED_US);
}

/* Caller frees. */
static struct rank_acted *acted_of(const struct state *s, const struct job *j, int64_t now)
{
	static const struct rank_acts none;
	struct rank_acted *r = mo_alloc_array(j->run.n_ranks + 1, sizeof(*r));

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		const struct rank *k = &j->run.ranks[i];
		const struct rank_acts *acts = rank_acts_of(s, j, i);

		r[i] = (struct rank_acted){ .rank = (int64_t)i,
					    .stage = k->coords ? k->coords->pp : 0 };
		acts_now(acts ? acts : &none, now, r[i].now);
		acts_usual(acts ? acts : &none, r[i].usual);
	}
	return r;
}

static struct rank_acted *to_judge(const struct turn *t, const struct job *j, struct job_beats *b)
{
	b->acted = false;
	b->acted_at = t->now;
	return acted_of(&t->core->state, j, t->now);
}

/* ---- in words ---- */

static char *text_of(const struct job *j, const struct activity_verdict *v, double lost)
{
	_cleanup_(mo_freep) char *who = rank_words(j, v->odd.rank);
	double own = v->odd.value, peers = v->odd.median;

	switch (v->kind) {
	case ACT_DELAY:
		return mo_printf("by the activity of its processes, %s makes the job slow: they "
				 "wait for a processor %.0f %% of the time, those of its peers "
				 "%.0f %%: the job loses %.0f %% of its time",
				 who, own - 100, peers - 100, lost);
	case ACT_WANTED:
		return mo_printf("by the activity of its processes, %s makes the job slow: they "
				 "want a processor %.0f %% of the time, those of its peers "
				 "%.0f %%: the job loses %.0f %% of its time",
				 who, own, peers, lost);
	case ACT_BUSY:
		return mo_printf("by the activity of its GPU, %s makes the job slow: it is busy "
				 "%.0f %% of the time, those of its peers, which wait for it, "
				 "%.0f %%: the job loses %.0f %% of its time",
				 who, own, peers, lost);
	default:
		return mo_printf("by the activity of its GPU, %s has more to do than its peers: "
				 "it uses %.0f %% of its memory's bandwidth, theirs %.0f %%: the "
				 "job loses %.0f %% of its time",
				 who, own, peers, lost);
	}
}

/* What it reads of that kind, beside its peers; NULL: not known. Caller frees. */
static char *reading(const struct rank_acted *own, const struct activity_verdict *v, int kind,
		     bool slow)
{
	static const struct {
		double less;
		const char *what, *unit;
	} words[] = {
		[ACT_DELAY] = { 100, "its processes wait for a processor", " % of the time" },
		[ACT_WANTED] = { 0, "they have one or wait for one", " % of the time" },
		[ACT_BUSY] = { 0, "its GPU is busy", " % of the time" },
		[ACT_MEM] = { 0, "its GPU uses", " % of its memory's bandwidth" },
		[ACT_POWER] = { 0, "its GPU takes", " W" },
	};
	double now = own->now[kind], usual = own->usual[kind], median = v->median[kind];
	double less = words[kind].less;
	const char *unit = words[kind].unit;
	_cleanup_(mo_freep) char *before =
		slow && now != MO_NONE_F && usual != MO_NONE_F
			? mo_printf("; before the job became slower %.0f%s", usual - less, unit)
			: NULL;

	if (now == MO_NONE_F || median == MO_NONE_F)
		return NULL;
	return mo_printf("%s %.0f%s (its peers: a median of %.0f)%s", words[kind].what, now - less,
			 unit, median - less, before ? before : "");
}

static void evidence(const struct rank_acted *own, const struct activity_verdict *v, bool slow,
		     struct rec_straggler *ret)
{
	for (int kind = 0; kind < _ACTIVITY_KIND_N; kind++) {
		_cleanup_(mo_freep) char *line = reading(own, v, kind, slow);

		if (line)
			mo_strs_add(&ret->evidence, &ret->n_evidence, line);
	}
}

char *activity_hint_text(const struct state *s, const struct job *j, int64_t now)
{
	_cleanup_(mo_freep) struct rank_acted *r = acted_of(s, j, now);
	struct activity_verdict v = activity_hint(r, j->run.n_ranks);
	_cleanup_(mo_freep) char *who = NULL, *what = NULL;

	if (v.odd.rank == MO_NONE)
		return NULL;
	who = rank_words(j, v.odd.rank);
	what = reading(&r[v.odd.rank], &v, v.kind, false);
	return mo_printf("%s stands out by one reading, which is not enough: %s", who, what);
}

/* ---- the verdict ---- */

static bool stays(struct job_beats *b, const struct activity_verdict *v, int64_t now)
{
	if (v->odd.rank == MO_NONE || b->act_odd != v->odd.rank || b->act_odd_sign != v->sign) {
		b->act_odd = v->odd.rank;
		b->act_odd_sign = v->sign;
		b->act_odd_at = now;
	}
	return v->odd.rank != MO_NONE && now - b->act_odd_at >= STAYS_US;
}

bool activity_search(struct turn *t, const struct job *j, struct job_beats *b,
		     struct rec_straggler *ret)
{
	_cleanup_(mo_freep) struct rank_acted *r = to_judge(t, j, b);
	bool slow = pace_slow(j);
	struct activity_verdict v = activity_judge(r, j->run.n_ranks, slow);
	_cleanup_(mo_freep) char *pace = slow ? pace_text(j) : NULL;

	if (!stays(b, &v, t->now))
		return false;
	ret->rank = v.odd.rank;
	ret->sign = v.sign;
	ret->alone = v.alone;
	ret->times = v.odd.value / v.odd.median;
	ret->lost_pct = slow || v.lost_pct == MO_NONE_F ? pace_lost_pct(j) : v.lost_pct;
	ret->text = text_of(j, &v, ret->lost_pct);
	evidence(&r[v.odd.rank], &v, slow, ret);
	if (pace)
		mo_strs_add(&ret->evidence, &ret->n_evidence, pace);
	return true;
}

bool activity_ended(struct turn *t, const struct job *j, struct job_beats *b)
{
	_cleanup_(mo_freep) struct rank_acted *r = to_judge(t, j, b);
	const struct job_straggler *g = &j->straggler;

	return (g->alone && g->sign != SIGN_WORK && !pace_slow(j)) ||
	       activity_over(r, j->run.n_ranks, g->rank, g->sign);
}
