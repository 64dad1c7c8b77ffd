/* See hang_judge.h. */
#include "daemon/core/rules/hang_judge.h"

#include "daemon/core/rules/rank_doing.h"
#include "daemon/core/rules/rank_words.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/slot_health.h"
#include "lib/base/buf.h"

#define UNUSED_US (60 * 1000000LL)

/* One rank as it was heard, in microseconds before that: what it did since then is not known, and
 * no rest. INT64_MAX: that cannot be read. */
struct seen {
	bool fresh;
	int64_t written, network, processors, computed;
	int64_t spun; /* so long its GPU only spins; 0: it does not, or nobody knows */
	int process;  /* enum process_state */
	int64_t iteration;
};

static int64_t age_us(int64_t ms)
{
	return ms == MO_NONE ? INT64_MAX : ms * 1000;
}

static struct seen look(const struct state *s, const struct job *j, size_t rank, int64_t now,
			int64_t fresh_us)
{
	int64_t at = MO_NONE;
	const struct rank_motion *m = rank_motion_of(s, j, rank, &at);
	struct seen k = { .fresh = m && now - at <= fresh_us, .process = -1 };
	double step_ms;

	rank_progress_of(s, j, rank, &k.iteration, &step_ms);
	k.written = k.network = k.processors = k.computed = INT64_MAX;
	if (!k.fresh)
		return k;
	k.written = MO_MIN(age_us(m->log_ms), age_us(m->io_ms));
	k.network = age_us(m->net_ms);
	k.processors = age_us(m->cpu_ms);
	k.computed = age_us(m->gpu_work_ms);
	k.spun = m->gpu_spin_ms == MO_NONE ? 0 : age_us(m->gpu_spin_ms);
	k.process = m->state;
	return k;
}

static bool known(int64_t age)
{
	return age != INT64_MAX;
}

/* What the iterations before did without, a card or a GPU, does not stand still: of a job that
 * sends by other ways or at its start alone, or where what is read was always the same. They are
 * read every half a minute, and a step long. */
static bool stands(const struct hang_limits *l, int64_t moved, int64_t overdue)
{
	return l->p99 != MO_NONE && known(moved) && moved <= overdue + l->p99 + UNUSED_US;
}

/* So long the rank did nothing that another one could wait for: its GPU spins, or it rests and the
 * processors too, which may compile for it or load. */
static int64_t stalled(const struct hang_limits *l, const struct seen *k, int64_t overdue)
{
	int64_t rests = known(k->processors) ? MO_MIN(k->computed, k->processors) : 0;

	return stands(l, k->computed, overdue) ? MO_MAX(k->spun, rests) : 0;
}

static bool gpu_hangs(const struct state *s, const struct rank *k)
{
	const struct node *n = node_find(s, k->node);
	struct slot_health h;

	return n && slot_health(n, k->gpu, &h) && slot_matters(&h);
}

static int state_of(const struct state *s, const struct job *j, size_t rank, const struct seen *k,
		    const struct hang_limits *l, bool busy)
{
	int64_t moved = MO_MIN(k->written, k->network);

	if (!k->fresh)
		return RANK_UNKNOWN;
	if (k->process == PROCESS_STOPPED)
		return RANK_HOST_STUCK;
	if (moved < l->suspect || (busy && k->processors < l->suspect))
		return rank_engine_doing(s, j, rank);
	if (gpu_hangs(s, &j->run.ranks[rank]))
		return RANK_GPU_HUNG;
	if (k->process == PROCESS_WAITS)
		return RANK_HOST_STUCK;
	if (k->spun)
		return RANK_COLLECTIVE_STUCK;
	if ((known(k->processors) && k->processors >= l->suspect) ||
	    (known(k->computed) && k->computed >= l->suspect))
		return RANK_HOST_STUCK;
	return known(k->processors) ? RANK_COLLECTIVE_STUCK : RANK_UNKNOWN;
}

/* Who stands out: the first that is stopped, waits, or has a broken GPU; the first of the few that
 * are behind in iterations; the first of the few that sleep while the rest spins; the one that
 * spins while the rest sleeps. Of many alike none does. */
struct odd {
	size_t n_ranks;
	int64_t first[_RANK_DOING_N];
	int64_t stopped, waits;
	/* of those that tell their iterations: of many engines one rank alone does */
	size_t n_told, n_lowest;
	int64_t lowest, highest, behind; /* behind: the first with the lowest */
};

static void odd_add(struct odd *o, size_t rank, const struct seen *k, int state)
{
	int64_t it = k->iteration;

	o->n_ranks++;
	if (o->first[state] == MO_NONE)
		o->first[state] = (int64_t)rank;
	if (k->process == PROCESS_STOPPED && o->stopped == MO_NONE)
		o->stopped = (int64_t)rank;
	if (k->process == PROCESS_WAITS && o->waits == MO_NONE)
		o->waits = (int64_t)rank;
	if (it == MO_NONE)
		return;
	o->n_told++;
	if (o->n_told == 1 || it < o->lowest) {
		o->lowest = it;
		o->behind = (int64_t)rank;
		o->n_lowest = 0;
	}
	o->n_lowest += it == o->lowest;
	o->highest = o->n_told == 1 ? it : MO_MAX(o->highest, it);
}

