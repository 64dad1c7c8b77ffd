/* Which rank makes a job slow. In a training that synchronises, all ranks iterate alike: the slow
 * one is that which waits least. So a rank is named only by what is its own:
 *
 *   SIGN_STEP   what a step takes it by itself, as its program says, beyond that of its peers.
 *               Times that include the waiting are alike, and then nobody stands out
 *   SIGN_CLOCK  the clock of its GPU, far below those of its peers, while the job is slower than
 *               it was (daemon/core/state/pace.h). GPUs that wait in a collective are busy, and
 *               run at full clock: one that does not is too hot, capped, or has nothing to do
 *   SIGN_OWN    where fewer than three ranks of its stage tell: what a step takes it by itself,
 *               beyond what it took it before, while the job is slower than it was and the other
 *               ranks are not. Said only: nobody is moved by it
 *
 * and by what ranks do with processors and GPUs (straggler_activity.c), which every rank tells that
 * an agent looks after, whatever its program prints.
 *
 * Whoever stands out must do so for a while. What cannot be told apart is no rank's: that the job
 * is slow is said all the same, by itself. A verdict is a record; what follows from it is for
 * straggler_leave.c to decide. */
#include "daemon/core/rules/straggler.h"

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/rank_words.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/straggler_activity.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/progress.h"
#include "lib/base/buf.h"

#define JUDGED_BEATS 4                  /* between two judgements */
#define STEP_SHARE 0.2                  /* more than its peers take */
#define STEP_GOOD 1.1                   /* it is none any more */
#define STEPS_STAYS 8                   /* of its steps, between the first sight and the verdict */
#define CLOCK_SHARE 0.15                /* less than its peers have */
#define CLOCK_GOOD 0.93                 /* it is none any more */
#define CLOCK_STAYS_US (60 * 1000000LL) /* readings are of a moment */

static bool judged(const struct job *j)
{
	return j->state == JOB_RUNNING && !j->failure.decided && !j->failure.waiting_node &&
	       j->hang.stage < 0 && j->run.n_ranks > 1 && j->progress.iteration != MO_NONE;
}

bool straggler_due(const struct turn *t, const struct job *j)
{
	return judged(j) && core_pace(t->core, j, t->now, JUDGED_BEATS * t->core->config.beat_us);
}

/* ---- what is known of each rank ---- */

static const struct gpu_sensors *gpu_of(const struct core *c, const struct rank *k, int64_t now)
{
	size_t n = 0;
	const struct gpu_sensors *g = core_sensors(c, k->node, now, &n);

	for (size_t i = 0; i < n; i++)
		if (g[i].slot == k->gpu && now - g[i].at <= SENSORS_FRESH_US)
			return &g[i];
	return NULL;
}

static bool some_busy(const struct job_beats *b)
{
	for (size_t i = 0; i < b->n_ranks; i++)
		if (b->ranks[i].own_busy)
			return true;
	return false;
}

/* Where some tell what of a step was no waiting, who tells of all of it (an agent of before) tells
 * of the others, not of itself. */
static struct rank_value *readings_of(const struct turn *t, const struct job *j,
				      const struct job_beats *b, int sign)
{
	struct rank_value *r = mo_alloc_array(j->run.n_ranks + 1, sizeof(*r));
	bool busy = some_busy(b);

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		const struct rank *k = &j->run.ranks[i];
		const struct rank_beat *own = &b->ranks[i];
		const struct gpu_sensors *g =
			sign == SIGN_CLOCK ? gpu_of(t->core, k, t->now) : NULL;

		r[i] = (struct rank_value){ .rank = (int64_t)i,
					    .stage = k->coords ? k->coords->pp : 0,
					    .value = g ? g->clock_mhz : MO_NONE_F };
		if (sign == SIGN_STEP && own->own_busy == busy)
			r[i].value = rank_own_ms(own);
	}
	return r;
}

static struct standout past_of(const struct job *j, const struct job_beats *b)
{
	_cleanup_(mo_freep) struct rank_past *r = mo_alloc_array(j->run.n_ranks + 1, sizeof(*r));
	size_t n = 0;

	for (size_t i = 0; i < j->run.n_ranks; i++) {
		const struct rank_beat *k = &b->ranks[i];
		const struct rank_coords *c = j->run.ranks[i].coords;

		if (rank_own_times(k) != MO_NONE_F)
			r[n++] = (struct rank_past){ (int64_t)i, c ? c->pp : 0, rank_own_ms(k),
						     k->usual_ms, k->usual_sigma };
	}
	return standout_of_past(r, n, STEP_SHARE, STEP_GOOD);
}

/* ---- the verdict ---- */

static double lost_pct(const struct job *j, int sign, const struct standout *s)
{
	double step = MO_MAX(s->value, (double)samples_step_us(j) / 1000);

	return sign == SIGN_STEP ? 100 * (s->value - s->median) / step : pace_lost_pct(j);
}

