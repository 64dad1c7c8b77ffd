/* See crc32c.h. The portable way reads eight bytes at a time through eight tables, made at the
 * first use; the tables are the same whoever makes them. */
#include "lib/base/crc32c.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>

#include "lib/base/assert.h"
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */

static uint32_t tables[8][256];
static bool made;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
	made = true;
}

uint32_t mo_crc32c_portable(uint32_t crc, const void *data, size_t n)
{
	const unsigned char *p = data;

	mo_assert(data || n == 0);
	if (!made)
		make_tables();
	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		crc ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
		       (uint32_t)p[3] << 24;
		crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^
		      tables[5][crc >> 16 & 0xff] ^ tables[4][crc >> 24] ^ tables[3][p[4]] ^
		      tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
	}
	while (n-- > 0)
		crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc,
								 const unsigned char *p, size_t n)
{
	uint64_t c = ~crc, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, sizeof(word));
		c = __builtin_ia32_crc32di(c, word);
	}
	while (n-- > 0)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return ~(uint32_t)c;
}

/* Asked at the first use. __builtin_cpu_supports() would bring a constructor that asks many
 * times at the start of every program, and in a virtual machine each question is an exit to its
 * host. */
static bool has_instruction(void)
{
	static enum { NOT_ASKED, NO, YES } known;
	unsigned int a, b, c, d;

	if (known == NOT_ASKED)
		known = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) ? YES : NO;
	return known == YES;
}
#endif

uint32_t mo_crc32c(uint32_t crc, const void *data, size_t n)
{
#ifdef __x86_64__
	if (has_instruction())
		return by_instruction(crc, data, n);
#endif
	return mo_crc32c_portable(crc, data, n);
}