/* Ranks that train together are never further apart; what a rank tells of iterations by fewer words
 * (of its saves, say) is older. */
#define APART 2

static void odd_choose(const struct odd *o, struct hang_verdict *v)
{
	size_t asleep = v->states[RANK_HOST_STUCK], spin = v->states[RANK_COLLECTIVE_STUCK];

	v->odd = RANK_HOST_STUCK;
	v->plain =
		o->stopped != MO_NONE || o->waits != MO_NONE || o->first[RANK_GPU_HUNG] != MO_NONE;
	if (o->stopped != MO_NONE) {
		v->rank = o->stopped;
	} else if (o->first[RANK_GPU_HUNG] != MO_NONE) {
		v->rank = o->first[RANK_GPU_HUNG];
		v->odd = RANK_GPU_HUNG;
	} else if (o->waits != MO_NONE) {
		v->rank = o->waits;
	} else if (o->n_told > 1 && o->lowest < o->highest && o->highest - o->lowest <= APART &&
		   o->n_lowest * 2 <= o->n_told) {
		v->rank = o->behind;
		v->behind = true;
	} else if (asleep && asleep < spin) {
		v->rank = o->first[RANK_HOST_STUCK];
	} else if (spin == 1 && asleep > 1) {
		v->rank = o->first[RANK_COLLECTIVE_STUCK];
		v->odd = RANK_COLLECTIVE_STUCK;
	}
}

static int64_t limit_of(const struct hang_limits *l, const struct hang_verdict *v)
{
	int64_t limit = v->stopped      ? v->written || v->network ? l->two : l->one
			: v->processors ? l->asleep
			: v->network    ? l->cards
					: l->written;
	int64_t gpus = v->spin ? l->one : v->rest ? l->asleep : INT64_MAX;

	limit = MO_MIN(limit, v->network ? gpus : MO_MAX(gpus, l->unread));
	/* the disk may come back */
	return v->waits ? MO_MAX(limit, l->slow) : limit;
}

/* Since nobody wrote, and no card moved anything: cards alone do not move for ever. ret_gpus: it is
 * known what the GPU of each does; of some alone it would tell ranks apart that do the same. */
static int64_t quiet_of(const struct state *s, const struct job *j, const struct hang_limits *l,
			int64_t overdue, int64_t now, int64_t fresh_us, bool *ret_gpus)
{
	int64_t written = overdue, network = overdue;

	*ret_gpus = true;
	for (size_t i = 0; i < j->run.n_ranks; i++) {
		struct seen k;

		if (j->run.ranks[i].exit)
			continue;
		k = look(s, j, i, now, fresh_us);
		written = MO_MIN(written, k.written);
		network = MO_MIN(network, k.network);
		*ret_gpus &= known(k.computed);
	}
	return written < l->spins ? MO_MIN(written, network) : written;
}

/* What is seen of all ranks together. */
struct all {
	size_t n;
	bool written, network, processors;
	int64_t used, spun, stalled, spun_most;
};

static void all_add(struct all *a, const struct hang_limits *l, const struct seen *k,
		    int64_t overdue)
{
	int64_t still = stalled(l, k, overdue);

	a->n++;
	a->written &= known(k->written);
	a->network &= stands(l, k->network, overdue);
	a->processors &= known(k->processors);
	a->used = MO_MIN(a->used, k->processors);
	a->stalled = MO_MIN(a->stalled, still);
	a->spun = MO_MIN(a->spun, MO_MIN(k->spun, still));
	a->spun_most = MO_MAX(a->spun_most, k->spun);
}

static void evident(const struct all *a, const struct hang_limits *l, struct hang_verdict *v)
{
	bool seen = v->unseen == 0 && a->n > 0;
	int64_t some = MO_MIN(a->stalled, a->spun_most);

	v->written = a->written && seen;
	v->network = a->network && !v->polls && seen;
	v->processors = seen && (v->stopped || (a->processors && a->used >= l->two));
	v->spin = v->written && a->spun >= l->one;
	v->rest = v->written && !v->spin && some >= l->asleep;
	v->stalled_us = v->spin ? a->spun : some;
	v->sure = v->written || v->network || v->processors;
}