static char *verdict_text(const struct job *j, int sign, const struct standout *s, double lost)
{
	_cleanup_(mo_freep) char *who = rank_words(j, s->rank);

	if (sign == SIGN_STEP)
		return mo_printf("%s takes %.4g ms of its own for a step, its peers %.4g ms: the "
				 "job loses %.0f %% of its time by it",
				 who, s->value, s->median, lost);
	if (sign == SIGN_OWN)
		return mo_printf("%s takes %.4g ms of its own for a step, where it took %.4g ms "
				 "before: the job loses %.0f %% of its time",
				 who, s->value, s->median, lost);
	return mo_printf("the GPU of %s runs at %.0f MHz, those of its peers at %.0f MHz: the job "
			 "loses %.0f %% of its time",
			 who, s->value, s->median, lost);
}

/* Whom it is held against: itself as it was, or its peers. */
static void against(const struct rank_beat *b, const struct rank *rank, int sign,
		    const struct standout *s, struct rec_straggler *k)
{
	const char *of = rank->coords ? " of its pipeline stage" : "";
	double times = rank_own_times(b);

	if (sign == SIGN_OWN)
		mo_strs_printf(&k->evidence, &k->n_evidence,
			       "too few ranks%s tell what a step takes them (%zu) to say which is "
			       "slow; of all %zu that tell, %zu became slower than before",
			       of, s->n_peers, s->n_known, s->n_odd);
	else
		mo_strs_printf(&k->evidence, &k->n_evidence,
			       "the median of %zu ranks%s is %.4g %s, with a deviation of %.2g",
			       s->n_peers, of, s->median, sign == SIGN_STEP ? "ms" : "MHz",
			       s->sigma);
	if (sign != SIGN_OWN && s->n_odd > 1)
		mo_strs_printf(&k->evidence, &k->n_evidence, "%zu ranks stand out; it does most",
			       s->n_odd);
	if (times != MO_NONE_F)
		mo_strs_printf(&k->evidence, &k->n_evidence,
			       "against its own past: %.3g times the %.4g ms, with a deviation of "
			       "%.2g, that a step took it at best in this attempt",
			       times, b->usual_ms, b->usual_sigma);
}

static void evidence(const struct turn *t, const struct job *j, const struct rank_beat *b, int sign,
		     const struct standout *s, struct rec_straggler *k)
{
	const struct rank *rank = &j->run.ranks[s->rank];
	const struct gpu_sensors *g = gpu_of(t->core, rank, t->now);
	_cleanup_(mo_freep) char *slow = pace_slow(j) ? pace_text(j) : NULL, *gpu = NULL;

	against(b, rank, sign, s, k);
	if (slow)
		mo_strs_add(&k->evidence, &k->n_evidence, slow);
	if (g)
		gpu = mo_printf("its GPU %lld: %.0f MHz, %.0f W, %.0f C, %.0f %% busy",
				(long long)g->slot, MO_MAX(g->clock_mhz, 0), MO_MAX(g->power_w, 0),
				MO_MAX(g->temp_c, 0), MO_MAX(g->busy_pct, 0));
	if (gpu)
		mo_strs_add(&k->evidence, &k->n_evidence, gpu);
}

static void coords(struct mo_buf *b, const struct rank *k)
{
	const struct rank_coords *c = k->coords;

	data_int(b, "tp", c ? c->tp : MO_NONE);
	data_int(b, "pp", c ? c->pp : MO_NONE);
	data_int(b, "ep", c ? c->ep : MO_NONE);
	data_int(b, "cp", c ? c->cp : MO_NONE);
	data_int(b, "dp", c ? c->dp : MO_NONE);
}

/* Takes the record. */
static bool found(struct turn *t, struct record *r)
{
	const struct job *j = job_find(&t->core->state, r->job);
	int64_t id = r->job;
	struct mo_buf b = { 0 };

	turn_emit(t, r);
	data_str(&b, "sign", straggler_sign_names[j->straggler.sign]);
	data_real(&b, "times", j->straggler.times);
	data_real(&b, "lost_pct", j->straggler.lost_pct);
	data_real(&b, "own_times",
		  rank_own_times_of(&t->core->state, j, (size_t)j->straggler.rank));
	coords(&b, &j->run.ranks[j->straggler.rank]);
	event_emit(t, EVENT_STRAGGLER_FOUND, id, j->run.ranks[j->straggler.rank].node,
		   j->straggler.rank, j->attempt, data_end(&b), "%s", j->straggler.text);
	return true;
}

static void begin(struct record *r, const struct job *j)
{
	record_init(r, REC_STRAGGLER);
	r->job = j->id;
	r->attempt = j->attempt;
}

static bool found_by(struct turn *t, const struct job *j, const struct job_beats *b, int sign,
		     const struct standout *s)
{
	struct record r;

	begin(&r, j);
	r.straggler->rank = s->rank;
	r.straggler->sign = sign;
	r.straggler->times = s->value / s->median;
	r.straggler->lost_pct = lost_pct(j, sign, s);
	r.straggler->text = verdict_text(j, sign, s, r.straggler->lost_pct);
	r.straggler->alone = sign == SIGN_OWN;
	evidence(t, j, &b->ranks[s->rank], sign, s, r.straggler);
	return found(t, &r);
}

