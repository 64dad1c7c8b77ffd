/* V-half and V-min (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory"): every
 * micro-batch repeats one building block six slots later than the one before, in slots of one
 * chunk's F = B = W. Its offsets from rank to rank set how long activations live: six slots over
 * the whole way for V-half, four for V-min. The order of F and B on a rank is the order of the
 * slots; weight gradients fill the holes, or make room when the rank holds all that it may. */
#include "lib/plan/schedule_blocks.h"

#include <stdlib.h>

#include "lib/plan/schedule.h"

#define PERIOD 6

/* Slots from rank to rank in F0, F1, B1, B0, and between two of them. */
struct offsets {
	int64_t offset[4], gap[3];
};
struct step {
	int64_t slot;
	enum sched_op op;
	int64_t chunk, micro;
};
/* f_done, b_done: the slot behind F or B of a virtual stage and micro-batch, -1 before; waiting:
 * weight gradients, 2 micro + chunk; cap: chunks held at once */
struct fill {
	struct sched *s;
	struct step **steps;
	int64_t *at, *clock, *held, **waiting, *waiting_first, *waiting_n;
	int64_t *f_done, *b_done, cap;
};

/* Slots of the first micro-batch's F0 F1 B1 B0 on a rank. The gaps at the turns keep the four
 * apart modulo PERIOD on every rank. */
static void block(const struct sched *s, int64_t rank, int64_t ret[static 4])
{
	static const struct offsets half_even = { { 1, 2, 1, 2 }, { 3, 1, 3 } },
				    half_odd = { { 1, 2, 1, 2 }, { 1, 0, 0 } };
	static const struct offsets min = { { 1, 1, 1, 1 }, { 0, 0, 0 } },
				    min_third = { { 1, 1, 1, 1 }, { 2, 0, 2 } };
	const struct offsets *b;
	int64_t up = s->pp - 1 - rank, last = s->pp - 1, start = 0;

	if (mo_streq(s->kind, "v-half"))
		b = s->pp % 2 ? &half_odd : &half_even;
	else
		b = s->pp % 3 ? &min : &min_third;
	for (int i = 0; i < 4; i++) {
		ret[i] = start + b->offset[i] * (i % 2 ? up : rank);
		start += b->offset[i] * last + 1 + (i < 3 ? b->gap[i] : 0);
	}
}

static int by_slot(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static struct step *steps_of(const struct sched *s, int64_t rank)
{
	static const enum sched_op ops[4] = { SCHED_F, SCHED_F, SCHED_B, SCHED_B };
	static const int64_t chunks[4] = { 0, 1, 1, 0 };
	struct step *steps = mo_alloc_array((size_t)(4 * s->micro), sizeof(*steps));
	int64_t slots[4];

	block(s, rank, slots);
	for (int64_t k = 0; k < s->micro; k++)
		for (int i = 0; i < 4; i++)
			steps[4 * k + i] =
				(struct step){ slots[i] + PERIOD * k, ops[i], chunks[i], k };
	qsort(steps, (size_t)(4 * s->micro), sizeof(*steps), by_slot);
	return steps;
}

/* When the rank's next step can start; -1: something that it needs was not placed yet. */
static int64_t start_of(const struct fill *f, int64_t rank, int64_t *ret_stage)
{
	const struct step *n = &f->steps[rank][f->at[rank]];
	int64_t m = f->s->micro, stage = sched_stage(f->s, rank, n->chunk), start = f->clock[rank],
		last = 2 * f->s->pp - 1;

	*ret_stage = stage;
	if (n->op == SCHED_F) {
		int64_t before = stage > 0 ? f->f_done[(stage - 1) * m + n->micro] : 0;

		return before < 0 ? -1 : MO_MAX(start, before);
	}
	int64_t forward = f->f_done[stage * m + n->micro],
		behind = stage < last ? f->b_done[(stage + 1) * m + n->micro] : 0;

	return forward < 0 || behind < 0 ? -1 : MO_MAX(start, MO_MAX(forward, behind));
}

static void add_waiting(struct fill *f, int64_t rank)
{
	int64_t w = f->waiting[rank][f->waiting_first[rank]++];

	sched_add(&f->s->ranks[rank], SCHED_W, w % 2, w / 2);
	f->clock[rank]++;
	f->held[rank]--;
}

/* Places the step that can start the earliest, with the weight gradients that fit in front of
 * it. False: none is left. */
static bool place(struct fill *f)
{
	int64_t best = -1, best_start = 0, best_stage = 0;

	for (int64_t r = 0; r < f->s->pp; r++) {
		int64_t stage = 0, start = f->at[r] < 4 * f->s->micro ? start_of(f, r, &stage) : -1;

		if (start >= 0 && (best < 0 || start < best_start)) {
			best = r;
			best_start = start;
			best_stage = stage;
		}
	}
	if (best < 0)
		return false;
	const struct step *n = &f->steps[best][f->at[best]++];

	while (f->waiting_first[best] < f->waiting_n[best] &&
	       (best_start > f->clock[best] || (n->op == SCHED_F && f->held[best] >= f->cap)))
		add_waiting(f, best);
	f->clock[best] = MO_MAX(best_start, f->clock[best]) + 1;
	sched_add(&f->s->ranks[best], n->op, n->chunk, n->micro);
	(n->op == SCHED_F ? f->f_done : f->b_done)[best_stage * f->s->micro + n->micro] =
		f->clock[best];
	if (n->op == SCHED_F)
		f->held[best]++;
	else
		f->waiting[best][f->waiting_n[best]++] = 2 * n->micro + n->chunk;
	return true;
}

void sched_blocks(struct sched *s)
{
	size_t p = (size_t)s->pp, cells = 2 * p * (size_t)s->micro;
	struct fill f = {
		.s = s,
		.steps = mo_alloc_array(p, sizeof(*f.steps)),
		.at = mo_alloc_array(p, sizeof(int64_t)),
		.clock = mo_alloc_array(p, sizeof(int64_t)),
		.held = mo_alloc_array(p, sizeof(int64_t)),
		.waiting = mo_alloc_array(p, sizeof(*f.waiting)),
		.waiting_first = mo_alloc_array(p, sizeof(int64_t)),
		.waiting_n = mo_alloc_array(p, sizeof(int64_t)),
		.f_done = mo_alloc_array(cells, sizeof(int64_t)),
		.b_done = mo_alloc_array(cells, sizeof(int64_t)),
		.cap = 2 * (mo_streq(s->kind, "v-half") ? s->pp / 2 + 1 : (s->pp + 4) / 3),
	};

	for (size_t i = 0; i < cells; i++)
		f.f_done[i] = f.b_done[i] = -1;
	for (size_t r = 0; r < p; r++) {
		f.steps[r] = steps_of(s, (int64_t)r);
		f.waiting[r] = mo_alloc_array(2 * (size_t)s->micro, sizeof(int64_t));
	}
	while (place(&f))
		;
	for (size_t r = 0; r < p; r++) {
		while (f.waiting_first[r] < f.waiting_n[r])
			add_waiting(&f, (int64_t)r);
		free(f.steps[r]);
		free(f.waiting[r]);
	}
	void *all[] = { f.steps,         f.at,        f.clock,  f.held,  f.waiting,
			f.waiting_first, f.waiting_n, f.f_done, f.b_done };
	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		free(all[i]);
}
