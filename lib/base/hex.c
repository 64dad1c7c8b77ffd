/* See hex.h. */
#include "lib/base/hex.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

void mo_hex(const unsigned char *data, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[data[i] >> 4];
		ret[2 * i + 1] = digits[data[i] & 15];
	}
	ret[2 * n] = 0;
}

bool mo_unhex(const char *s, unsigned char *ret, size_t n)
{
	for (size_t i = 0; i < 2 * n; i++) {
		const char *p = s[i] ? strchr(digits, s[i]) : NULL;
		if (!p)
			return false;
		ret[i / 2] = (unsigned char)(i % 2 ? ret[i / 2] | (p - digits) : (p - digits) << 4);
	}
	return !s[2 * n];
}
