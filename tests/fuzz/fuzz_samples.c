/* Any bytes as a file of samples: no read beyond them, and what is taken can be written again and
 * is the same. The first byte says whether the checksums are made right before, so that what is
 * behind them is reached.
 * ROOMS: dcore plan wire model base */
#include <stdlib.h>
#include <string.h>

#include "daemon/core/view/sample_block.h"
#include "lib/base/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
static void mend(uint8_t *b, size_t n)
{
	uint32_t sum;

	if (n < BLOCK_HEAD_BYTES)
		return;
	sum = mo_crc32c(0, b + BLOCK_HEAD_BYTES, n - BLOCK_HEAD_BYTES);
	memcpy(b + 36, &sum, sizeof(sum));
	sum = mo_crc32c(0, b, BLOCK_HEAD_BYTES - 4);
	memcpy(b + BLOCK_HEAD_BYTES - 4, &sum, sizeof(sum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	_cleanup_(mo_freep) uint8_t *b = mo_alloc(n + 1);
	_cleanup_(mo_buf_done) struct mo_buf again = { 0 };
	struct sample read[BLOCK_SAMPLES], twice[BLOCK_SAMPLES];
	struct sample_block k, k2;

	if (n < 1)
		return 0;
	memcpy(b, data + 1, --n);
	if (data[0] & 1)
		mend(b, n);
	if (sample_block_head(b, n, &k) < 0 ||
	    sample_block_read(&k, b + BLOCK_HEAD_BYTES, n - BLOCK_HEAD_BYTES, read) < 0)
		return 0;
	sample_block_write(read, (size_t)k.n, &again, &k2);
	if (sample_block_head(again.data, again.len, &k2) < 0 || k2.n != k.n ||
	    sample_block_read(&k2, again.data + BLOCK_HEAD_BYTES, (size_t)k2.bytes, twice) < 0)
		abort();
	for (int64_t i = 0; i < k.n; i++)
		if (!mo_desc_equal(&sample_desc, &read[i], &twice[i]))
			abort();
	return 0;
}
