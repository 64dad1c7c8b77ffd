/* See line_fact.h. */
#include "agent/core/text/line_fact.h"

#include <math.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/engine.h"

/* More than any machine does for a long time; a value beyond is a slip of the engine and would
 * spoil every sum. */
#define STEP_S_MAX 1e7
#define COUNT_MAX 1e15
#define RATE_MAX 1e12
#define TFLOPS_MAX 1e6
#define MFU_MAX 100
#define GB_MAX 1e6
/* loss, gradient norm and learning rate may be anything, NaN too: that is what they are watched
 * for */
#define ANY_MAX INFINITY

#define S(f, t, max) \
	{ \
#f, (t), offsetof(struct sample, f), (max) \
	}
static const struct line_field fields[] = {
	{ "iteration", FIELD_ITERATION, 0, COUNT_MAX },
	S(loss, FIELD_REAL, ANY_MAX),
	S(grad_norm, FIELD_REAL, ANY_MAX),
	S(lr, FIELD_REAL, ANY_MAX),
	S(step_ms, FIELD_REAL, STEP_S_MAX * 1000),
	{ "step_s", FIELD_STEP_S, 0, STEP_S_MAX },
	S(tokens, FIELD_INT, COUNT_MAX),
	{ "tokens_per_s", FIELD_TOKENS_PER_S, 0, RATE_MAX },
	S(tokens_per_s_per_gpu, FIELD_REAL, RATE_MAX),
	S(tflops_per_gpu, FIELD_REAL, TFLOPS_MAX),
	S(mfu, FIELD_REAL, MFU_MAX),
	S(mem_gb, FIELD_GB, GB_MAX),
	{ "mem_gib", FIELD_GIB, offsetof(struct sample, mem_gb), GB_MAX },
	{ "mem_mib", FIELD_MIB, offsetof(struct sample, mem_gb), GB_MAX },
	S(skipped, FIELD_INT, COUNT_MAX),
	S(nan, FIELD_INT, COUNT_MAX),
	S(consumed_samples, FIELD_INT, COUNT_MAX),
	S(batch_samples, FIELD_INT, COUNT_MAX),
	/* read by nobody yet, allowed in rules */
	{ "path", FIELD_PATH, 0, 0 },
	{ "steps", FIELD_INT, SIZE_MAX, 0 },
	{ "seconds", FIELD_REAL, SIZE_MAX, 0 },
};
_Static_assert(ELEMENTSOF(fields) == LINE_FIELDS, "as line_fact.h says");
const struct line_field *line_field_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(fields); i++)
		if (mo_streq(fields[i].name, name))
			return &fields[i];
	return NULL;
}

static int64_t to_int(double v)
{
	return isfinite(v) && fabs(v) < 9e15 ? (int64_t)v : MO_NONE;
}

/* Decimal gigabytes of a memory figure. GiB and MiB are what they say; GB and MB are printed by
 * programs that mean either: the field knows. */
static double gigabytes(double v, enum line_target target, const char *unit)
{
	static const struct {
		const char *unit;
		double decimal, binary;
	} units[] = {
		{ "GB", 1, 1.073741824 },
		{ "MB", 1e-3, 1.048576e-3 },
		{ "GiB", 1.073741824, 1.073741824 },
		{ "MiB", 1.048576e-3, 1.048576e-3 },
		{ "KiB", 1.024e-6, 1.024e-6 },
		{ "TiB", 1099.511627776, 1099.511627776 },
	};

	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (mo_streq(units[i].unit, unit))
			return v * (target == FIELD_GB ? units[i].decimal : units[i].binary);
	return v * (target == FIELD_GIB ? 1.073741824 : target == FIELD_MIB ? 1.048576e-3 : 1);
}

void line_fact_set(const struct line_field *field, struct text t, bool whole, struct line_fact *f,
		   struct line_rates *x)
{
	struct number number;

	if (field->target == FIELD_PATH) {
		size_t len = MO_MIN(t.n, sizeof(f->path) - 1);
		memcpy(f->path, t.s, len);
		f->path[len] = 0;
		return;
	}
	if (field->offset == SIZE_MAX || !number_read(t, whole, &number))
		return;
	double v = number.unit[0] == '%' ? number.v / 100 : number.v;
	if (isnan(v) && isfinite(field->max))
		return; /* "mfu: nan" of a first iteration: not known */
	if (isfinite(field->max) && !(v >= 0 && v <= field->max)) {
		f->refused++;
		return;
	}
	switch (field->target) {
	case FIELD_INT: *(int64_t *)((char *)&f->sample + field->offset) = to_int(v); break;
	case FIELD_REAL: *(double *)((char *)&f->sample + field->offset) = v; break;
	case FIELD_ITERATION: f->sample.iteration = to_int(v); break;
	case FIELD_STEP_S: x->step_s = v; break;
	case FIELD_TOKENS_PER_S: x->tokens_per_s = v; break;
	case FIELD_GB:
	case FIELD_GIB:
	case FIELD_MIB: f->sample.mem_gb = gigabytes(v, field->target, number.unit); break;
	case FIELD_PATH: break;
	}
}

int64_t line_path_number(const char *path)
{
	size_t end = strlen(path), begin;
	int64_t v;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] >= '0' && path[begin - 1] <= '9'; begin--)
		;
	if (begin == end || end - begin > 18)
		return MO_NONE;
	_cleanup_(mo_freep) char *digits = mo_strndup(path + begin, end - begin);
	return mo_parse_i64(digits, 0, INT64_MAX, &v) == 0 ? v : MO_NONE;
}

void line_fact_finish(struct line_fact *f, const struct line_rates *x, int64_t world)
{
	struct sample *s = &f->sample;

	if (s->step_ms == MO_NONE_F && x->step_s != MO_NONE_F)
		s->step_ms = x->step_s * 1000;
	if (s->tokens_per_s_per_gpu == MO_NONE_F && x->tokens_per_s != MO_NONE_F && world > 0)
		s->tokens_per_s_per_gpu = x->tokens_per_s / (double)world;
	if (s->tokens_per_s_per_gpu == MO_NONE_F && s->tokens != MO_NONE &&
	    s->step_ms != MO_NONE_F && s->step_ms > 0 && world > 0) {
		s->tokens_per_s_per_gpu = (double)s->tokens * 1000 / s->step_ms / (double)world;
		if (s->tokens_per_s_per_gpu > RATE_MAX)
			s->tokens_per_s_per_gpu = MO_NONE_F;
	}
	f->iteration = s->iteration;
	if (f->iteration == MO_NONE && f->path[0] && f->kind != LINE_SAVING)
		f->iteration = line_path_number(f->path);
}

void line_fact_init(struct line_fact *f, struct line_rates *x, const struct sample *none)
{
	f->kind = -1;
	f->sample = *none;
	f->phase = PHASE_NONE;
	f->iteration = MO_NONE;
	f->path[0] = f->status[0] = 0;
	f->ready = f->checkpoint = false;
	f->refused = 0;
	f->busy_ms = MO_NONE_F;
	*x = (struct line_rates){ .step_s = MO_NONE_F, .tokens_per_s = MO_NONE_F };
}
