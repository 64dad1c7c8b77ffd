/* Who stands out by what ranks do with processors and GPUs (activity_judge.h), for how long, and
 * what is said of it. Ranks of all nodes are held against each other, whose agents' minutes begin
 * at different times: what holds for some minutes shows in all of them. */
#include "daemon/core/rules/straggler_activity.h"

#include "daemon/core/rules/rank_words.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/pace.h"

#define JUDGED_US (30 * 1000000LL) /* between two judgements */
#define STAYS_US (150 * 1000000LL) /* between the first sight and the verdict: two more windows */

bool activity_due(const struct job_beats *b, int64_t now)
{
	return b->acted && (!b->acted_at || now - b->acted_at >= JUDGED_US);
}

static struct rank_acted *acted_of(const struct turn *t, const struct job *j, struct job_beats *b)
{
	struct rank_acted *r = mo_alloc_array(j->run.n_ranks + 1, sizeof(*r));

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		const struct rank *k = &j->run.ranks[i];

		r[i] = (struct rank_acted){ .rank = (int64_t)i,
					    .stage = k->coords ? k->coords->pp : 0 };
		acts_now(&b->ranks[i].acts, t->now, r[i].now);
		acts_usual(&b->ranks[i].acts, r[i].usual);
	}
	b->acted = false;
	b->acted_at = t->now;
	return r;
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

static void evidence(const struct rank_acted *own, const struct activity_verdict *v, bool slow,
		     struct rec_straggler *ret)
{
	static const struct {
		int kind;
		double less;
		const char *what, *unit;
	} lines[] = {
		{ ACT_DELAY, 100, "its processes wait for a processor", " % of the time" },
		{ ACT_WANTED, 0, "they have one or wait for one", " % of the time" },
		{ ACT_BUSY, 0, "its GPU is busy", " % of the time" },
		{ ACT_MEM, 0, "its GPU uses", " % of its memory's bandwidth" },
		{ ACT_POWER, 0, "its GPU takes", " W" },
	};

	for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
		double now = own->now[lines[i].kind], usual = own->usual[lines[i].kind],
		       median = v->median[lines[i].kind];
		_cleanup_(mo_freep) char *before =
			slow && now != MO_NONE_F && usual != MO_NONE_F
				? mo_printf("; before the job became slower %.0f%s",
					    usual - lines[i].less, lines[i].unit)
				: NULL;
		_cleanup_(mo_freep) char *line =
			now == MO_NONE_F || median == MO_NONE_F
				? NULL
				: mo_printf("%s %.0f%s (its peers: a median of %.0f)%s",
					    lines[i].what, now - lines[i].less, lines[i].unit,
					    median - lines[i].less, before ? before : "");

		if (line)
			mo_strs_add(&ret->evidence, &ret->n_evidence, line);
	}
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
	_cleanup_(mo_freep) struct rank_acted *r = acted_of(t, j, b);
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
	_cleanup_(mo_freep) struct rank_acted *r = acted_of(t, j, b);
	const struct job_straggler *g = &j->straggler;

	return (g->alone && g->sign != SIGN_WORK && !pace_slow(j)) ||
	       activity_over(r, j->run.n_ranks, g->rank, g->sign);
}
