/* See config_files.h. */
#include "lib/recipe/config_files.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/config_toml.h"
#include "lib/recipe/experiment_file.h"
#include "lib/recipe/experiment_scalar.h"

/* A word as argparse would see a number; else a text. */
static struct config_value *word_value(const char *text, struct config_place place)
{
	struct config_value *number = config_number(text, place);

	if (!strcasecmp(text, "true") || !strcasecmp(text, "false"))
		return config_value_new(CONFIG_BOOL, strcasecmp(text, "true") ? "false" : "true",
					place);
	return number ? number : config_value_new(CONFIG_TEXT, text, place);
}

/* Puts the value at "a.b.c"; what is no map on the way is replaced by one. */
static void put(struct config_value *map, const char *path, struct config_value *v)
{
	for (size_t n = strcspn(path, "."); path[n]; path += n + 1, n = strcspn(path, ".")) {
		_cleanup_(mo_freep) char *key = mo_strndup(path, n);
		struct config_value *below = config_get(map, key);

		if (!below || below->kind != CONFIG_MAP)
			below = config_put(map, key, config_value_new(CONFIG_MAP, NULL, v->place))
					->value;
		map = below;
	}
	config_put(map, path, v);
}

/* The key that a flag is: "flags" without dashes in front and `_` inside, "dotted" without those
 * in front, "kept" as it is. */
static char *key_of(const char *how, const char *word, size_t n)
{
	size_t dashes = mo_streq(how, "kept") ? 0 : strspn(word, "-");
	char *key = mo_strndup(word + dashes, n - dashes);

	for (char *s = key; mo_streq(how, "flags") && *s; s++)
		if (*s == '-')
			*s = '_';
	return key;
}

/* A bare flag is true; --a.no_b of a dotted one says that a.b is false. */
static void put_bare(const char *how, struct config_value *map, const char *key,
		     struct config_place place)
{
	const char *dot = strrchr(key, '.'), *last = dot ? dot + 1 : key;
	bool no = mo_streq(how, "dotted") &&
		  (mo_starts_with(last, "no_") || mo_starts_with(last, "no-"));
	_cleanup_(mo_freep) char *path =
		no ? mo_printf("%.*s%s", (int)(last - key), key, last + 3) : mo_strdup(key);

	put(map, path, config_value_new(CONFIG_BOOL, no ? "false" : "true", place));
}

static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] == '-' && word[2];
}

static size_t put_flag(const char *how, char *const *words, size_t n, size_t at,
		       struct config_value *map)
{
	const struct config_place place = { -1, 0, (int64_t)at };
	const char *equals = strchr(words[at], '=');
	_cleanup_(mo_freep) char *key =
		key_of(how, words[at], equals ? (size_t)(equals - words[at]) : strlen(words[at]));
	size_t end = at + 1;

	if (equals) {
		put(map, key, word_value(equals + 1, place));
		return end;
	}
	while (end < n && !is_flag(words[end]))
		end++;
	if (end == at + 1) {
		put_bare(how, map, key, place);
	} else if (end == at + 2) {
		put(map, key, word_value(words[at + 1], place));
	} else {
		struct config_value *list = config_value_new(CONFIG_LIST, NULL, place);

		for (size_t i = at + 1; i < end; i++)
			config_append(list, word_value(words[i], place));
		put(map, key, list);
	}
	return end;
}

static void put_equals(const char *word, size_t at, struct config_value *map)
{
	const char *equals = strchr(word, '=');
	_cleanup_(mo_freep) char *key = equals ? mo_strndup(word, (size_t)(equals - word)) : NULL;

	if (equals && equals > word && *word != '-')
		put(map, key, word_value(equals + 1, (struct config_place){ -1, 0, (int64_t)at }));
}

/* NULL with err: a key of more parts than maps may be in each other. */
static struct config_value *words_of(const struct engine *e, char *const *words, size_t n,
				     struct mo_error *err)
{
	_cleanup_(config_value_freep) struct config_value *map =
		config_value_new(CONFIG_MAP, NULL, (struct config_place){ -1, 0, -1 });

