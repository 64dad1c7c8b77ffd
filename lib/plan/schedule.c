/* Lists of work per rank (see schedule.h): 1F1B and interleaved as in Narayanan et al. 2021,
 * ZB1P and ZBV as in Qi et al. 2023 and 2024, V-half and V-min from the building blocks of Qi et
 * al. 2024, DualPipe as in DeepSeek-V3. */
#include "lib/plan/schedule.h"

#include <errno.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/plan/pipeline.h"
#include "lib/plan/schedule_blocks.h"

void sched_add(struct sched_rank *r, enum sched_op op, int64_t chunk, int64_t micro)
{
	*MO_GROW(r->nodes, r->n) =
		(struct sched_node){ .op = op, .chunk = (int32_t)chunk, .micro = (int32_t)micro };
}

static void make_1f1b(struct sched *s, int64_t rank)
{
	struct sched_rank *r = &s->ranks[rank];
	int64_t warm = MO_MIN(s->pp - rank - 1, s->micro);

	for (int64_t i = 0; i < warm; i++)
		sched_add(r, SCHED_F, 0, i);
	for (int64_t i = warm; i < s->micro; i++) {
		sched_add(r, SCHED_F, 0, i);
		sched_add(r, SCHED_B, 0, i - warm);
	}
	for (int64_t i = s->micro - warm; i < s->micro; i++)
		sched_add(r, SCHED_B, 0, i);
}

/* The k-th piece of work: groups of pp micro-batches go through chunk 0, then chunk 1, ...; the
 * last group may be smaller. Backward meets the chunks in reverse. */
static void add_piece(struct sched *s, int64_t rank, enum sched_op op, int64_t k)
{
	int64_t group = k / (s->pp * s->chunks), within = k % (s->pp * s->chunks),
		size = MO_MIN(s->pp, s->micro - group * s->pp), chunk = within / size;

	mo_assert(rank >= 0 && rank < s->pp && k >= 0);
	sched_add(&s->ranks[rank], op, op == SCHED_F ? chunk : s->chunks - 1 - chunk,
		  group * s->pp + within % size);
}

static void make_interleaved(struct sched *s, int64_t rank)
{
	int64_t total = s->micro * s->chunks,
		warm = MO_MIN(2 * (s->pp - rank - 1) + (s->chunks - 1) * s->pp, total);

	for (int64_t k = 0; k < warm; k++)
		add_piece(s, rank, SCHED_F, k);
	for (int64_t k = warm; k < total; k++) {
		add_piece(s, rank, SCHED_F, k);
		add_piece(s, rank, SCHED_B, k - warm);
	}
	for (int64_t k = total - warm; k < total; k++)
		add_piece(s, rank, SCHED_B, k);
}

/* 1F1B whose weight gradients wait until pp micro-batches are held. */
static void make_zb1p(struct sched *s, int64_t rank)
{
	struct sched_rank *r = &s->ranks[rank];
	int64_t f = 0, b = 0, w = 0;

	while (f < MO_MIN(s->pp - rank, s->micro))
		sched_add(r, SCHED_F, 0, f++);
	while (b < s->micro) {
		sched_add(r, SCHED_B, 0, b++);
		if (f == s->micro && w < b && b > rank)
			sched_add(r, SCHED_W, 0, w++);
		while (f < s->micro && f - w >= s->pp)
			sched_add(r, SCHED_W, 0, w++);
		if (f < s->micro)
			sched_add(r, SCHED_F, 0, f++);
	}
	while (w < s->micro)
		sched_add(r, SCHED_W, 0, w++);
}

/* Steps that name micro-batches beyond the last are left out: with fewer than 2 pp - 1 the shape
 * stays and has holes. */
struct v_list {
	struct sched *s;
	struct sched_rank *rank;
	int64_t f[2], b[2], w[2];
};

static void v_step(struct v_list *v, enum sched_op op, int64_t chunk)
{
	int64_t *count = op == SCHED_F ? v->f : op == SCHED_B ? v->b : v->w, k = count[chunk]++;

	if (k < v->s->micro)
		sched_add(v->rank, op, chunk, k);
}

static void v_back(struct v_list *v, int64_t chunk)
{
	v_step(v, SCHED_B, chunk);
	v_step(v, SCHED_W, chunk);
}

