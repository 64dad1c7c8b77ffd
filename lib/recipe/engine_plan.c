/* Rows of `plan:` (engine_plan.h): "TRAIT: KEY|KEY|=VALUE if CONDITIONS" takes a value over,
 * "TRAIT=VALUE: CONDITIONS or CONDITIONS" translates one. */
#include "lib/recipe/engine_plan.h"

#include <assert.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/model/engine.h"
#include "lib/model/traits.h"

#define LIST_SIGNS " \t\n,;[](){}'\""

/* ---- what the engine is given ---- */

/* Is the word this flag? Dashes and underscores are alike. *ret_value: what stands behind '=',
 * NULL without. */
static bool names(const char *word, const char *name, const char **ret_value)
{
	const char *key = word ? word + strspn(word, "-") : "";

	while (*key && *name && (*key == '-' ? '_' : *key) == *name) {
		key++;
		name++;
	}
	*ret_value = *key == '=' ? key + 1 : NULL;
	return !*name && (!*key || *key == '=');
}

/* By this flag in engine.args, "true" without a value, else by its own configuration; NULL =
 * nothing. A list has a flag's value behind it as a word of its own. The last one counts. */
static const char *flag(const struct recipe_engine *e, const char *name, bool files)
{
	const char *ret = NULL, *value;

	for (size_t i = 0; i < e->n_args; i++) {
		const char *next = e->args_list && i + 1 < e->n_args ? e->args[i + 1].key : NULL;

		if (names(e->args[i].key, name, &value))
			ret = value                  ? value
			      : e->args[i].value     ? e->args[i].value
			      : next && *next != '-' ? next
						     : "true";
	}
	for (size_t i = 0; files && i < e->n_own && !ret; i++)
		if (names(e->own[i].key, name, &value))
			ret = e->own[i].value;
	return ret;
}

/* ---- conditions: "A=x|y B!=z C>1 D" all hold, " or " stands between alternatives ---- */

struct pass {
	const struct recipe_engine *engine;
	bool files;
};

bool engine_plan_is(const char *said, const char *want, size_t n)
{
	if (strlen(said) == n && strncmp(said, want, n) == 0)
		return true;
	for (const char *s = said + strspn(said, LIST_SIGNS); *s; s += strspn(s, LIST_SIGNS)) {
		size_t len = strcspn(s, LIST_SIGNS);

		if (len == n && strncmp(s, want, n) == 0)
			return true;
		s += len;
	}
	return false;
}

/* "x|y", "null": it is not said. */
static bool is_any(const char *said, const char *want)
{
	if (mo_streq(want, "null") || !said)
		return !said && mo_streq(want, "null");
	for (const char *s = want;; s++) {
		size_t n = strcspn(s, "|");

		if (engine_plan_is(said, s, n))
			return true;
		s += n;
		if (!*s)
			return false;
	}
}

static bool above(const char *said, const char *want)
{
	double a, b;

	return said && mo_parse_double(said, &a) == 0 && mo_parse_double(want, &b) == 0 && a > b;
}

static bool one_holds(const struct pass *l, const char *condition)
{
	size_t end = strcspn(condition, PLAN_SIGNS);
	_cleanup_(mo_freep) char *key = mo_strndup(condition, end);
	const char *said = flag(l->engine, key, l->files), *want = condition + end;

	return !*want         ? said != NULL
	       : *want == '>' ? above(said, want + 1)
	       : *want == '!' ? !is_any(said, want + 2)
			      : is_any(said, want + 1);
}

static bool all_hold(const struct pass *l, const char *conditions, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t len = MO_MIN(strcspn(conditions + at, " "), n - at);
		_cleanup_(mo_freep) char *one = mo_strndup(conditions + at, len);

		if (len && !one_holds(l, one))
			return false;
		at += len + 1;
	}
	return true;
}

static bool any_holds(const struct pass *l, const char *conditions)
{
	for (const char *s = conditions;;) {
		const char *next = strstr(s, PLAN_OR);

		if (all_hold(l, s, next ? (size_t)(next - s) : strlen(s)))
			return true;
		if (!next)
			return false;
		s = next + strlen(PLAN_OR);
	}
}

/* ---- values ---- */

#define AT(to, t, type) ((type *)((char *)(to) + (t)->offset))

static bool put_number(const struct trait *t, const char *text, struct engine_traits *to)
{
	double share;
	int64_t n;

	if (t->kind == TRAIT_NUMBER) {
		if (mo_parse_i64(text, t->least, t->most, &n) < 0)
			return false;
		if (to)
			*AT(to, t, int64_t) = n;
		return true;
	}
	if (mo_parse_double(text, &share) < 0 || !(share >= 0 && share <= 1))
		return false;
	if (to)
		*AT(to, t, double) = share;
	return true;
}

