/* Why the best plan is the best: each choice is changed to its next legal value, down and up,
 * and the difference is shown in the part of the step that grew most and in memory. */
#include "lib/plan/neighbours.h"

#include <math.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/plan/features.h"
#include "lib/plan/legal.h"
#include "lib/plan/memory.h"
#include "lib/plan/shape.h"
#include "lib/plan/time.h"

static const struct {
	const char *name;
	size_t at;
} choices[] = {
	{ "ep", offsetof(struct shape, ep) },       { "pp", offsetof(struct shape, pp) },
	{ "vpp", offsetof(struct shape, vpp) },     { "cp", offsetof(struct shape, cp) },
	{ "tp", offsetof(struct shape, tp) },       { "etp", offsetof(struct shape, etp) },
	{ "micro", offsetof(struct shape, micro) },
};

static const struct {
	const char *name;
	size_t at;
} parts[] = {
	{ "compute", offsetof(struct plan_time, compute) },
	{ "all-to-all", offsetof(struct plan_time, a2a) },
	{ "bubble and transfers", offsetof(struct plan_time, pp) },
	{ "gradients", offsetof(struct plan_time, dp) },
	{ "context", offsetof(struct plan_time, cp) },
	{ "tensor", offsetof(struct plan_time, tp) },
	{ "optimizer", offsetof(struct plan_time, optimizer) },
	{ "launches", offsetof(struct plan_time, launch) },
};

static double part_of(const struct plan_time *t, size_t at)
{
	return *(const double *)((const char *)t + at);
}

/* Answers of plan_options.refuses are shared by sizes that lie alike: the numbers in them become
 * those of this shape. Caller frees. */
static char *with_own_sizes(const char *text, const struct shape *s)
{
	struct mo_buf b = { 0 };

	while (*text) {
		size_t i = 0, n = 0;

		for (; i < ELEMENTSOF(choices) && n == 0; i++) {
			_cleanup_(mo_freep) char *path =
				mo_printf("%s.%s ",
					  choices[i].at == offsetof(struct shape, micro)
						  ? "batch"
						  : "parallelism",
					  choices[i].name);

			n = mo_starts_with(text, path) && text[strlen(path)] >= '0' &&
					    text[strlen(path)] <= '9'
				    ? strlen(path)
				    : 0;
		}
		mo_buf_add(&b, text, MO_MAX(n, (size_t)1));
		text += MO_MAX(n, (size_t)1);
		if (n > 0) {
			mo_buf_printf(&b, "%lld",
				      (long long)*(const int64_t *)((const char *)s +
								    choices[i - 1].at));
			text += strspn(text, "0123456789");
		}
	}
	return mo_buf_take(&b);
}

/* Steps of other batches, where a step is one micro-batch, for as many sequences. */
static void for_batch(struct plan_time *t, double share)
{
	double *const all[] = { &t->total, &t->compute, &t->a2a,       &t->pp,    &t->dp,
				&t->cp,    &t->tp,      &t->optimizer, &t->launch };

	for (size_t i = 0; i < ELEMENTSOF(all); i++)
		*all[i] *= share;
}

/* refused: why the recipe could not have it, NULL: it can. What is refused is shown only where it
 * would be better. */
static void compare(const struct shape *other, const char *what, const char *refused,
		    struct plan *p)
{
	struct plan q = { 0 };
	size_t most = 0;

	memory_of(other, &q.memory_gb);
	time_of(other, &q);
	for_batch(&q.step_time_s, (double)p->batch.global / (double)other->global);
	double base = p->step_time_s.total, worse = q.step_time_s.total - base,
	       gb = q.memory_gb.total - p->memory_gb.total;
	bool slower = worse >= 0, fits = q.memory_gb.total <= q.memory_gb.capacity;

	if (refused && (slower || !fits))
		return;

	for (size_t i = 1; i < ELEMENTSOF(parts); i++) {
		double d = part_of(&q.step_time_s, parts[i].at) -
			   part_of(&p->step_time_s, parts[i].at),
		       most_d = part_of(&q.step_time_s, parts[most].at) -
				part_of(&p->step_time_s, parts[most].at);

		if (slower ? d > most_d : d < most_d)
			most = i;
	}
	double share =
		part_of(&q.step_time_s, parts[most].at) - part_of(&p->step_time_s, parts[most].at);
	_cleanup_(mo_freep) char *room =
		fits ? mo_printf(fabs(gb) < 0.05 ? "same memory" : "%s %.1f GB",
				 gb < 0 ? "saves" : "takes", fabs(gb))
		     : mo_printf("does not fit: %.1f of %.1f GB", q.memory_gb.total,
				 q.memory_gb.capacity);
	_cleanup_(mo_freep) char *why = refused ? with_own_sizes(refused, other) : NULL;
	_cleanup_(mo_freep) char *text =
		mo_printf("%s: step %+.1f %% (%s %+.1f %%), %s%s%s", what, worse / base * 100,
			  parts[most].name, share / base * 100, room, why ? "; but " : "",
			  why ? why : "");

	mo_strs_add(&p->notes, &p->n_notes, text);
}

