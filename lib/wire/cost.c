/* What reading a JSON text will take, estimated in one pass before any tree is built. A short
 * text may hold millions of values, of which json-c makes a kilobyte each: 15 MB of {} took 21 s
 * and 3.7 GB. The rates are those of json-c 0.16 and of decode.c, measured on one core of 2026
 * and rounded up; they need not be exact, because what honest peers send (a node's 2,000 notes,
 * 4 MB of last lines) is half of the budget. */
#include "lib/wire/cost.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define BUDGET_NS (45 * 1000000LL)
/* of one object: no description has as many; json-c's tables grow by copying */
#define OBJECT_KEYS_MAX 512
#define DEPTH_MAX 32 /* deeper is refused by wire_parse() */

enum {
	NS_BYTE_TENTHS = 35,
	NS_ESCAPE = 12,
	NS_CODE_POINT = 30,
	NS_FOREIGN = 6, /* a byte of a character beyond ASCII */
	NS_BLANK = 4,
	NS_OBJECT = 1300,
	NS_ARRAY = 1100,
	NS_KEY = 250,
	NS_VALUE = 110
};

struct estimate {
	int64_t ns;
	size_t depth, keys[DEPTH_MAX + 1];
	bool wide;
};

/* Bytes of characters beyond ASCII: each is looked at several times. */
static size_t foreign_bytes(const char *s, size_t n)
{
	size_t count = 0, i = 0;

	for (uint64_t w; i + sizeof(w) <= n; i += sizeof(w)) {
		memcpy(&w, s + i, sizeof(w));
		count += (size_t)__builtin_popcountll(w & 0x8080808080808080u);
	}
	for (; i < n; i++)
		count += (unsigned char)s[i] >> 7;
	return count;
}

/* Index behind the string whose first byte is text[i]; n when it does not end. */
static size_t skip_string(const char *text, size_t n, size_t i, struct estimate *e)
{
	size_t begin = i;

	while (i < n && text[i] != '"') {
		if (text[i] == '\\') {
			i++;
			e->ns += i < n && text[i] == 'u' ? NS_CODE_POINT : NS_ESCAPE;
		}
		i++;
		i += i < n ? mo_text_plain(text + i, n - i) : 0;
	}
	e->ns += (int64_t)foreign_bytes(text + begin, MO_MIN(i, n) - begin) * NS_FOREIGN;
	return i < n ? i + 1 : n;
}

static void count_mark(char c, struct estimate *e)
{
	bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';

	e->ns += c == '{'   ? NS_OBJECT
		 : c == '[' ? NS_ARRAY
		 : c == ':' ? NS_KEY
		 : c == ',' ? NS_VALUE
			    : NS_BLANK;
	if (opens && e->depth < DEPTH_MAX)
		e->keys[++e->depth] = 0;
	else if (closes && e->depth > 0)
		e->depth--;
	else if (c == ':')
		e->wide |= ++e->keys[e->depth] > OBJECT_KEYS_MAX;
}

int wire_affordable(const char *text, size_t n, struct mo_error *err)
{
	struct estimate e = { .ns = (int64_t)(n / 10) * NS_BYTE_TENTHS };
	size_t i = 0;

	while (i < n && e.ns <= BUDGET_NS && !e.wide) {
		char c = text[i++];

		if (c == '"')
			i = skip_string(text, n, i, &e);
		else
			count_mark(c, &e);
	}
	if (e.wide)
		return mo_error_set(err, -E2BIG,
				    "JSON: more than %d keys in one object at byte %zu",
				    OBJECT_KEYS_MAX, i);
	if (e.ns > BUDGET_NS)
		return mo_error_set(err, -E2BIG,
				    "JSON: more than is read at once, at byte %zu of %zu: send "
				    "less",
				    i, n);
	return 0;
}