static void make_zbv(struct sched *s, int64_t rank)
{
	struct v_list v = { .s = s, .rank = &s->ranks[rank] };
	int64_t n = MO_MAX(2 * s->pp - 1, s->micro), rest = s->pp - rank;

	for (int64_t i = 0; i < 2 * rest - 1; i++)
		v_step(&v, SCHED_F, 0);
	for (int64_t i = 0; i < rank; i++) {
		v_step(&v, SCHED_F, 1);
		v_step(&v, SCHED_F, 0);
	}
	for (int64_t i = 0; i < rest; i++) {
		v_step(&v, SCHED_F, 1);
		v_back(&v, 1);
	}
	while (v.f[1] < v.f[0] || v.f[0] < n) {
		if (v.f[0] < n)
			v_step(&v, SCHED_F, 0);
		v_back(&v, 0);
		v_step(&v, SCHED_F, 1);
		v_back(&v, 1);
	}
	for (int64_t i = 0; i < rank; i++) {
		v_step(&v, SCHED_B, 0);
		v_step(&v, SCHED_B, 1);
	}
	for (int64_t i = 0; i < rest; i++)
		v_back(&v, 0);
	while (v.w[1] < v.b[1])
		v_step(&v, SCHED_W, 1);
	while (v.w[0] < v.b[0])
		v_step(&v, SCHED_W, 0);
}

/* Direction 0 enters at rank 0, direction 1 at the last rank; each brings half of the
 * micro-batches. For the second half of the ranks the directions change places. */
struct dual {
	struct sched_rank *rank;
	bool swap;
	int64_t f[2], b[2], w_next, waiting_n;
	struct sched_node *waiting;
};

static void dual_f(struct dual *d, int phase)
{
	int dir = phase ^ d->swap;

	sched_add(d->rank, SCHED_F, dir, d->f[dir]++);
}

static void dual_b(struct dual *d, int phase, bool later)
{
	int dir = phase ^ d->swap;
	int64_t k = d->b[dir]++;

	sched_add(d->rank, SCHED_B, dir, k);
	if (later)
		d->waiting[d->waiting_n++] =
			(struct sched_node){ .chunk = dir, .micro = (int32_t)k };
	else
		sched_add(d->rank, SCHED_W, dir, k);
}

/* One micro-batch forward while another one goes backward. */
static void dual_both(struct dual *d, int forward, int backward)
{
	size_t at = d->rank->n;

	dual_f(d, forward);
	dual_b(d, backward, false);
	d->rank->nodes[at].joined = 3;
}

static void dual_w(struct dual *d)
{
	const struct sched_node *w = &d->waiting[d->w_next++];

	sched_add(d->rank, SCHED_W, w->chunk, w->micro);
}

static void dual_ending(struct dual *d, int64_t half, int64_t left)
{
	bool later = false;

	for (int64_t i = 0; i < left; i++) {
		dual_b(d, 1, false);
		dual_both(d, 1, 0);
	}
	for (int64_t i = 0; i < half + 1; i++) {
		later |= i == (half + 1) / 2 && half % 2 == 1;
		dual_b(d, 1, later);
		later |= i == (half + 1) / 2 && half % 2 == 0;
		dual_b(d, 0, later);
	}
	for (int64_t i = 0; i < left; i++) {
		dual_w(d);
		dual_b(d, 0, true);
	}
	while (d->w_next < d->waiting_n)
		dual_w(d);
}

static void make_dualpipe(struct sched *s, int64_t rank)
{
	struct dual d = { .rank = &s->ranks[rank],
			  .swap = rank >= s->pp / 2,
			  .waiting = mo_alloc_array((size_t)s->micro, sizeof(struct sched_node)) };
	int64_t half = MO_MIN(rank, s->pp - 1 - rank), left = s->pp / 2 - half - 1,
		steady = s->micro / 2 - s->pp + half + 1;

	for (int64_t i = 0; i < 2 * left; i++)
		dual_f(&d, 0);
	for (int64_t i = 0; i < half + 1; i++) {
		dual_f(&d, 0);
		dual_f(&d, 1);
	}
	for (int64_t i = 0; i < left; i++) {
		dual_b(&d, 1, true);
		dual_w(&d);
		dual_f(&d, 1);
	}
	for (int64_t i = 0; i < steady; i++) {
		/* the two middle ranks start apart: less to wait for */
		if (i == 0 && left == 0) {
			dual_f(&d, 0);
			dual_b(&d, 1, false);
		} else {
			dual_both(&d, 0, 1);
		}
		dual_both(&d, 1, 0);
	}
	dual_ending(&d, half, left);
	free(d.waiting);
}

