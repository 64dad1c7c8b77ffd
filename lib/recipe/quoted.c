/* Quoted scalars of YAML 1.2 (7.3.1, 7.3.2, 6.5): quotes doubled, backslash escapes, lines
 * folded. Ours, because libfyaml 0.7.12 reads 'a''''b' and some folded lines after an escape as
 * other texts. Called by yaml.c, after libfyaml found where the quotes are. */
#include "lib/recipe/quoted.h"

#include <string.h>

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static size_t line_break(const char *s, size_t n)
{
	if (n >= 2 && s[0] == '\r' && s[1] == '\n')
		return 2;
	return n >= 1 && (s[0] == '\n' || s[0] == '\r');
}

/* At a line break (blanks before it already dropped): skips it, empty lines and the next line's
 * indentation. One break is a space, more are one newline less. */
static size_t fold(const char *s, size_t n, bool continued, struct mo_buf *b)
{
	size_t i = line_break(s, n), breaks = 1;

	for (;;) {
		while (i < n && blank(s[i]))
			i++;
		size_t more = line_break(s + i, n - i);

		if (!more)
			break;
		i += more;
		breaks++;
	}
	if (breaks == 1 && !continued)
		mo_buf_str(b, " ");
	for (size_t k = 1; k < breaks; k++)
		mo_buf_str(b, "\n");
	return i;
}

void quoted_add(uint32_t c, struct mo_buf *b)
{
	unsigned char s[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; c >>= 6)
		s[i] = (unsigned char)(0x80 | (c & 0x3f));
	s[0] = (unsigned char)(lead[n] | c);
	mo_buf_add(b, s, n);
}

bool quoted_hex(const char *s, size_t n, uint32_t *ret)
{
	uint32_t c = 0;

	for (size_t i = 0; i < n; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *d =
			s[i] ? strchr(digits, s[i] >= 'A' && s[i] <= 'F' ? s[i] + 32 : s[i]) : NULL;

		if (!d)
			return false;
		c = c << 4 | (uint32_t)(d - digits);
	}
	*ret = c;
	return c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

/* s is behind the backslash. Characters used, 0 = no escape. */
static size_t escape(const char *s, size_t n, struct mo_buf *b)
{
	static const struct {
		char c;
		uint32_t means;
	} names[] = {
		{ '0', 0 },    { 'a', 7 },      { 'b', 8 },      { 't', 9 },     { '\t', 9 },
		{ 'n', 10 },   { 'v', 11 },     { 'f', 12 },     { 'r', 13 },    { 'e', 0x1b },
		{ ' ', ' ' },  { '"', '"' },    { '/', '/' },    { '\\', '\\' }, { 'N', 0x85 },
		{ '_', 0xa0 }, { 'L', 0x2028 }, { 'P', 0x2029 },
	};
	size_t digits = !n ? 0 : s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0;
	uint32_t c = 0;

	if (digits) {
		if (n <= digits || !quoted_hex(s + 1, digits, &c))
			return 0;
		quoted_add(c, b);
		return digits + 1;
	}
	for (size_t i = 0; n && i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].c == s[0]) {
			quoted_add(names[i].means, b);
			return 1;
		}
	return 0;
}

bool quoted_text(const char *text, size_t n, char quote, struct mo_buf *b)
{
	size_t i = 0, retained = b->len; /* kept: blanks behind it fall when the line ends */

	while (i < n) {
		size_t used = 1;

		if (quote == '"' && text[i] == '\\' && line_break(text + i + 1, n - i - 1)) {
			used = 1 + fold(text + i + 1, n - i - 1, true, b);
			retained = b->len;
		} else if (quote == '"' && text[i] == '\\') {
			size_t e = escape(text + i + 1, n - i - 1, b);

			if (!e)
				return false;
			used = 1 + e;
			retained = b->len;
		} else if (line_break(text + i, n - i)) {
			b->len = retained;
			used = fold(text + i, n - i, false, b);
			retained = b->len;
		} else {
			mo_buf_add(b, text + i, 1);
			if (quote == '\'' && text[i] == '\'')
				used = 2;
			if (!blank(text[i]))
				retained = b->len;
		}
		i += used;
	}
	return true;
}
