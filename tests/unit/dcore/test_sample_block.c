/* Samples as they lie in a file: what was written is read, to the bit; what is cut, flipped or
 * another's is refused. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "daemon/core/view/sample_block.h"

static void make(struct sample *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mo_desc_init(&sample_desc, &s[i]);
		s[i].attempt = 3;
		s[i].iteration = 1000 + (int64_t)i * (i % 3 ? 1 : 7);
		s[i].time = 1764300000000000 + (int64_t)i * 40123;
		s[i].loss = 11.123456789 - (double)i * 0.01;
		s[i].step_ms = 40.123;
		s[i].tokens = 1 << 20;
		s[i].tokens_per_s_per_gpu = 1015.25;
		if (i)
			s[i].iteration = MO_MAX(s[i].iteration, s[i - 1].iteration + 1);
	}
}

static void same(const struct sample *a, const struct sample *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *wrong = mo_desc_diff(&sample_desc, &a[i], &b[i]);

		if (wrong)
			fail_msg("sample %zu: %s", i, wrong);
	}
}

static void what_was_written_is_read(void **state)
{
	struct sample s[BLOCK_SAMPLES], read[BLOCK_SAMPLES];
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct sample_block wrote, k;

	make(s, BLOCK_SAMPLES);
	/* nothing known, everything known, and the edges of both kinds of number */
	mo_desc_init(&sample_desc, &s[5]);
	s[5].attempt = 3;
	s[5].iteration = s[4].iteration + 1;
	s[7].loss = NAN;
	s[8].loss = INFINITY;
	s[9].grad_norm = -INFINITY;
	s[10].lr = DBL_MIN;
	s[11].mfu = -0.0;
	s[12].tokens = INT64_MAX;
	s[13].tokens = 0;
	s[14].tokens = INT64_MIN + 1;
	s[15].phase = PHASE_EVAL;
	s[16].skipped = s[16].nan = 0;
	s[17].consumed_samples = s[17].batch_samples = 1LL << 59;
	s[18].mem_gb = s[18].tflops_per_gpu = 1;
	for (size_t i = 6; i < BLOCK_SAMPLES; i++)
		s[i].iteration = MO_MAX(s[i].iteration, s[i - 1].iteration + 1);
	for (size_t n = 1; n <= BLOCK_SAMPLES; n++) {
		mo_buf_reset(&b);
		sample_block_write(s, n, &b, &wrote);
		assert_int_equal(sample_block_head(b.data, b.len, &k), 0);
		assert_memory_equal(&k, &wrote, offsetof(struct sample_block, ranges));
		assert_int_equal(b.len, BLOCK_HEAD_BYTES + (size_t)k.bytes);
		assert_int_equal(k.n, n);
		assert_int_equal(k.first, s[0].iteration);
		assert_int_equal(k.last, s[n - 1].iteration);
		assert_int_equal(sample_block_read(&k, b.data + BLOCK_HEAD_BYTES, (size_t)k.bytes,
						   read),
				 0);
		same(s, read, n);
	}
	assert_float_equal(k.ranges[CURVE_TOKENS].last, 1015.25, 0);
	assert_true(k.ranges[CURVE_MFU].last == 0);
	assert_float_equal(k.ranges[CURVE_LOSS].least, s[BLOCK_SAMPLES - 1].loss, 0);
}

static void a_sample_as_engines_print_it_is_small(void **state)
{
	struct sample s[BLOCK_SAMPLES];
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct sample_block k;

	make(s, BLOCK_SAMPLES);
	sample_block_write(s, BLOCK_SAMPLES, &b, &k);
	assert_in_range(b.len / BLOCK_SAMPLES, 20, 60);
}

static void what_is_cut_or_flipped_is_refused(void **state)
{
	struct sample s[BLOCK_SAMPLES], read[BLOCK_SAMPLES];
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct sample_block k;

	make(s, 9);
	sample_block_write(s, 9, &b, &k);
	const char *body = b.data + BLOCK_HEAD_BYTES;
	for (size_t n = 0; n < BLOCK_HEAD_BYTES; n++)
		assert_int_equal(sample_block_head(b.data, n, &k), -EBADMSG);
	assert_int_equal(sample_block_head(b.data, b.len, &k), 0);
	for (size_t n = 0; n < (size_t)k.bytes; n++)
		assert_int_equal(sample_block_read(&k, body, n, read), -EBADMSG);
	for (size_t bit = 0; bit < b.len * 8; bit++) {
		struct sample_block broken = k;

		b.data[bit / 8] ^= (char)(1 << bit % 8);
		int r = sample_block_head(b.data, b.len, &broken);
		if (r == 0)
			r = sample_block_read(&broken, body, (size_t)k.bytes, read);
		assert_int_equal(r, -EBADMSG);
		b.data[bit / 8] ^= (char)(1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_sample_as_engines_print_it_is_small),
		cmocka_unit_test(what_is_cut_or_flipped_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
