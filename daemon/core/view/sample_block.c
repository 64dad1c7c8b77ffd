/* See sample_block.h. */
#include "daemon/core/view/sample_block.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/crc32c.h"

#define MAGIC 0x31626d73u /* "smb1" */
#define ITERATION_MAX (INT64_C(1) << 60)

/* What of a sample is stored, in the order of its bits; its attempt stands in the head, its phase
 * is the last bit. */
static const uint16_t ints[] = {
	offsetof(struct sample, iteration),     offsetof(struct sample, time),
	offsetof(struct sample, tokens),        offsetof(struct sample, skipped),
	offsetof(struct sample, nan),           offsetof(struct sample, consumed_samples),
	offsetof(struct sample, batch_samples),
};
static const uint16_t reals[] = {
	offsetof(struct sample, loss),   offsetof(struct sample, grad_norm),
	offsetof(struct sample, lr),     offsetof(struct sample, step_ms),
	offsetof(struct sample, mfu),    offsetof(struct sample, tokens_per_s_per_gpu),
	offsetof(struct sample, mem_gb), offsetof(struct sample, tflops_per_gpu),
};
#define PHASE_BIT (ELEMENTSOF(ints) + ELEMENTSOF(reals))

static double value_of(const struct sample *s, int name)
{
	switch (name) {
	case CURVE_LOSS: return s->loss;
	case CURVE_GRAD_NORM: return s->grad_norm;
	case CURVE_STEP_MS: return s->step_ms;
	case CURVE_TOKENS: return s->tokens_per_s_per_gpu;
	default: return s->mfu;
	}
}

void sample_range_join(struct sample_range *r, const struct sample_range *next)
{
	if (next->last == MO_NONE_F)
		return;
	r->last = next->last;
	if (next->least != MO_NONE_F && (r->least == MO_NONE_F || next->least < r->least))
		r->least = next->least;
	if (!isfinite(next->most) ||
	    (isfinite(r->most) && (r->most == MO_NONE_F || next->most > r->most)))
		r->most = next->most;
}

void sample_block_of(const struct sample *s, size_t n, struct sample_block *ret)
{
	mo_assert(n > 0 && n <= BLOCK_SAMPLES && s[0].attempt == s[n - 1].attempt);
	*ret = (struct sample_block){ .attempt = s[0].attempt,
				      .first = s[0].iteration,
				      .last = s[n - 1].iteration,
				      .n = (int64_t)n };
	for (int k = 0; k < _CURVE_N; k++) {
		struct sample_range *r = &ret->ranges[k];

		*r = (struct sample_range){ MO_NONE_F, MO_NONE_F, MO_NONE_F };
		for (size_t i = 0; i < n; i++) {
			double v = value_of(&s[i], k);
			struct sample_range one = { v, isfinite(v) ? v : MO_NONE_F, v };

			sample_range_join(r, &one);
		}
	}
}

static void put(struct mo_buf *b, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		mo_buf_add(b, &(uint8_t){ (uint8_t)(v >> 8 * i) }, 1);
}

static void put_real(struct mo_buf *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put(b, bits, 8);
}

/* Of a difference that goes round all 64 bits; near zero is short. */
static void put_difference(struct mo_buf *b, uint64_t v)
{
	v = (v << 1) ^ (0 - (v >> 63));
	for (; v > 0x7f; v >>= 7)
		put(b, v | 0x80, 1);
	put(b, v, 1);
}

static int64_t *int_of(struct sample *s, size_t i)
{
	return (int64_t *)(void *)((char *)s + ints[i]);
}

static double *real_of(struct sample *s, size_t i)
{
	return (double *)(void *)((char *)s + reals[i]);
}

/* before: the newest known whole numbers. */
static void put_sample(struct sample s, uint64_t before[static ELEMENTSOF(ints)], struct mo_buf *b)
{
	uint16_t known = 0;

	for (size_t i = 0; i < ELEMENTSOF(ints); i++)
		known |= (uint16_t)((*int_of(&s, i) != MO_NONE) << i);
	for (size_t i = 0; i < ELEMENTSOF(reals); i++)
		known |= (uint16_t)((*real_of(&s, i) != MO_NONE_F) << (ELEMENTSOF(ints) + i));
	known |= (uint16_t)((s.phase >= 0) << PHASE_BIT);
	put(b, known, sizeof(known));
	for (size_t i = 0; i < ELEMENTSOF(ints); i++)
		if (known >> i & 1) {
			put_difference(b, (uint64_t)*int_of(&s, i) - before[i]);
			before[i] = (uint64_t)*int_of(&s, i);
		}
	for (size_t i = 0; i < ELEMENTSOF(reals); i++)
		if (known >> (ELEMENTSOF(ints) + i) & 1)
			put_real(b, *real_of(&s, i));
	if (s.phase >= 0)
		put(b, (uint64_t)s.phase, 1);
}

