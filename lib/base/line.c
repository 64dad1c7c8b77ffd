/* ECMA-48: ESC [ parameters final (CSI), ESC ] text BEL or ESC \ (OSC), ESC intermediates final. */
#include "lib/base/line.h"

#include <string.h>

#include "lib/base/util.h"

/* Where the sequence ends that begins behind the ESC at s[i]: its last byte. */
static size_t sequence_end(const char *s, size_t n, size_t i)
{
	unsigned char c = (unsigned char)s[++i];

	if (c == '[') {
		while (i + 1 < n && (unsigned char)s[i + 1] >= 0x20 &&
		       (unsigned char)s[i + 1] < 0x40)
			i++;
		i++;
	} else if (c == ']') {
		while (i + 1 < n && s[i + 1] != 0x07 && s[i + 1] != 0x1b)
			i++;
		i += i + 2 < n && s[i + 1] == 0x1b && s[i + 2] == '\\' ? 2 : 1;
	} else if (c >= 0x20 && c < 0x30) {
		i++;
	}
	return i;
}

size_t mo_line_plain(const char *s, size_t n, char *out)
{
	size_t k = 0;

	/* nearly every line */
	if (!memchr(s, 0x1b, n) && !memchr(s, '\r', n) && !memchr(s, '\n', n) && !memchr(s, 0, n)) {
		memmove(out, s, n);
		return n;
	}
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if ((unsigned char)c != 0x1b)
			out[k++] = c == '\r' || c == '\n' || c == 0 ? ' ' : c;
		else if (i + 1 < n)
			i = sequence_end(s, n, i);
	}
	return k;
}

char *mo_line_plain_dup(const char *s)
{
	char *ret = mo_strdup(s);

	ret[mo_line_plain(s, strlen(s), ret)] = 0;
	return ret;
}
