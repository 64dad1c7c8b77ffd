/* engine.args as flags with values: a mapping {key: value}, or a list of words (--key value, --key=value, key=value). Used by all rules that look at what a recipe gives the
 * engine itself. */
#include "lib/recipe/args.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/features.h"
#include "lib/recipe/keys.h"

bool flag_same(const char *a, const char *b, size_t n_b)
{
	while (*a == '-')
		a++;
	while (n_b && *b == '-') {
		b++;
		n_b--;
	}
	for (; n_b && *a && (*a == *b || (strchr("-_", *a) && strchr("-_", *b))); a++, b++)
		n_b--;
	return !n_b && (!*a || *a == '=');
}

static void add(const struct rules *k, struct args *ret, char *flag, const char *text, const struct ynode *at_flag, const struct ynode *at_value)
{
	struct arg *a = MO_GROW(ret->items, ret->n);

	*a = (struct arg){ .flag = flag, .value = text ? recipe_expand(k->recipe, text, NULL) : NULL, .at_flag = at_flag, .at_value = at_value };
}

static void read_map(const struct rules *k, const struct ynode *map, struct args *ret)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *key = map->items[i].key, *v = map->items[i].value;

		if (v->kind != YAML_SCALAR || ynode_is_null(v))
			continue;
		bool off = v->plain && mo_streq(v->text, "false"), bare = off || (v->plain && mo_streq(v->text, "true"));

		add(k, ret, mo_strdup(key->text), bare ? NULL : v->text, key, v);
		ret->items[ret->n - 1].off = off;
	}
}

/* A word that names a flag: dashes in front (a negative number is a value), or key=value. */
static bool names_flag(const char *word)
{
	size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
	double number;

	return word[0] == '-' ? word[1] && mo_parse_double(word, &number) < 0 : n && word[n] == '=';
}

static void read_list(const struct rules *k, const struct ynode *list, struct args *ret)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct ynode *v = list->items[i].value, *next = i + 1 < list->n ? list->items[i + 1].value : NULL;

		if (v->kind != YAML_SCALAR || !names_flag(v->text))
			continue;
		const char *equals = strchr(v->text, '=');

		if (equals || !next || next->kind != YAML_SCALAR || names_flag(next->text))
			next = NULL;
		add(k, ret, mo_strndup(v->text, strcspn(v->text, "=")), equals ? equals + 1 : next ? next->text : NULL, v, next ? next : v);
	}
}

void args_read(const struct rules *k, struct args *ret)
{
	const struct ynode *args = ynode_find(k->root, "engine.args");

	*ret = (struct args){ 0 };
	if (args && args->kind == YAML_MAP)
		read_map(k, args, ret);
	else if (args && args->kind == YAML_LIST)
		read_list(k, args, ret);
}

void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->items[i].flag);
		free(a->items[i].value);
	}
	free(a->items);
	*a = (struct args){ 0 };
}

const struct arg *args_find(const struct args *a, const char *flag)
{
	for (size_t i = a->n; i-- > 0;)
		if (flag_same(a->items[i].flag, flag, strlen(flag)))
			return &a->items[i];
	return NULL;
}

const char *arg_text(const struct arg *a)
{
	return a->off ? "false" : a->value ? a->value : "true";
}

static bool word_holds(const char *want, const char *value)
{
	double limit, have;

	if (mo_streq(want, "given"))
		return feature_asks(value);
	if (*want == '>' || *want == '<') {
		if (mo_parse_double(want + 1, &limit) < 0 || mo_parse_double(value, &have) < 0)
			return false;
		return *want == '>' ? have > limit : have < limit;
	}
	return mo_streq(want, "true") || mo_streq(want, "false") ? strcasecmp(want, value) == 0 : mo_streq(want, value);
}

bool condition_holds(const char *want, const char *value)
{
	if (value && *want == '!')
		return !condition_holds(want + 1, value);
	for (const char *s = want; value && *s;) {
		size_t n = strcspn(s, "|");
		_cleanup_(mo_freep) char *word = mo_strndup(s, n);

		if (word_holds(word, value))
			return true;
		s += n + (s[n] == '|');
	}
	return false;
}
