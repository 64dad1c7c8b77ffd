/* See checksum.h: stores of released versions hold its values. */
#include "lib/store/checksum.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/util.h"

int64_t store_checksum(const char *text, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u ^ n;

	mo_assert(text || n == 0);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = 0;
		memcpy(&word, text + i, MO_MIN(n - i, 8));
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return (int64_t)h;
}