void sample_block_write(const struct sample *s, size_t n, struct mo_buf *b,
			struct sample_block *ret)
{
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	uint64_t before[ELEMENTSOF(ints)] = { 0 };
	size_t at = b->len;

	sample_block_of(s, n, ret);
	for (size_t i = 0; i < n; i++)
		put_sample(s[i], before, &body);
	ret->bytes = (int64_t)body.len;
	ret->sum = mo_crc32c(0, body.data, body.len);
	put(b, MAGIC, 4);
	put(b, n, 4);
	put(b, (uint64_t)ret->attempt, 8);
	put(b, (uint64_t)ret->first, 8);
	put(b, (uint64_t)ret->last, 8);
	put(b, body.len, 4);
	put(b, ret->sum, 4);
	for (int k = 0; k < _CURVE_N; k++) {
		put_real(b, ret->ranges[k].last);
		put_real(b, ret->ranges[k].least);
		put_real(b, ret->ranges[k].most);
	}
	put(b, mo_crc32c(0, b->data + at, b->len - at), 4);
	mo_assert(b->len - at == BLOCK_HEAD_BYTES && body.len <= BLOCK_BODY_BYTES_MAX);
	mo_buf_add(b, body.data, body.len);
}

/* What is still to be read; short: there was less than was asked for. */
struct bytes {
	const uint8_t *at, *end;
	bool is_short;
};

static uint64_t take(struct bytes *b, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->at) < n) {
		b->is_short = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)*b->at++ << 8 * i;
	return v;
}

static double take_real(struct bytes *b)
{
	uint64_t bits = take(b, sizeof(bits));
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static uint64_t take_difference(struct bytes *b)
{
	uint64_t v = 0, group = 0x80;

	for (unsigned shift = 0; group & 0x80; shift += 7) {
		group = take(b, 1);
		if (shift > 63) {
			b->is_short = true;
			return 0;
		}
		v |= (group & 0x7f) << shift;
	}
	return (v >> 1) ^ (0 - (v & 1));
}

int sample_block_head(const void *data, size_t n, struct sample_block *ret)
{
	struct bytes b = { data, (const uint8_t *)data + n, false };
	struct sample_block k = { 0 };

	if (n < BLOCK_HEAD_BYTES || take(&b, 4) != MAGIC)
		return -EBADMSG;
	k.n = (int64_t)take(&b, 4);
	k.attempt = (int64_t)take(&b, 8);
	k.first = (int64_t)take(&b, 8);
	k.last = (int64_t)take(&b, 8);
	k.bytes = (int64_t)take(&b, 4);
	k.sum = (uint32_t)take(&b, 4);
	for (int i = 0; i < _CURVE_N; i++) {
		k.ranges[i].last = take_real(&b);
		k.ranges[i].least = take_real(&b);
		k.ranges[i].most = take_real(&b);
	}
	if (take(&b, 4) != mo_crc32c(0, data, BLOCK_HEAD_BYTES - 4) || k.n < 1 ||
	    k.n > BLOCK_SAMPLES || k.bytes > BLOCK_BODY_BYTES_MAX || k.attempt < 0 || k.first < 0 ||
	    k.last < k.first || k.last > ITERATION_MAX)
		return -EBADMSG;
	*ret = k;
	return 0;
}

static void take_sample(struct bytes *b, uint64_t before[static ELEMENTSOF(ints)],
			struct sample *ret)
{
	uint64_t known = take(b, 2);

	mo_desc_init(&sample_desc, ret);
	for (size_t i = 0; i < ELEMENTSOF(ints); i++)
		if (known >> i & 1) {
			before[i] += take_difference(b);
			*int_of(ret, i) = (int64_t)before[i];
		}
	for (size_t i = 0; i < ELEMENTSOF(reals); i++)
		if (known >> (ELEMENTSOF(ints) + i) & 1)
			*real_of(ret, i) = take_real(b);
	if (known >> PHASE_BIT & 1)
		ret->phase = (int)take(b, 1);
}

int sample_block_read(const struct sample_block *k, const void *body, size_t n, struct sample *ret)
{
	struct bytes b = { body, (const uint8_t *)body + n, false };
	uint64_t before[ELEMENTSOF(ints)] = { 0 };

	if ((int64_t)n != k->bytes || mo_crc32c(0, body, n) != k->sum)
		return -EBADMSG;
	for (int64_t i = 0; i < k->n; i++) {
		take_sample(&b, before, &ret[i]);
		ret[i].attempt = k->attempt;
		if (b.is_short || ret[i].phase >= _PHASE_N ||
		    (i ? ret[i].iteration <= ret[i - 1].iteration : ret[0].iteration != k->first))
			return -EBADMSG;
	}
	return b.at == b.end && ret[k->n - 1].iteration == k->last ? 0 : -EBADMSG;
}