	for (size_t i = 0; i < n;) {
		bool equals = mo_streq(e->config_words, "equals");
		bool key =
			equals ? strchr(words[i], '=') && *words[i] != '-' : is_flag(words[i]) && i;

		if (key && config_parts(words[i], strcspn(words[i], "=")) > CONFIG_DEPTH_MAX) {
			mo_error_set(err, -EINVAL, "the word %.100s: more than %d parts", words[i],
				     CONFIG_DEPTH_MAX);
			return NULL;
		}
		if (equals)
			put_equals(words[i], i, map);
		else if (key) {
			i = put_flag(e->config_words, words, n, i, map);
			continue;
		}
		i++;
	}
	return TAKE_PTR(map);
}

/* Reads a file into the result; a file that is not here is said and left out. */
static int load(struct experiment_reader *r, const char *path, const char *format,
		const char *inherits)
{
	const struct config_place command = { -1, 0, -1 };
	int e = 0;
	_cleanup_(mo_freep) char *whole = experiment_path(NULL, path);
	_cleanup_(config_value_freep) struct config_value *v =
		experiment_load_as(r, whole, format, command, &e);

	if (!v && e < 0 && e != -EINVAL) {
		_cleanup_(mo_freep) char *why =
			mo_printf("%s: %s", whole, e == -ENOENT ? "no such file" : strerror(-e));

		mo_error_done(r->err);
		mo_strs_add(&r->out->unread, &r->out->n_unread, why);
		return 0;
	}
	if (!v)
		return -EINVAL;
	const struct config_value *base = inherits ? config_get(v, inherits) : NULL;

	if (base && base->kind == CONFIG_TEXT && *base->text) {
		_cleanup_(mo_freep) char *below = experiment_path(whole, base->text);

		if (r->depth >= ELEMENTSOF(r->stack))
			return experiment_error(r, base->place, NULL, "%s: too many files",
						inherits);
		for (size_t i = 0; i < r->out->n_files; i++)
			if (mo_streq(r->out->files[i], below))
				return experiment_error(r, base->place, "remove one of them",
							"%s: %s: the files name each other in a "
							"circle",
							inherits, below);
		r->depth++;
		int k = load(r, below, format, inherits);

		r->depth--;
		if (k < 0)
			return k;
	}
	config_merge(r->out->merged, TAKE_PTR(v));
	return 0;
}

/* The file behind a flag, or behind its `=`; of "{entry}" the entry itself. */
static const char *named_by(const char *flag, const char *entry, char *const *words, size_t n)
{
	size_t len = strlen(flag);

	for (size_t i = 0; i < n; i++) {
		if (mo_streq(flag, "{entry}") && entry && mo_streq(words[i], entry))
			return words[i];
		if (strncmp(words[i], flag, len) != 0)
			continue;
		if (words[i][len] == '=')
			return words[i] + len + 1;
		if (!words[i][len] && i + 1 < n && !is_flag(words[i + 1]))
			return words[i + 1];
	}
	return NULL;
}

/* "yaml base_config models/{model_name}.yml": how the file is written, the key by which it names
 * one below it, and a file beside it. */
static int load_row(struct experiment_reader *r, const struct kv *row, const char *path,
		    const struct config_value *given)
{
	size_t n = strcspn(row->value, " ");
	const char *rest = row->value + n + (row->value[n] == ' ');
	size_t m = strcspn(rest, " ");
	_cleanup_(mo_freep) char *format = mo_strndup(row->value, n),
				 *inherits = mo_strndup(rest, m);
	const char *beside = rest[m] ? rest + m + 1 : NULL,
		   *brace = beside ? strchr(beside, '{') : NULL;
	int k = load(r, path, format, *inherits ? inherits : NULL);

	if (k < 0 || !brace)
		return k;
	_cleanup_(mo_freep) char *key = mo_strndup(brace + 1, strcspn(brace + 1, "}"));
	const struct config_value *v = config_find(given, key);

	v = v ? v : config_find(r->out->merged, key);
	if (!v || v->kind != CONFIG_TEXT || !*v->text || mo_streq(v->text, "default") ||
	    strchr(v->text, '/'))
		return 0;
	_cleanup_(mo_freep) char *name = mo_printf("%.*s%s%s", (int)(brace - beside), beside,
						   v->text, brace + strcspn(brace, "}") + 1);
	_cleanup_(mo_freep) char *file = experiment_path(path, name);

	return load(r, file, format, NULL);
}