/* Of what stood out before: is it over? */
static bool over(struct turn *t, const struct job *j, struct job_beats *b)
{
	_cleanup_(mo_freep) struct rank_value *r = NULL;
	double times;

	if (j->straggler.sign == SIGN_OWN) {
		times = rank_own_times(&b->ranks[j->straggler.rank]);
		return !pace_slow(j) || (times != MO_NONE_F && times < STEP_GOOD);
	}
	if (j->straggler.sign > SIGN_CLOCK)
		return activity_due(b, t->now) && activity_ended(t, j, b);
	r = readings_of(t, j, b, j->straggler.sign);
	times = standout_times(r, j->run.n_ranks, j->straggler.rank);
	if (j->straggler.sign == SIGN_STEP)
		return times > 0 && times < STEP_GOOD;
	return !pace_slow(j) || times > CLOCK_GOOD;
}

static bool clear(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	int64_t rank = j->straggler.rank, since = j->straggler.at;
	struct mo_buf b = { 0 };
	struct record r;

	begin(&r, j);
	turn_emit(t, &r);
	data_int(&b, "after_s", (t->now - since) / 1000000);
	event_emit(t, EVENT_STRAGGLER_CLEARED, id, j->run.ranks[rank].node, rank, j->attempt,
		   data_end(&b), "rank %lld on %s is as fast as its peers again", (long long)rank,
		   j->run.ranks[rank].node);
	return true;
}

/* The same one stands out for long enough. */
static bool stays(struct job_beats *b, int sign, const struct standout *s, int64_t now)
{
	if (b->odd != s->rank || b->odd_sign != sign) {
		b->odd = s->rank;
		b->odd_sign = sign;
		b->odd_at = now;
		b->odd_n = b->ranks[s->rank].n_own;
	}
	return sign == SIGN_CLOCK ? now - b->odd_at >= CLOCK_STAYS_US
				  : b->ranks[s->rank].n_own >= b->odd_n + STEPS_STAYS;
}

static bool search(struct turn *t, int64_t id, struct job_beats *b)
{
	const struct job *j = job_find(&t->core->state, id);

	for (int sign = 0; sign <= SIGN_CLOCK; sign++) {
		_cleanup_(mo_freep) struct rank_value *r = NULL;
		struct standout s;

		if (sign == SIGN_CLOCK && !pace_slow(j))
			break;
		r = readings_of(t, j, b, sign);
		s = standout_of(r, j->run.n_ranks, sign == SIGN_STEP,
				sign == SIGN_STEP ? STEP_SHARE : CLOCK_SHARE);
		if (s.rank != MO_NONE)
			return stays(b, sign, &s, t->now) && found_by(t, j, b, sign, &s);
	}
	if (pace_slow(j)) {
		struct standout s = past_of(j, b);

		if (s.rank != MO_NONE)
			return stays(b, SIGN_OWN, &s, t->now) && found_by(t, j, b, SIGN_OWN, &s);
	}
	b->odd = MO_NONE;
	return false;
}

static bool search_activity(struct turn *t, int64_t id, struct job_beats *b)
{
	const struct job *j = job_find(&t->core->state, id);
	struct record r;

	if (!activity_due(b, t->now))
		return false;
	begin(&r, j);
	if (activity_search(t, j, b, r.straggler) &&
	    (j->straggler.rank == MO_NONE || !r.straggler->alone))
		return found(t, &r);
	mo_desc_done(&record_desc, &r);
	return false;
}

bool straggler_act(struct turn *t, int64_t id)
{
	const struct job *j = job_find(&t->core->state, id);
	struct job_beats *b =
		judged(j) ? core_pace(t->core, j, t->now, JUDGED_BEATS * t->core->config.beat_us)
			  : NULL;

	if (!b)
		return false;
	b->paced_at = t->now;
	if (j->straggler.rank == MO_NONE)
		return search(t, id, b) || search_activity(t, id, b);
	if (over(t, j, b))
		return clear(t, id);
	/* what says more takes the place of what is only said */
	return j->straggler.sign == SIGN_OWN && search_activity(t, id, b);
}

void pace_tell(struct turn *t, int64_t id, bool slow)
{
	const struct job *j = job_find(&t->core->state, id);
	const struct pace *p = j->progress.pace;
	_cleanup_(mo_freep) char *text = NULL;
	struct mo_buf b = { 0 };

	if (pace_slow(j) == slow || p->attempt != j->attempt)
		return;
	data_int(&b, "iteration", p->since);
	data_real(&b, "ms", p->now_ms);
	data_real(&b, "usual_ms", p->best_ms);
	if (slow) {
		event_emit(t, EVENT_PACE_USUAL, id, NULL, MO_NONE, j->attempt, data_end(&b),
			   "an iteration takes %.4g ms again", p->now_ms);
		return;
	}
	text = pace_text(j);
	event_emit(t, EVENT_PACE_SLOWER, id, NULL, MO_NONE, j->attempt, data_end(&b), "%s", text);
}