int64_t sched_stages(const struct sched *s)
{
	return mo_streq(s->kind, "dualpipe") ? s->pp : s->pp * s->chunks;
}

bool sched_is_v(const char *kind)
{
	return mo_streq(kind, "zbv") || mo_streq(kind, "v-half") || mo_streq(kind, "v-min");
}

int64_t sched_stage(const struct sched *s, int64_t rank, int64_t chunk)
{
	mo_assert(rank >= 0 && rank < s->pp && chunk >= 0 && chunk < s->chunks);
	if (mo_streq(s->kind, "dualpipe"))
		return chunk ? s->pp - 1 - rank : rank;
	if (sched_is_v(s->kind))
		return chunk ? 2 * s->pp - 1 - rank : rank;
	return chunk * s->pp + rank;
}

static int check_shape(const char *kind, int64_t pp, int64_t vpp, int64_t micro,
		       struct mo_error *err)
{
	long long m = micro;

	if (pp < 1 || vpp < 1 || micro < 1)
		return mo_error_set(err, -EINVAL,
				    "schedule: pp, vpp and the number of micro-batches must be 1 "
				    "or more");
	if (mo_streq(kind, "dualpipe") && pipeline_check(kind, pp, vpp, micro, INT64_MAX, err) < 0)
		return -EINVAL;
	if (micro > SCHED_NODES_MAX || pp > SCHED_NODES_MAX || vpp > SCHED_NODES_MAX ||
	    (double)pp * (double)MO_MAX(vpp, 2) * (double)micro * 3 > SCHED_NODES_MAX)
		return mo_error_set(err, -EINVAL,
				    "schedule: %lld micro-batches through %lld x %lld stages are "
				    "too many to be drawn",
				    m, (long long)pp, (long long)vpp);
	return 0;
}

/* chunks 0: vpp */
static const struct {
	const char *kind;
	void (*make)(struct sched *s, int64_t rank);
	bool split;
	int64_t chunks;
} kinds[] = {
	{ "1f1b", make_1f1b, false, 1 },
	{ "interleaved", make_interleaved, false, 0 },
	{ "zb1p", make_zb1p, true, 1 },
	{ "zbv", make_zbv, true, 2 },
	{ "v-half", NULL, true, 2 },
	{ "v-min", NULL, true, 2 },
	{ "dualpipe", make_dualpipe, true, 2 },
};

int sched_make(const char *kind, int64_t pp, int64_t vpp, int64_t micro, struct sched *ret,
	       struct mo_error *err)
{
	size_t k = 0;
	int r = check_shape(kind, pp, vpp, micro, err);

	if (r < 0)
		return r;
	while (k < ELEMENTSOF(kinds) && strcmp(kinds[k].kind, kind) != 0)
		k++;
	if (k == ELEMENTSOF(kinds))
		return mo_error_set(err, -EINVAL,
				    "parallelism.schedule: %s is none of 1f1b, interleaved, zb1p, "
				    "zbv, v-half, v-min, dualpipe",
				    kind);
	*ret = (struct sched){ .kind = kinds[k].kind,
			       .pp = pp,
			       .chunks = kinds[k].chunks ? kinds[k].chunks : vpp,
			       .micro = micro,
			       .split = kinds[k].split };
	ret->ranks = mo_alloc_array((size_t)pp, sizeof(*ret->ranks));
	if (!kinds[k].make && pp > 2)
		sched_blocks(ret);
	else /* at two stages zbv holds no more than v-half and v-min */
		for (int64_t i = 0; i < pp; i++)
			(kinds[k].make ? kinds[k].make : make_zbv)(ret, i);
	return 0;
}

void sched_done(struct sched *s)
{
	for (int64_t i = 0; s->ranks && i < s->pp; i++)
		free(s->ranks[i].nodes);
	free(s->ranks);
	*s = (struct sched){ 0 };
}
