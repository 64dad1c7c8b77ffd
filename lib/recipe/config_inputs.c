/* See config_inputs.h. A row is KEY: KIND [if OTHER[=VALUE]] [unless OTHER[=VALUE]]: it asks for
 * nothing where the engine does not read the value, which is while that key is not true (or not
 * the value; of a value with a * behind it the beginning counts), or while it is. Several are
 * joined by `or`:
 *   file       the value is a file or a directory, and nothing else
 *   path       the same where it is surely a path (/x, ./x, ../x): x/y may be a model of a hub
 *   prefixes   words between blanks, weights among them; of each x there is x, x.bin or x.idx
 *              (Megatron's data sets)
 * Addresses (s3://), patterns (*) and a home (~) are the engine's to find; what begins as a flag
 * (-b) or as JSON is no path. Of several words of a command only the first is surely the value
 * of the flag in front of them. */
#include "lib/recipe/config_inputs.h"

#include <string.h>

#include "lib/base/parse.h"

#define MISSING_MAX 20 /* that are reported */

struct pass {
	config_there_fn there;
	void *arg;
	const char *key;
	struct config_missing *items;
	size_t n;
};

static bool kind_is(const char *how, const char *kind)
{
	size_t n = strlen(kind);

	return strncmp(how, kind, n) == 0 && (!how[n] || how[n] == ' ');
}

/* The next word of a row, of so many bytes; 0: there is none. */
static size_t next_word(const char **s, const char **ret)
{
	*ret = *s + strspn(*s, " ");
	*s = *ret + strcspn(*ret, " ");
	return (size_t)(*s - *ret);
}

static bool is_word(const char *word, size_t n, const char *text)
{
	return strlen(text) == n && strncmp(word, text, n) == 0;
}

static bool begins_part(const char *word, size_t n)
{
	return is_word(word, n, "if") || is_word(word, n, "unless");
}

const char *config_input_wrong(const char *how)
{
	static const char expected[] = "expected file, path or prefixes, and behind it nothing, "
				       "`if KEY` or `unless KEY`, several joined by `or`";
	bool kind = kind_is(how, "file") || kind_is(how, "path") || kind_is(how, "prefixes");
	const char *s = how, *word;
	bool wanted = false; /* a condition */
	size_t parts = 0;

	for (size_t n = next_word(&s, &word); kind && (n = next_word(&s, &word));) {
		bool joins = parts && is_word(word, n, "or");

		if (wanted == (begins_part(word, n) || joins))
			return expected;
		parts += begins_part(word, n);
		wanted = !wanted;
	}
	return kind && !wanted ? NULL : expected;
}

static bool surely_path(const char *text)
{
	return *text == '/' || mo_starts_with(text, "./") || mo_starts_with(text, "../");
}

static bool is_plain(const char *path)
{
	return *path && !strchr("~-{", *path) && !strchr(path, '*') && !strstr(path, "://");
}

static void miss(struct pass *l, const struct config_value *v, const char *path)
{
	if (l->n >= MISSING_MAX)
		return;
	struct config_missing *m = MO_GROW(l->items, l->n);

	*m = (struct config_missing){ v, l->key, mo_strdup(path) };
}

static bool prefix_there(const struct pass *l, const char *prefix)
{
	static const char *const ends[] = { "", ".bin", ".idx" };

	for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("%s%s", prefix, ends[i]);

		if (l->there(l->arg, path))
			return true;
	}
	return false;
}

static void check_prefixes(struct pass *l, const struct config_value *v)
{
	const char *s = v->text + strspn(v->text, " \t\n");
	double weight;

	for (; *s; s += strspn(s, " \t\n")) {
		size_t n = strcspn(s, " \t\n");
		_cleanup_(mo_freep) char *word = mo_strndup(s, n);

		if (mo_parse_double(word, &weight) < 0 && is_plain(word) && !prefix_there(l, word))
			miss(l, v, word);
		s += n;
	}
}

static void check_value(struct pass *l, const char *how, const struct config_value *v)
{
	size_t n = v->kind != CONFIG_LIST ? 0 : kind_is(how, "prefixes") ? v->n : MO_MIN(v->n, 1);

	for (size_t i = 0; i < n; i++)
		check_value(l, how, v->items[i].value);
	if (v->kind != CONFIG_TEXT)
		return;
	if (kind_is(how, "prefixes"))
		check_prefixes(l, v);
	else if (is_plain(v->text) && (kind_is(how, "file") || surely_path(v->text)) &&
		 !l->there(l->arg, v->text))
		miss(l, v, v->text);
}

/* KEY, KEY=VALUE or KEY=BEGIN* of n bytes. */
static bool says(const struct experiment *x, const char *condition, size_t n)
{
	_cleanup_(mo_freep) char *key = mo_strndup(condition, n);
	char *want = strchr(key, '=');

	if (want)
		*want++ = 0;
	const struct config_value *v = config_find(x->merged, key);
	size_t length = want ? strlen(want) : 0;

	if (!v || !v->text)
		return false;
	if (length && want[length - 1] == '*')
		return strncmp(v->text, want, length - 1) == 0;
	return mo_streq(v->text, want ? want : "true");
}

/* Does a condition of the row's part hold? `absent`: the answer of a row without such a part. */
static bool any_holds(const struct experiment *x, const char *how, const char *part, bool absent)
{
	bool found = false, inside = false;
	const char *word;

	for (size_t n; (n = next_word(&how, &word));) {
		if (begins_part(word, n)) {
			inside = is_word(word, n, part);
			found |= inside;
		} else if (inside && !is_word(word, n, "or") && says(x, word, n)) {
			return true;
		}
	}
	return !found && absent;
}

/* The engine does not read the value. */
static bool is_off(const struct experiment *x, const char *how)
{
	return !any_holds(x, how, "if", true) || any_holds(x, how, "unless", false);
}

void config_inputs(const struct kv *rows, size_t n_rows, const struct experiment *x,
		   config_there_fn there, void *arg, struct config_missing **ret, size_t *n_ret)
{
	struct pass l = { .there = there, .arg = arg, .items = *ret, .n = *n_ret };

	for (size_t i = 0; i < n_rows; i++) {
		const struct config_value *v = config_find(x->merged, rows[i].key);

		l.key = rows[i].key;
		if (v && !is_off(x, rows[i].value))
			check_value(&l, rows[i].value, v);
	}
	*ret = l.items;
	*n_ret = l.n;
}

void config_missing_free(struct config_missing *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(items[i].path);
	free(items);
}