struct hang_verdict hang_judge(const struct state *s, const struct job *j,
			       const struct hang_limits *l, int64_t since, int64_t now,
			       int64_t fresh_us, int *ret_doing)
{
	struct hang_verdict v = { .rank = MO_NONE, .overdue_us = now - since };
	struct odd o = { .stopped = MO_NONE, .waits = MO_NONE };
	struct all a = { .written = true,
			 .network = true,
			 .processors = true,
			 .used = INT64_MAX,
			 .spun = INT64_MAX,
			 .stalled = INT64_MAX };
	bool busy, gpus;

	v.quiet_us = quiet_of(s, j, l, v.overdue_us, now, fresh_us, &gpus);
	busy = l->busy && v.quiet_us < l->spins;
	for (int i = 0; i < _RANK_DOING_N; i++)
		o.first[i] = MO_NONE;
	for (size_t i = 0; i < j->run.n_ranks; i++) {
		struct seen k;
		int state;

		ret_doing[i] = -1;
		if (j->run.ranks[i].exit)
			continue;
		k = look(s, j, i, now, fresh_us);
		if (!gpus)
			k.computed = INT64_MAX, k.spun = 0;
		state = state_of(s, j, i, &k, l, busy);
		ret_doing[i] = state;
		v.states[state]++;
		v.unseen += !k.fresh;
		odd_add(&o, i, &k, state);
		all_add(&a, l, &k, v.overdue_us);
		v.polls |= k.network < v.quiet_us;
		v.stopped |= k.process == PROCESS_STOPPED;
		v.waits |= k.process == PROCESS_WAITS;
	}
	/* peers of one that is stopped spin, whatever they did before */
	if (busy && !v.stopped)
		v.quiet_us = MO_MIN(v.quiet_us, a.used);
	evident(&a, l, &v);
	v.limit_us = limit_of(l, &v);
	odd_choose(&o, &v);
	v.stage = v.overdue_us < l->suspect ? HANG_NONE
		  : v.quiet_us < v.limit_us ? HANG_SUSPECTED
					    : HANG_CONFIRMED;
	return v;
}

/* ---- words ---- */

static long long seconds(int64_t us)
{
	return (long long)(us / 1000000);
}

char *hang_text(const struct job *j, const struct hang_verdict *v)
{
	_cleanup_(mo_freep) char *who = v->rank == MO_NONE ? NULL : rank_words(j, v->rank);

	if (v->missing)
		return mo_printf("nothing moves for %lld s: %s", seconds(v->quiet_us), v->missing);
	return mo_printf("nothing moves for %lld s%s%s%s%s", seconds(v->quiet_us), who ? ": " : "",
			 who ? who : "",
			 !who        ? ""
			 : v->behind ? " is behind the others"
				     : " is ",
			 !who || v->behind ? "" : rank_doing_names[v->odd]);
}

void hang_evidence(const struct job *j, const struct hang_limits *l, const struct hang_verdict *v,
		   char ***texts, size_t *n)
{
	_cleanup_(mo_buf_done) struct mo_buf states = { 0 };
	_cleanup_(mo_freep) char *who = v->rank == MO_NONE ? NULL : rank_words(j, v->rank);

	if (l->p99 == MO_NONE)
		mo_strs_printf(texts, n,
			       "no iteration and no word of the engine for %lld s; %lld s are "
			       "allowed for what it does",
			       seconds(v->overdue_us), seconds(l->suspect));
	else
		mo_strs_printf(texts, n, "no iteration for %lld s; 99 of 100 took less than %.3g s",
			       seconds(v->overdue_us), (double)l->p99 / 1e6);
	if (v->written)
		mo_strs_printf(texts, n, "no rank wrote to its log or to files for %lld s",
			       seconds(v->quiet_us));
	if (v->network)
		mo_strs_printf(texts, n,
			       "RDMA and XGMI: no card of a rank moved anything for %lld s (what a "
			       "collective that waits may send counts as nothing)",
			       seconds(v->quiet_us));
	if (v->polls)
		mo_strs_printf(texts, n,
			       "cards of ranks move something (RDMA, XGMI): that alone counts for "
			       "%lld s",
			       seconds(l->spins));
	if (v->spin)
		mo_strs_printf(texts, n,
			       "GPUs: each is busy and computes nothing for %lld s (memory idle, "
			       "little power), as in a collective that waits",
			       seconds(v->stalled_us));
	else if (v->rest)
		mo_strs_printf(texts, n,
			       "GPUs: none computed anything for %lld s: they spin, as in a "
			       "collective that waits, or are idle, and then the rank used no "
			       "processor",
			       seconds(v->stalled_us));
	if (v->stopped)
		mo_strs_printf(texts, n, "%s is stopped by a signal (T)", who);
	else if (v->processors)
		mo_strs_printf(texts, n, "no rank used its processors");
	if (v->waits)
		mo_strs_printf(texts, n,
			       "a rank waits in the kernel, as for a disk (D): %lld s "
			       "are allowed for that",
			       seconds(l->slow));
	if (v->unseen)
		mo_strs_printf(texts, n, "%zu ranks cannot be seen: their agents do not tell",
			       v->unseen);
	else if (!v->sure)
		mo_strs_printf(texts, n, "nothing can be read of the ranks beside what they print");
	/* before anybody was asked nothing is known of them */
	for (int i = 0; i < _RANK_DOING_N && v->stage == HANG_CONFIRMED; i++)
		if (v->states[i])
			mo_buf_printf(&states, "%s%zu %s", states.len ? ", " : "", v->states[i],
				      rank_doing_names[i]);
	if (states.len)
		mo_strs_printf(texts, n, "ranks: %s", states.data);
}
