/* See usage.h. */
#include "cli/usage.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"

#define BETWEEN " | "

/* Where the way behind this one begins; NULL: it is the last. */
static const char *next_way(const char *way)
{
	const char *bar = strstr(way, BETWEEN);

	return bar ? bar + strlen(BETWEEN) : NULL;
}

/* A way without the verb, which may be said again in each: "explain env | explain config". */
static const char *behind_verb(const struct verb *v, const char *way)
{
	size_t n = strlen(v->name);

	return mo_starts_with(way, v->name) && (way[n] == ' ' || !way[n])
		       ? way + n + strspn(way + n, " ")
		       : way;
}

char *usage_ways(const struct verb *v)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (const char *way = v->usage; way; way = next_way(way)) {
		const char *s = behind_verb(v, way);

		mo_buf_printf(&b, "%s%.*s", b.len ? ", " : "", (int)strcspn(s, " "), s);
	}
	return mo_buf_take(&b);
}

/* One word without the brackets of what may be left out, and the dots of what may come again. */
struct word {
	const char *s;
	size_t n;
	bool ends; /* a bracket closes behind it */
};

/* False: the way is over. */
static bool take(const char **at, struct word *ret)
{
	const char *s = *at + strspn(*at, " [");
	size_t n = strcspn(s, " ");

	*at = s + n;
	ret->s = s;
	ret->n = n;
	while (ret->n > 0 && strchr("].", s[ret->n - 1]))
		ret->n--;
	ret->ends = ret->n < n;
	return n > 0 && !(n == 1 && *s == '|');
}

/* The value behind an option, which is taken too; false: it has none. */
static bool take_value(const char **at, const struct word *option, struct word *ret)
{
	const char *s = *at + strspn(*at, " ");

	return !option->ends && *s && !strchr("-[|", *s) && take(at, ret);
}

static bool is(const struct word *w, const char *s, size_t n)
{
	return w->n == n && strncmp(w->s, s, n) == 0;
}

/* Begins with this word, one of several that mean ways of the same form: "env|bind". */
static bool way_is(const char *way, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = way;; s++) {
		size_t one = strcspn(s, "| ");

		if (one == n && strncmp(s, name, n) == 0)
			return true;
		s += one;
		if (*s != '|')
			return false;
	}
}

char *usage_word(const struct verb *v, const char *way, size_t n)
{
	const char *at = behind_verb(v, v->usage);
	struct word w, value;

	for (const char *next = v->usage; way && next; next = next_way(next))
		if (way_is(behind_verb(v, next), way)) {
			at = behind_verb(v, next);
			break;
		}
	while (take(&at, &w)) {
		if (*w.s == '-') {
			(void)take_value(&at, &w, &value);
			continue;
		}
		if (n-- == 0)
			return mo_strndup(w.s, w.n);
	}
	return NULL;
}

char *usage_value(const struct verb *v, const char *option)
{
	struct word w, value;

	for (const char *way = v->usage; way; way = next_way(way)) {
		const char *at = behind_verb(v, way);

		while (take(&at, &w))
			if (w.n > 2 && strncmp(w.s, "--", 2) == 0 &&
			    is(&(struct word){ w.s + 2, w.n - 2, w.ends }, option,
			       strlen(option)) &&
			    take_value(&at, &w, &value))
				return mo_strndup(value.s, value.n);
	}
	return NULL;
}

/* The line is about this word, alone or behind its letter: "  -o, --out FILE  where". */
static bool is_about(const char *line, const char *word)
{
	size_t n = strlen(word);
	const char *s = line + 2;

	if (strncmp(line, "  -", 3) != 0)
		return false;
	if (s[1] != '-' && s[1] && mo_starts_with(s + 2, ", "))
		s += strlen("-o, ");
	return strncmp(s, word, n) == 0 && strchr(" \n", s[n]);
}

const char *usage_about(const char *help, const char *option, char letter, size_t *ret_n)
{
	_cleanup_(mo_freep) char *name = mo_printf("--%s", option);
	const char with_letter[] = { '-', letter, 0 };

	for (const char *line = help; line && *line;) {
		size_t len = strcspn(line, "\n");
		const char *gap = is_about(line, name) || (letter && is_about(line, with_letter))
					  ? strstr(line + 2, "  ")
					  : NULL;

		if (gap && gap < line + len) {
			gap += strspn(gap, " ");
			*ret_n = (size_t)(line + len - gap);
			return gap;
		}
		line += len + (line[len] == '\n');
	}
	return NULL;
}