/* M_STEPS of the key steps (caller frees). */
static char *variable_of(const char *prefix, const char *key)
{
	char *name = mo_printf("%s%s", prefix, key);

	for (char *s = name; *s; s++)
		if (*s >= 'a' && *s <= 'z')
			*s = (char)(*s - 'a' + 'A');
	return name;
}

/* MaxText takes each of its keys from the environment as well, of the type that the file's value
 * has; a key that the command gives too ends it. Keys that no file here gives are not known, and
 * their variables not read. */
static int take_variables(const struct engine *e, const struct experiment_world *world,
			  struct config_value *merged, const struct config_value *given,
			  struct mo_error *err)
{
	for (size_t i = 0; e->config_variables && i < given->n; i++) {
		_cleanup_(mo_freep) char *name =
			variable_of(e->config_variables, given->items[i].key);

		if (!world->variable(world->arg, name))
			continue;
		mo_error_hint(err, "leave one of them out");
		return mo_error_set(err, -EINVAL,
				    "%s is in the environment, and the command gives %s: the "
				    "engine ends where both say a key",
				    name, given->items[i].key);
	}
	for (size_t i = 0; e->config_variables && i < merged->n; i++) {
		struct config_value *old = merged->items[i].value;
		_cleanup_(mo_freep) char *name =
			variable_of(e->config_variables, merged->items[i].key);
		const char *text = world->variable(world->arg, name);

		if (!text)
			continue;
		struct config_value *v = old->kind == CONFIG_TEXT
						 ? config_value_new(CONFIG_TEXT, text, old->place)
						 : word_value(text, old->place);

		v->variable = mo_strdup(name);
		config_put(merged, merged->items[i].key, v);
	}
	return 0;
}

int config_files_command(const struct engine *e, struct experiment *x, char *const *words,
			 size_t n_words, struct mo_error *err)
{
	if (!x->merged)
		x->merged = config_value_new(CONFIG_MAP, NULL, (struct config_place){ -1, 0, -1 });
	experiment_without_words(x);
	struct config_value *given = words_of(e, words, n_words, err);

	if (!given)
		return -EINVAL;
	config_merge(x->merged, given);
	return 0;
}

int config_files_resolve(const struct engine *e, const char *entry,
			 const struct experiment_world *world, char *const *words, size_t n_words,
			 struct experiment *ret, struct mo_error *err)
{
	struct experiment_reader r = { .world = world, .out = ret, .err = err };
	_cleanup_(config_value_freep) struct config_value *given = words_of(e, words, n_words, err);
	int k = 0;

	*ret = (struct experiment){ 0 };
	if (!given)
		return -EINVAL;
	ret->merged = config_value_new(CONFIG_MAP, NULL, (struct config_place){ -1, 0, -1 });
	ret->names = config_value_new(CONFIG_MAP, NULL, (struct config_place){ -1, 0, -1 });
	for (size_t i = 0; i < e->n_config_files && k >= 0; i++) {
		const char *path = named_by(e->config_files[i].key, entry, words, n_words);

		if (path)
			k = load_row(&r, &e->config_files[i], path, given);
	}
	if (k >= 0)
		k = take_variables(e, world, ret->merged, given, err);
	if (k < 0)
		experiment_done(ret);
	else
		config_merge(ret->merged, TAKE_PTR(given));
	return MO_MIN(k, 0);
}
