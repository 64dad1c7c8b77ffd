/* See pairs.h. Untrusted text: one pass over it, no recursion; a key is never longer than
 * KEY_MAX. */
#include "agent/core/text/pairs.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/base/parse.h"

#define KEY_MAX 96
#define NUMBER_MAX 64

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}
static bool digit(char c)
{
	return c >= '0' && c <= '9';
}
static bool letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static bool word(char c)
{
	return digit(c) || letter(c) || c == '_';
}

static struct text trim(struct text t)
{
	while (t.n && blank(t.s[0])) {
		t.s++;
		t.n--;
	}
	while (t.n && blank(t.s[t.n - 1]))
		t.n--;
	return t;
}

/* Where a key ends: the first ':' or '=' that a value follows; t.n when there is none. "time:
 * 12:30" ends at the first. */
static size_t key_end(struct text t)
{
	for (size_t i = 0; i < t.n; i++)
		if (t.s[i] == ':' || t.s[i] == '=')
			return i;
	return t.n;
}

static bool same(struct text a, struct text b)
{
	return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* Does the text end in the key, as words of its own? */
static bool ends_in(struct text t, struct text key)
{
	return t.n >= key.n && memcmp(t.s + t.n - key.n, key.s, key.n) == 0 &&
	       (t.n == key.n || !word(t.s[t.n - key.n - 1]) || !word(key.s[0]));
}

static void keep(struct text key, struct text value, bool exact, const struct text *keys,
		 size_t n_keys, struct text *found)
{
	for (size_t i = 0; i < n_keys; i++)
		if (exact ? same(key, keys[i]) : ends_in(key, keys[i])) {
			if (!found[i].s)
				found[i] = value;
			return;
		}
}

static void separated(struct text record, struct text separator, const struct text *keys,
		      size_t n_keys, struct text *found)
{
	while (record.n) {
		const char *at = memmem(record.s, record.n, separator.s, separator.n);
		struct text pair = { record.s, at ? (size_t)(at - record.s) : record.n };
		size_t end = key_end(pair), used = at ? pair.n + separator.n : record.n;

		if (end < pair.n)
			keep(trim((struct text){ pair.s, end }),
			     trim((struct text){ pair.s + end + 1, pair.n - end - 1 }), true, keys,
			     n_keys, found);
		record.s += used;
		record.n -= used;
	}
}

static void spaced(struct text record, const struct text *keys, size_t n_keys, struct text *found)
{
	while (record.n) {
		size_t end = key_end(record), value, stop;

		if (end == record.n)
			return;
		for (value = end + 1; value < record.n && blank(record.s[value]); value++)
			continue;
		for (stop = value; stop < record.n && !blank(record.s[stop]); stop++)
			continue;
		size_t from = end > KEY_MAX ? end - KEY_MAX : 0;
		keep(trim((struct text){ record.s + from, end - from }),
		     (struct text){ record.s + value, stop - value }, false, keys, n_keys, found);
		record.s += stop;
		record.n -= stop;
	}
}

static bool joins(char c)
{
	return blank(c) || c == ':' || c == '=';
}

/* Is the word that ends before s[end] one of the keys? Words of letters, digits and '_' only:
 * "val/loss" ends in loss, "lm_loss" does not. */
static void word_key(struct text record, size_t from, size_t end, const struct text *keys,
		     size_t n_keys, struct text *found)
{
	size_t value = end, stop;

	for (size_t i = 0; i < n_keys; i++) {
		if (keys[i].n != end - from || found[i].s ||
		    (record.s[from] | 0x20) != (keys[i].s[0] | 0x20) ||
		    strncasecmp(record.s + from, keys[i].s, keys[i].n) != 0)
			continue;
		while (value < record.n && joins(record.s[value]))
			value++;
		for (stop = value; stop < record.n && !blank(record.s[stop]); stop++)
			continue;
		if (value > end && stop > value)
			found[i] = (struct text){ record.s + value, stop - value };
		return;
	}
}

static void worded(struct text record, const struct text *keys, size_t n_keys, struct text *found)
{
	for (size_t i = 0; i < record.n; i++) {
		size_t from = i;

		while (i < record.n && word(record.s[i]))
			i++;
		if (i > from && i < record.n && joins(record.s[i]))
			word_key(record, from, i, keys, n_keys, found);
	}
}

void pairs_find(struct text record, struct text separator, const struct text *keys, size_t n_keys,
		struct text *found)
{
	for (size_t i = 0; i < n_keys; i++)
		found[i] = (struct text){ NULL, 0 };
	if (separator.n == 1 && separator.s[0] == ' ')
		worded(record, keys, n_keys, found);
	else if (separator.n)
		separated(record, separator, keys, n_keys, found);
	else
		spaced(record, keys, n_keys, found);
}

/* A comma between thousands: three digits behind it, and no fourth. */
static bool thousands(const char *s, size_t n)
{
	return n >= 4 && digit(s[1]) && digit(s[2]) && digit(s[3]) && (n == 4 || !digit(s[4]));
}

/* Copies the number without its thousands separators. Returns how much of t it took, 0 = none. */
static size_t take_number(struct text t, char out[static NUMBER_MAX])
{
	static const char *const words[] = { "infinity", "inf", "nan" };
	size_t i = 0, k = 0;
	bool point = false, digits = false;

	if (i < t.n && (t.s[i] == '+' || t.s[i] == '-')) {
		if (t.s[i] == '-')
			out[k++] = '-';
		i++;
	}
	for (size_t w = 0; i < t.n && letter(t.s[i]) && w < ELEMENTSOF(words); w++) {
		size_t n = strlen(words[w]);

		if (t.n - i >= n && strncasecmp(t.s + i, words[w], n) == 0 &&
		    (t.n - i == n || !word(t.s[i + n]))) {
			/* a NaN has no sign worth keeping */
			memcpy(out + (w == 2 ? 0 : k), w == 2 ? "nan" : "inf", 4);
			return i + n;
		}
	}
	for (; i < t.n && k + 1 < NUMBER_MAX; i++) {
		char c = t.s[i];

		if (digit(c)) {
			digits = true;
		} else if (c == '.' && !point) {
			point = true;
		} else if ((c == ',' && !point && digits && thousands(t.s + i, t.n - i)) ||
			   (c == '_' && digits && i + 1 < t.n && digit(t.s[i + 1]))) {
			continue;
		} else {
			break;
		}
		out[k++] = c;
	}
	if (!digits || k + 1 >= NUMBER_MAX)
		return 0;
	size_t e = i + 1;
	if (i < t.n && (t.s[i] == 'e' || t.s[i] == 'E')) {
		e += e < t.n && (t.s[e] == '+' || t.s[e] == '-');
		if (e < t.n && digit(t.s[e]))
			for (bool first = true;
			     i < t.n && k + 1 < NUMBER_MAX && (first || i <= e || digit(t.s[i]));
			     first = false)
				out[k++] = t.s[i++];
	}
	out[k] = 0;
	return i;
}

static const char *const units[] = { "%", "GiB", "GB", "MiB", "MB", "KiB", "TiB" };

bool number_read(struct text t, bool whole, struct number *ret)
{
	char text[NUMBER_MAX];
	size_t unit, n;

	t = trim(t);
	if (!whole && t.n && (t.s[0] == '[' || t.s[0] == '(')) {
		t.s++;
		t.n--;
	}
	n = take_number(t, text);
	int r = n ? mo_parse_double(text, &ret->v) : -EINVAL;
	if (r == -ERANGE)
		/* "1e999": a loss that blew up must be seen */
		ret->v = text[0] == '-' ? -INFINITY : INFINITY;
	else if (r < 0)
		return false;
	ret->unit[0] = 0;
	unit = n + (n < t.n && t.s[n] == ' ');
	/* how units begin; most numbers have none */
	bool may = unit < t.n && strchr("%GMKT", t.s[unit]) && t.s[unit];
	for (size_t i = 0; may && i < ELEMENTSOF(units); i++) {
		size_t k = strlen(units[i]);

		if (t.n - unit < k || memcmp(t.s + unit, units[i], k) != 0 ||
		    (t.n - unit > k && word(t.s[unit + k])))
			continue;
		memcpy(ret->unit, units[i], k + 1);
		n = unit + k;
		break;
	}
	return !whole || n == t.n;
}