static bool put_word(const struct trait *t, const char *text, struct engine_traits *to)
{
	for (size_t i = 0; t->words[i]; i++)
		if (strcasecmp(t->words[i], text) == 0) {
			if (to)
				mo_str_set(AT(to, t, char *), t->words[i]);
			return true;
		}
	return false;
}

static bool has(char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(list[i], word))
			return true;
	return false;
}

/* Each of the words, which a row gives as a|b and a file as a list. */
static bool put_set(const struct trait *t, const char *text, struct engine_traits *to)
{
	size_t none = 0, *n = to ? (size_t *)((char *)to + t->count_offset) : &none;
	bool all = *text;

	for (const char *s = text + strspn(text, "|" LIST_SIGNS); *s;
	     s += strspn(s, "|" LIST_SIGNS)) {
		size_t len = strcspn(s, "|" LIST_SIGNS);
		_cleanup_(mo_freep) char *word = mo_strndup(s, len);
		bool known = mo_enum_parse(t->words, trait_words(t), word) >= 0;

		all &= known;
		if (to && known && !has(*AT(to, t, char **), *n, word))
			mo_strs_add(AT(to, t, char **), n, word);
		s += len;
	}
	return all;
}

bool engine_plan_put(const struct trait *t, const char *text, struct engine_traits *to)
{
	switch (t->kind) {
	case TRAIT_FLAG:
		if (!mo_streq(text, "true") && !mo_streq(text, "false"))
			return false;
		if (to)
			*AT(to, t, bool) = mo_streq(text, "true");
		return true;
	case TRAIT_NUMBER:
	case TRAIT_SHARE: return put_number(t, text, to);
	case TRAIT_WORD: return put_word(t, text, to);
	case TRAIT_SET: return put_set(t, text, to);
	case TRAIT_IDS:
		if (!strpbrk(text, "0123456789"))
			return false;
		if (to)
			mo_str_set(AT(to, t, char *), text);
		return true;
	}
	return false;
}

/* ---- rows ---- */

const struct trait *engine_plan_trait(const char *key)
{
	_cleanup_(mo_freep) char *name = mo_strndup(key, strcspn(key, "="));

	return trait_find(name);
}

bool engine_plan_is_constant(const struct trait *t, const char *text)
{
	return t->kind == TRAIT_FLAG && engine_plan_put(t, text, NULL);
}

/* "KEY|KEY|=VALUE": the first whose value is one of the trait. */
static bool take_first(const struct pass *l, const struct trait *t, const char *keys,
		       struct engine_traits *to)
{
	for (const char *s = keys; *s;) {
		size_t n = *s == '=' ? strlen(s) : strcspn(s, "|");
		_cleanup_(mo_freep) char *key = mo_strndup(s, n);
		const char *said = *key == '=' ? key + 1 : flag(l->engine, key, l->files);

		if (said && engine_plan_put(t, said, to))
			return true;
		s += n + (s[n] == '|');
	}
	return false;
}

/* Does the row say anything of the trait? */
static bool row_says(const struct pass *l, const struct trait *t, const struct kv *row,
		     struct engine_traits *to)
{
	const char *value = strchr(row->key, '=');

	if (value || t->kind == TRAIT_FLAG) {
		bool constant = !value && engine_plan_is_constant(t, row->value);

		return (constant || any_holds(l, row->value)) &&
		       engine_plan_put(t,
				       constant ? row->value
				       : value  ? value + 1
						: "true",
				       to);
	}
	const char *on = strstr(row->value, PLAN_IF);
	_cleanup_(mo_freep) char *keys =
		mo_strndup(row->value, on ? (size_t)(on - row->value) : strlen(row->value));

	return (!on || any_holds(l, on + strlen(PLAN_IF))) && take_first(l, t, keys, to);
}

void engine_plan_apply(const struct engine *e, struct recipe *r)
{
	struct engine_traits *to = mo_desc_new(&engine_traits_desc);
	uint64_t said = 0;

	assert(n_traits <= 64);
	for (size_t i = 0; e->checks && i < e->checks->n_plan; i++) {
		const struct kv *row = &e->checks->plan[i];
		const struct trait *t = engine_plan_trait(row->key);
		struct pass l = { &r->engine, !t || !t->above || recipe_leaves(r, t->above) };
		uint64_t bit = t ? 1ULL << (t - traits) : 0;

		if (t && (t->kind == TRAIT_SET || !(said & bit)) && row_says(&l, t, row, to))
			said |= bit;
	}
	mo_desc_free(&engine_traits_desc, r->engine.traits);
	r->engine.traits = to;
}
