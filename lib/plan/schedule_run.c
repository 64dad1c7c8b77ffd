/* The simulation (see schedule.h). Ranks work through their lists as far as they can; when
 * nobody moves and work is left, the schedule is stuck. */
#include "lib/plan/schedule_run.h"

#include <errno.h>
#include <math.h>

#include "lib/base/assert.h"
#include "lib/plan/schedule.h"

/* done: when F and B of a virtual stage and micro-batch ended, NAN before; of dualpipe once per
 * direction */
struct run {
	struct sched *s;
	const struct sched_cost *cost;
	double transfer, *f_done, *b_done;
	size_t *at;
	double *clock;
	int64_t stages;
};

static double *cell(struct run *r, double *table, int64_t chunk, int64_t stage, int64_t micro)
{
	int64_t direction = r->stages == r->s->pp && r->s->chunks == 2 ? chunk : 0;

	mo_assert(stage >= 0 && stage < r->stages && micro >= 0 && micro < r->s->micro);
	return &table[(direction * r->stages + stage) * r->s->micro + micro];
}

/* From the stage before or behind; a V's turn stays on its rank. */
static double arrival(struct run *r, double done, int64_t stage, int64_t other)
{
	bool turn = sched_is_v(r->s->kind) && MO_MIN(stage, other) == r->s->pp - 1;

	mo_assert(MO_MAX(stage, other) - MO_MIN(stage, other) == 1); /* neighbours only */
	return r->s->pp == 1 || turn ? done : done + r->transfer;
}

/* When the node may start; NAN: not yet. */
static double start_of(struct run *r, int64_t rank, const struct sched_node *n)
{
	int64_t stage = sched_stage(r->s, rank, n->chunk);
	double start = r->clock[rank],
	       own = n->op == SCHED_F ? 0
				      : *cell(r, n->op == SCHED_W ? r->b_done : r->f_done, n->chunk,
					      stage, n->micro),
	       other = 0;

	if (n->op == SCHED_F && stage > 0)
		other = arrival(r, *cell(r, r->f_done, n->chunk, stage - 1, n->micro), stage,
				stage - 1);
	if (n->op == SCHED_B && stage < r->stages - 1)
		other = arrival(r, *cell(r, r->b_done, n->chunk, stage + 1, n->micro), stage,
				stage + 1);
	return isnan(own) || isnan(other) ? NAN : MO_MAX(start, MO_MAX(own, other));
}

static double length_of(const struct run *r, int64_t stage, enum sched_op op)
{
	const struct sched_cost *c = &r->cost[stage];

	mo_assert(c->f >= 0 && c->b >= 0 && c->w >= 0);
	return op == SCHED_F ? c->f : op == SCHED_W ? c->w : r->s->split ? c->b : c->b + c->w;
}

/* Runs the nodes that belong together; false when one of them cannot start. */
static bool step(struct run *r, int64_t rank)
{
	struct sched_rank *list = &r->s->ranks[rank];
	struct sched_node *first = &list->nodes[r->at[rank]];
	size_t n = (size_t)MO_MAX(first->joined, 1);
	double start = 0, end;

	/* the weight gradient of a pair needs only its own backward */
	for (size_t i = 0; i < n; i++)
		if (n == 1 || first[i].op != SCHED_W) {
			double ready = start_of(r, rank, &first[i]);

			if (isnan(ready))
				return false;
			start = MO_MAX(start, ready);
		}
	end = start;
	for (size_t i = 0; i < n; i++) {
		first[i].start = end;
		first[i].end = end +=
			length_of(r, sched_stage(r->s, rank, first[i].chunk), first[i].op);
	}
	for (size_t i = 0; i < n; i++)
		if (first[i].op != SCHED_W)
			*cell(r, first[i].op == SCHED_F ? r->f_done : r->b_done, first[i].chunk,
			      sched_stage(r->s, rank, first[i].chunk), first[i].micro) = end;
	list->busy += end - start;
	r->clock[rank] = end;
	mo_assert(r->at[rank] + n <= list->n && end >= start);
	r->at[rank] += n;
	return true;
}

static bool advance(struct run *r, int64_t rank)
{
	bool moved = false;

	while (r->at[rank] < r->s->ranks[rank].n && step(r, rank))
		moved = true;
	return moved;
}

static void measure(struct sched *s)
{
	double busy = 0;

	s->step = 0;
	for (int64_t i = 0; i < s->pp; i++) {
		struct sched_rank *r = &s->ranks[i];
		int64_t held = 0, most = 0;

		for (size_t k = 0; k < r->n; k++) {
			held += r->nodes[k].op == SCHED_F                          ? 1
				: r->nodes[k].op == (s->split ? SCHED_W : SCHED_B) ? -1
										   : 0;
			most = MO_MAX(most, held);
			s->step = MO_MAX(s->step, r->nodes[k].end);
		}
		r->in_flight =
			(double)most / (double)(mo_streq(s->kind, "dualpipe") ? 1 : s->chunks);
		busy += r->busy;
	}
	s->bubble = s->step > 0 ? 1 - busy / (s->step * (double)s->pp) : 0;
	mo_assert(s->bubble > -1e-9 && s->bubble <= 1);
}

static int stuck(const struct run *r, struct mo_error *err)
{
	static const char *const words[] = { "forward", "backward", "weight gradient" };

	for (int64_t i = 0; i < r->s->pp; i++)
		if (r->at[i] < r->s->ranks[i].n) {
			const struct sched_node *n = &r->s->ranks[i].nodes[r->at[i]];

			return mo_error_set(err, -EDEADLK,
					    "schedule %s with pp %lld and %lld micro-batches is "
					    "stuck: rank %lld waits to start the %s of micro-batch "
					    "%d, chunk %d",
					    r->s->kind, (long long)r->s->pp, (long long)r->s->micro,
					    (long long)i, words[n->op], n->micro, n->chunk);
		}
	return 0;
}

int sched_run(struct sched *s, const struct sched_cost *cost, double transfer, struct mo_error *err)
{
	size_t cells = (size_t)(s->pp * MO_MAX(s->chunks, 1) * s->micro);
	struct run r = { .s = s,
			 .cost = cost,
			 .transfer = transfer,
			 .stages = sched_stages(s),
			 .f_done = mo_alloc_array(cells, sizeof(double)),
			 .b_done = mo_alloc_array(cells, sizeof(double)),
			 .at = mo_alloc_array((size_t)s->pp, sizeof(size_t)),
			 .clock = mo_alloc_array((size_t)s->pp, sizeof(double)) };
	bool moved = true;

	mo_assert(cost && transfer >= 0 && s->ranks);
	for (size_t i = 0; i < cells; i++)
		r.f_done[i] = r.b_done[i] = NAN;
	for (int64_t i = 0; i < s->pp; i++)
		s->ranks[i].busy = 0;
	while (moved) {
		moved = false;
		for (int64_t i = 0; i < s->pp; i++)
			moved |= advance(&r, i);
	}
	int ret = stuck(&r, err);

	measure(s);
	free(r.f_done);
	free(r.b_done);
	free(r.at);
	free(r.clock);
	return ret;
}