/* vpp 1 is 1F1B, more is interleaved; other schedules keep theirs. dp follows. */
static bool divides(struct shape *s)
{
	if (mo_streq(s->schedule, "1f1b") || mo_streq(s->schedule, "interleaved"))
		s->schedule = s->vpp > 1 ? "interleaved" : "1f1b";
	int64_t ranks = s->tp * s->cp * s->pp;

	if (s->gpus % ranks)
		return false;
	s->dp = s->gpus / ranks;
	s->global = s->one_micro ? s->micro * s->dp : s->global;
	return shape_is_legal(s);
}

static bool legal_with(const struct plan_options *o, struct shape *s)
{
	return divides(s) && !shape_refused(o, s);
}

static void next_value(const struct plan_options *o, const struct shape *s, size_t choice,
		       int direction, struct plan *p)
{
	struct shape other = *s;
	bool shown = false; /* the first value that is refused */
	int64_t value = *(const int64_t *)((const char *)s + choices[choice].at),
		most = MO_MIN(8 * value, choices[choice].at == offsetof(struct shape, micro)
						 ? s->global
						 : s->gpus);

	for (int64_t v = value + direction; direction < 0 ? v > 0 : v <= most; v += direction) {
		other = *s;
		*(int64_t *)((char *)&other + choices[choice].at) = v;
		/* a layout is of so many stages */
		if (other.pp != s->pp || other.vpp != s->vpp)
			other.stage_layers = other.chunk_layers = NULL;
		if (!divides(&other))
			continue;
		_cleanup_(mo_freep) char *what =
			mo_printf("%s %lld instead of %lld", choices[choice].name, (long long)v,
				  (long long)value);
		const char *refused = shape_refused(o, &other);

		if (!refused || !shown)
			compare(&other, what, refused, p);
		if (!refused)
			return;
		shown = true;
	}
}

void neighbours_compare(const struct recipe *r, const struct plan_options *o, const struct shape *s,
			struct plan *p)
{
	struct shape other = *s;

	for (size_t i = 0; i < ELEMENTSOF(choices); i++) {
		/* a search leaves alone what the recipe fixes */
		if (choices[i].at == offsetof(struct shape, micro) && r->micro != MO_NONE &&
		    r->parallelism.automatic)
			continue;
		next_value(o, s, i, -1, p);
		next_value(o, s, i, 1, p);
	}
	other.recompute = mo_streq(s->recompute, "full") ? "none" : "full";
	_cleanup_(mo_freep) char *what =
		mo_printf("recompute %s instead of %s", other.recompute, s->recompute);

	if ((!plan_recompute_given(r) || (r->recompute && !r->parallelism.automatic)) &&
	    legal_with(o, &other))
		compare(&other, what, NULL, p);
}

/* The fastest of the plans that differ in one choice and fit. */
struct nearest {
	const struct plan_options *o;
	double rank;
	char *text;
};

static void consider_near(struct nearest *n, struct shape *other, const char *choice,
			  const char *value)
{
	struct plan q = { 0 };

	if (!legal_with(n->o, other))
		return;
	memory_of(other, &q.memory_gb);
	time_of(other, &q);
	if (q.memory_gb.total > q.memory_gb.capacity ||
	    (n->text && shape_rank(other, q.step_time_s.total) >= n->rank))
		return;
	free(n->text);
	n->rank = shape_rank(other, q.step_time_s.total);
	n->text = mo_printf("nearest plan that fits: %s %s, %.1f GB, step %.3g s", choice, value,
			    q.memory_gb.total, q.step_time_s.total);
}

void neighbours_nearest(const struct recipe *r, const struct plan_options *o, const struct shape *s,
			struct plan *p)
{
	static const char *const levels[] = { "selective", "full" }, *const shardings[] = {
		"zero1", "zero2", "zero3"
	};
	struct nearest n = { .o = o };
	/* changed in engine.args alone */
	bool flagged = !r->recompute && plan_recompute_given(r);

	for (size_t i = 0; i < ELEMENTSOF(choices); i++)
		for (int64_t v = 1; v <= MO_MIN(s->gpus, 1024); v++) {
			struct shape other = *s;
			_cleanup_(mo_freep) char *value = mo_printf("%lld", (long long)v);

			*(int64_t *)((char *)&other + choices[i].at) = v;
			other.stage_layers =
				s->pp == other.pp && s->vpp == other.vpp ? s->stage_layers : NULL;
			other.chunk_layers = other.stage_layers ? s->chunk_layers : NULL;
			consider_near(&n, &other, choices[i].name, value);
		}
	for (size_t i = 0; i < ELEMENTSOF(levels) && !flagged; i++) {
		struct shape other = *s;

		other.recompute = levels[i];
		consider_near(&n, &other, "recompute", levels[i]);
	}
	for (size_t i = 0; i < ELEMENTSOF(shardings); i++) {
		struct shape other = *s;

		other.sharding = shardings[i];
		consider_near(&n, &other, "sharding", shardings[i]);
	}
	mo_strs_add(&p->notes, &p->n_notes,
		    n.text ? n.text
			   : "no plan that differs in one choice fits: parallelism: auto searches "
			     "all, or use more GPUs");
	free(n.text);
}
