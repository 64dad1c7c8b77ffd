/* Decoding of sysfs and proc texts (see sysfs_text.h). */
#include "agent/core/sysfs_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/idset.h"
#include "lib/base/parse.h"

static const char *next_line(const char *p) {
	p += strcspn(p, "\n");
	return *p ? p + 1 : p;
}

static char *trimmed(const char *s, size_t n) {
	while (n > 0 && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	return n ? mo_strndup(s, n) : NULL;
}

/* Digits at s in base 10 or 16; *ret_n: how many characters were taken, 0 = none. */
static int64_t digits(const char *s, bool hex, size_t *ret_n) {
	int64_t v = 0;
	size_t n = 0;
	bool fits = true;

	for (; hex ? isxdigit((unsigned char)s[n]) : isdigit((unsigned char)s[n]); n++) {
		int d = isdigit((unsigned char)s[n]) ? s[n] - '0' : tolower((unsigned char)s[n]) - 'a' + 10;
		fits = fits && !__builtin_mul_overflow(v, (int64_t)(hex ? 16 : 10), &v) && !__builtin_add_overflow(v, (int64_t)d, &v);
	}
	*ret_n = n;
	return n && fits ? v : MO_NONE;
}

/* A number at s: sign, decimal or hexadecimal. *ret_end: behind it. */
static int64_t number(const char *s, const char **ret_end) {
	bool minus = *s == '-', hex = false;
	size_t n;

	s += minus;
	hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	s += hex ? 2 : 0;
	int64_t v = digits(s, hex, &n);
	*ret_end = s + n;
	return v != MO_NONE && minus ? -v : v;
}

int64_t text_int(const char *s) {
	const char *end;

	s += strspn(s, " \t\n");
	int64_t v = number(s, &end);
	return end[strspn(end, " \t\n")] ? MO_NONE : v;
}

/* Start of the value of `key`, NULL when no line begins with it. A key ends where blanks or a colon begin. */
static const char *value_of(const char *s, const char *key) {
	size_t n = strlen(key);

	for (const char *p = s; *p; p = next_line(p)) {
		const char *q = p + strspn(p, " \t");
		if (strncmp(q, key, n) == 0 && q[n] && strchr(" \t:", q[n]))
			return q + n + strspn(q + n, " \t:");
	}
	return NULL;
}

int64_t text_key_int(const char *s, const char *key) {
	const char *v = value_of(s, key), *end;
	return v ? number(v, &end) : MO_NONE;
}

char *text_key(const char *s, const char *key) {
	const char *v = value_of(s, key);
	return v ? trimmed(v, strcspn(v, "\n")) : NULL;
}

char *text_line(const char *s) {
	return trimmed(s, strcspn(s, "\n"));
}

char *text_state(const char *s) {
	size_t n;

	s += strspn(s, " \t");
	digits(s, false, &n);
	if (n && s[n] == ':')
		s += n + 1;
	return text_line(s);
}

char *text_chosen(const char *s) {
	const char *open = strchr(s, '['), *close = open ? strchr(open, ']') : NULL;
	return close ? trimmed(open + 1, (size_t)(close - open - 1)) : NULL;
}

double text_leading(const char *s) {
	char word[32];
	double v;

	s += strspn(s, " \t");
	size_t n = strspn(s, "0123456789.");
	if (n == 0 || n >= sizeof(word))
		return MO_NONE_F;
	memcpy(word, s, n);
	word[n] = 0;
	return mo_parse_double(word, &v) == 0 ? v : MO_NONE_F;
}

int64_t text_dpm_mhz(const char *s) {
	for (const char *p = s; *p; p = next_line(p)) {
		size_t n = strcspn(p, "\n");
		const char *colon = memchr(p, ':', n), *unit;
		if (!colon || !memchr(p, '*', n))
			continue;
		int64_t mhz = number(colon + 1 + strspn(colon + 1, " \t"), &unit);
		return strncasecmp(unit, "mhz", 3) == 0 ? mhz : MO_NONE;
	}
	return MO_NONE;
}

int64_t text_list_count(const char *s) {
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	_cleanup_(mo_freep) char *line = text_line(s);

	if (!line)
		return 0;
	return mo_idset_parse(line, &set) < 0 ? MO_NONE : (int64_t)mo_idset_count(&set);
}

char *text_option(const char *cmdline, const char *name) {
	size_t n = strlen(name);

	for (const char *p = cmdline + strspn(cmdline, " \t\n"); *p; p += strcspn(p, " \t\n"), p += strspn(p, " \t\n"))
		if (strncmp(p, name, n) == 0 && p[n] == '=')
			return trimmed(p + n + 1, strcspn(p + n + 1, " \t\n"));
	return NULL;
}

struct bad_pages text_bad_pages(const char *s) {
	struct bad_pages b = { 0 };

	for (const char *p = s; *p; p = next_line(p)) {
		_cleanup_(mo_freep) char *line = text_line(p);
		const char *last = line ? strrchr(line, ':') : NULL;
		if (!last || !mo_starts_with(line, "0x"))
			continue;
		switch (last[1 + strspn(last + 1, " \t")]) {
		case 'R': b.retired++; break;
		case 'P': b.pending++; break;
		case 'F': b.failed++; break;
		default: break;
		}
	}
	return b;
}

static int64_t event_count(const char *s, const char *name) {
	_cleanup_(mo_freep) char *line = text_key(s, name);
	return line && mo_starts_with(line, "count:") ? text_key_int(line, "count") : MO_NONE;
}

struct ras_events text_ras_events(const char *s) {
	return (struct ras_events){ event_count(s, "Fatal Error"), event_count(s, "Poison Creation"), event_count(s, "Poison Consumption") };
}

double text_limit(const char *s, const char *row) {
	const char *v = value_of(s, row), *end;

	if (!v)
		return MO_NONE_F;
	if (mo_starts_with(v, "unlimited"))
		return TEXT_UNLIMITED;
	int64_t n = number(v, &end);
	return n == MO_NONE ? MO_NONE_F : (double)n;
}

int64_t text_mount_size(const char *s, const char *where) {
	for (const char *p = s; *p; p = next_line(p)) {
		_cleanup_(mo_freep) char *line = text_line(p);
		const char *space = line ? strchr(line, ' ') : NULL;
		size_t n = strlen(where);
		if (!space || strncmp(space + 1, where, n) != 0 || space[1 + n] != ' ')
			continue;
		const char *size = strstr(line, "size="), *end;
		if (!size)
			return MO_NONE;
		int64_t v = number(size + 5, &end), unit = *end == 'k' ? 1024 : *end == 'm' ? 1024 * 1024 : *end == 'g' ? 1024LL * 1024 * 1024 : 1;
		return v == MO_NONE || __builtin_mul_overflow(v, unit, &v) ? MO_NONE : v;
	}
	return MO_NONE;
}

bool text_bdf(const char *s, char ret[static 16]) {
	size_t n[4];
	int64_t v[4];
	static const char after[] = { ':', ':', '.', 0 };
	static const struct { size_t min, max; int64_t limit; } part[] = { { 4, 8, 0xfffffff }, { 2, 2, 0xff }, { 2, 2, 0x1f }, { 1, 1, 7 } };

	for (size_t i = 0; i < 4; i++) {
		v[i] = digits(s, true, &n[i]);
		if (n[i] < part[i].min || n[i] > part[i].max || v[i] > part[i].limit || s[n[i]] != after[i])
			return false;
		s += n[i] + (after[i] ? 1 : 0);
	}
	snprintf(ret, 16, "%04x:%02x:%02x.%x", (unsigned)v[0], (unsigned)v[1], (unsigned)v[2], (unsigned)v[3]);
	return true;
}
