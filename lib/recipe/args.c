/* engine.args as flags with values: a mapping {key: value}, or a list of words (--key value,
 * --key=value, key=value). Used by all rules that read what a recipe gives the engine itself. */
#include "lib/recipe/args.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/keys.h"

static void add(const struct rules *k, struct args *ret, char *flag, const char *text,
		const struct ynode *at_flag, const struct ynode *at_value)
{
	struct arg *a = MO_GROW(ret->items, ret->n);

	*a = (struct arg){ .flag = flag,
			   .value = text ? recipe_expand(k->recipe, text, NULL) : NULL,
			   .at_flag = at_flag,
			   .at_value = at_value };
}

/* A word that names a flag: dashes in front (a negative number is a value), or key=value. */
static bool names_flag(const char *word)
{
	size_t n =
		strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
	double number;

	return word[0] == '-' ? word[1] && mo_parse_double(word, &number) < 0 : n && word[n] == '=';
}

/* A value that looks like a flag is one: --key --other=x is read so by the engine when key takes
 * no value. */
static void add_value_flag(const struct rules *k, struct args *ret, const struct ynode *v)
{
	size_t n = strcspn(v->text, "=");

	if (v->text[0] == '-' && !k->engine->args_equals && names_flag(v->text) &&
	    strcspn(v->text, " ") >= n)
		add(k, ret, mo_strndup(v->text, n), v->text[n] ? v->text + n + 1 : NULL, v, v);
}

static void read_map(const struct rules *k, const struct ynode *map, struct args *ret)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *key = map->items[i].key, *v = map->items[i].value;

		if (v->kind != YAML_SCALAR || ynode_is_null(v))
			continue;
		bool off = v->plain && mo_streq(v->text, "false"),
		     bare = off || (v->plain && mo_streq(v->text, "true"));

		add(k, ret, mo_strdup(key->text), bare ? NULL : v->text, key, v);
		ret->items[ret->n - 1].off = off;
		add_value_flag(k, ret, v);
	}
}

static void read_list(const struct rules *k, const struct ynode *list, struct args *ret)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct ynode *v = list->items[i].value;

		if (v->kind != YAML_SCALAR || !names_flag(v->text))
			continue;
		const char *equals = strchr(v->text, '=');
		bool alone = equals || i + 1 == list->n ||
			     list->items[i + 1].value->kind != YAML_SCALAR ||
			     names_flag(list->items[i + 1].value->text);
		const struct ynode *at = alone ? v : list->items[i + 1].value;

		add(k, ret, mo_strndup(v->text, strcspn(v->text, "=")),
		    equals  ? equals + 1
		    : alone ? NULL
			    : at->text,
		    v, at);
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

/* Words that a row or the engine's own command add: "--key value", "--key", "key=value". */
static void read_words(char *const *words, size_t n, const char *origin, const struct ynode *at,
		       struct args *ret)
{
	for (size_t i = 0; i < n; i++) {
		const char *equals = strchr(words[i], '='),
			   *next = i + 1 < n && !names_flag(words[i + 1]) && *words[i + 1] != '{'
					   ? words[i + 1]
					   : NULL;

		if (!names_flag(words[i]))
			continue;
		struct arg *a = MO_GROW(ret->items, ret->n);

		*a = (struct arg){ .flag = mo_strndup(words[i], strcspn(words[i], "=")),
				   .value = equals ? mo_strdup(equals + 1)
					    : next ? mo_strdup(next)
						   : NULL,
				   .at_flag = at,
				   .at_value = at,
				   .origin = mo_strdup(origin) };
	}
}

static void read_rows(const struct rules *k, struct args *ret)
{
	for (size_t i = 0; i < k->engine->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row =
			flag_row(k->recipe, &k->engine->flags[i]);
		const struct ynode *at = ynode_find(k->root, row.path);
		char **words = NULL;
		size_t n = 0;

		flag_row_words(k->recipe, &k->engine->flags[i], &row, &words, &n);
		read_words(words, n, row.path, at, ret);
		for (size_t w = 0; w < n; w++)
			free(words[w]);
		free(words);
	}
}

void args_command(const struct rules *k, struct args *ret)
{
	const struct engine *e = k->engine;
	struct args given;
	size_t split = 0;

	*ret = (struct args){ 0 };
	while (split < e->n_argv && !mo_streq(e->argv[split], "{args}"))
		split++;
	read_words(e->argv, split, "", NULL, ret);
	read_rows(k, ret);
	args_read(k, &given);
	for (size_t i = 0; i < given.n; i++)
		*MO_GROW(ret->items, ret->n) = given.items[i];
	free(given.items);
	if (split < e->n_argv)
		read_words(e->argv + split + 1, e->n_argv - split - 1, "", NULL, ret);
}

void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->items[i].flag);
		free(a->items[i].value);
		free(a->items[i].origin);
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

/* What the engine's reader takes for the same number: 1e-5 is a text to it, 1.0e-5 is not, and
 * 0x10 is 16. NULL: as it is. */
static char *number_as_read(const struct ynode *v)
{
	const char *digits = v->text + strspn(v->text, "+-"),
		   *behind = digits + strspn(digits, "0123456789");
	double n;

	if (v->kind != YAML_SCALAR || !v->plain || strspn(v->text, "+-") > 1 || behind == digits)
		return NULL;
	if ((*behind | 0x20) == 'e' && mo_parse_double(v->text, &n) == 0)
		return mo_printf("%.*s.0%s", (int)(behind - v->text), v->text, behind);
	if (*digits == '0' && behind == digits + 1 && strchr("xo", *behind) && *behind &&
	    condition_number(digits, &n) && n < 0x1p53)
		return mo_printf("%s%.0f", *v->text == '-' ? "-" : "", n);
	return NULL;
}

void args_numbers(const struct ynode *root, const struct engine *e, struct recipe *r)
{
	const struct ynode *args = ynode_find(root, "engine.args");

	for (size_t i = 0; e->experiment && args && i < args->n; i++) {
		const struct ynode *v = args->items[i].value, *key = args->items[i].key;
		char *number = number_as_read(v);

		for (size_t k = 0; number && k < r->engine.n_args; k++) {
			struct kv *arg = &r->engine.args[k];
			char **text = key ? &arg->value : &arg->key;

			if (key ? mo_streq(arg->key, key->text) && arg->value
				: mo_streq(arg->key, v->text))
				mo_str_set(text, number);
		}
		free(number);
	}
}
