/* Text as UTF-8: one sequence at a time, whether all of it is valid, where it may be cut. */
#include "lib/base/utf8.h"

#include <string.h>

#include "lib/base/assert.h"

/* Length of the well-formed sequence at s (n bytes are there), 0 = none. RFC 3629: no overlong
 * forms, no surrogates, at most U+10FFFF. */
static size_t utf8_sequence(const unsigned char *s, size_t n)
{
	size_t len;

	if (s[0] < 0x80)
		return 1;
	len = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
	      : (s[0] & 0xf0) == 0xe0        ? 3
	      : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
					     : 0;
	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

size_t mo_utf8_next(const char *s, size_t n)
{
	return n ? utf8_sequence((const unsigned char *)s, n) : 0;
}

typedef int8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

/* Sixteen at a time; what is no ASCII is below 0. */
size_t mo_text_plain(const char *s, size_t n)
{
	size_t i = 0;

	for (bytes16 v; i + sizeof(v) <= n; i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		const words2 special = (words2)((v < 0x20) | (v == '"') | (v == '\\'));
		if (special[0] | special[1])
			break;
	}
	while (i < n && (signed char)s[i] >= 0x20 && s[i] != '"' && s[i] != '\\')
		i++;
	return i;
}

/* Bytes of ASCII at the start of s, sixteen at a time. */
static size_t ascii(const char *s, size_t n)
{
	size_t i = 0;

	for (bytes16 v; i + sizeof(v) <= n; i += sizeof(v)) {
		memcpy(&v, s + i, sizeof(v));
		const words2 other = (words2)(v < 0);
		if (other[0] | other[1])
			break;
	}
	while (i < n && (signed char)s[i] >= 0)
		i++;
	return i;
}

bool mo_utf8_valid(const char *s, size_t n)
{
	for (size_t i = ascii(s, n), len; i < n; i += len, i += ascii(s + i, n - i)) {
		len = utf8_sequence((const unsigned char *)s + i, n - i);
		if (len == 0)
			return false;
	}
	return true;
}

size_t mo_utf8_cut(const char *s, size_t most)
{
	mo_assert(most < strlen(s)); /* else there is nothing to cut */
	while (most > 0 && ((unsigned char)s[most] & 0xc0) == 0x80)
		most--;
	return most;
}

int mo_utf8_shown(const char *s, int most)
{
	size_t n = strnlen(s, (size_t)most + 1);

	return n > (size_t)most ? (int)mo_utf8_cut(s, (size_t)most) : (int)n;
}
