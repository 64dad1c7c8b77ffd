/* The walker over a table of keys (schema.h). A value `null` counts as not given; `key:` with
 * nothing behind it is an error, because it is a value somebody forgot. */
#include "lib/recipe/schema.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/schema_scalar.h"

#define AT(k, r, type) ((type *)((char *)(r)->bases[(k)->base] + (k)->offset))

static size_t words_count(const char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

static int word_index(const struct key *k, const struct ynode *v)
{
	return v->kind == YAML_SCALAR ? mo_enum_parse(k->words, words_count(k->words), v->text)
				      : -1;
}

static char *words_listed(const struct key *k)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; k->words && k->words[i]; i++)
		mo_buf_printf(&b, "%s%s", i ? ", " : "", k->words[i]);
	return mo_buf_take(&b);
}

static char *near_hint(const char *s, const char *const *names, size_t n)
{
	const char *near = mo_near_miss(s, names, n);

	return near ? mo_printf("did you mean '%s'?", near) : NULL;
}

/* Is text one of the words in "a|b|c"? */
static bool listed(const char *list, const char *text)
{
	size_t n = strlen(text);

	for (const char *s = list; s; s = strchr(s, '|') ? strchr(s, '|') + 1 : NULL)
		if (strncmp(s, text, n) == 0 && (s[n] == '|' || !s[n]))
			return true;
	return false;
}

static void refuse(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *shown = value_shown(v);

	errors_at(r->errors, v, NULL, "%s: %s is not supported by this version: %s", k->path, shown,
		  k->instead);
}

/* "0", "none", "false", "off", "auto", null and empty collections ask for nothing. */
static bool asks_nothing(const struct ynode *v)
{
	return v->kind == YAML_SCALAR ? listed("0|none|false|off|auto|False|FALSE", v->text)
				      : v->n == 0;
}

static void read_word(struct reader *r, const struct key *k, const struct ynode *v)
{
	int i = word_index(k, v);

	if (k->refused && v->kind == YAML_SCALAR && listed(k->refused, v->text)) {
		refuse(r, k, v);
	} else if (i < 0) {
		_cleanup_(mo_freep) char *words = words_listed(k);
		_cleanup_(mo_freep) char *expected = mo_printf("one of %s", words);
		_cleanup_(mo_freep) char *hint =
			v->kind == YAML_SCALAR ? near_hint(v->text, k->words, words_count(k->words))
					       : NULL;

		value_wrong(r, k->path, v, hint, expected);
	} else if (!r->bases[k->base])
		return;
	else if (k->type == KEY_ENUM)
		*AT(k, r, int) = i;
	else
		mo_str_set(AT(k, r, char *), v->text);
}

/* By its word, or by its number however it is written. */
static bool int_refused(const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *number = NULL;
	int64_t n;

	if (!k->refused || v->kind != YAML_SCALAR)
		return false;
	number = value_whole_text(v->text, &n) && n >= k->min && n <= k->max
			 ? mo_printf("%lld", (long long)n)
			 : NULL;
	return listed(k->refused, number ? number : v->text);
}

static void read_int(struct reader *r, const struct key *k, const struct ynode *v)
{
	int i = k->words ? word_index(k, v) : -1;
	int64_t n = 0;

	if (int_refused(k, v)) {
		_cleanup_(mo_freep) char *shown = value_shown(v);

		errors_at(r->errors, v, NULL, "%s: %s is not possible: %s", k->path, shown,
			  k->instead);
		return;
	}
	if (i >= 0)
		n = k->values[i];
	else if (k->words && (!value_whole(v, &n) || n < k->min || n > k->max)) {
		bool quoted = v->kind == YAML_SCALAR && !v->plain &&
			      value_whole_text(v->text, &n) && n >= k->min && n <= k->max;
		_cleanup_(mo_freep) char *words = words_listed(k);
		_cleanup_(mo_freep) char *expected =
			mo_printf("a whole number from %lld to %lld, or %s", (long long)k->min,
				  (long long)k->max, words);

		value_wrong(r, k->path, v, quoted ? "remove the quotes" : NULL, expected);
		return;
	} else if (!k->words && !value_int(r, k->path, v, k->min, k->max, &n))
		return;
	if (r->bases[k->base])
		*AT(k, r, int64_t) = n;
}

static void read_real(struct reader *r, const struct key *k, const struct ynode *v)
{
	double x = 0;

	if (v->kind != YAML_SCALAR || !v->plain || mo_parse_double(v->text, &x) < 0 ||
	    !(x >= (double)k->min && x <= (double)k->max)) {
		_cleanup_(mo_freep) char *expected =
			mo_printf("a number from %lld to %lld", (long long)k->min,
				  (long long)k->max);

		value_wrong(r, k->path, v, NULL, expected);
	} else if (r->bases[k->base])
		*AT(k, r, double) = x;
}

static void read_duration(struct reader *r, const struct key *k, const struct ynode *v)
{
	int64_t us = 0;

	if (v->kind != YAML_SCALAR || mo_parse_duration_us(v->text, &us) < 0 || us < k->min)
		value_wrong(r, k->path, v, NULL,
			    k->min > 0 ? "a time above 0 such as 90s, 30m, 12h or 7d"
				       : "a time such as 90s, 30m, 12h or 7d");
	else if (r->bases[k->base])
		*AT(k, r, int64_t) = us;
}

static void read_text(struct reader *r, const struct key *k, const struct ynode *v)
{
	_cleanup_(mo_freep) char *text = NULL;

	if (!value_text(r, k->path, v, &text))
		return;
	if (k->type == KEY_NAME && !mo_name_valid(text))
		value_wrong(r, k->path, v, NULL,
			    "a name: letters, digits, '.', '_' and '-', a letter or digit first, "
			    "at most "
			    "63 characters");
	else if (k->type == KEY_PATH && text[0] != '/')
		value_wrong(r, k->path, v, "the nodes do not know your directory",
			    "an absolute path");
	else if (r->bases[k->base])
		mo_str_set(AT(k, r, char *), text);
}

/* Is path a direct child of prefix? Then its last word, else NULL. */
static const char *child_name(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && path[n] && !strchr(path + n, '.') ? path + n : NULL;
}

/* "gpus:2", which YAML takes for one word: the name before the colon; NULL: it is no child of
 * prefix. */
static const char *without_blank(const struct reader *r, const char *prefix, const char *text)
{
	size_t n = strcspn(text, ":");

	for (size_t i = 0; text[n] && i < r->n_keys; i++) {
		const char *name = child_name(r->keys[i].path, prefix);

		if (name && strncmp(name, text, n) == 0 && !name[n])
			return name;
	}
	return NULL;
}

static void no_blank(struct reader *r, const struct ynode *v, const char *prefix, const char *name)
{
	_cleanup_(mo_freep) char *hint =
		mo_printf("write '%s: %.60s'", name, v->text + strlen(name) + 1);

	errors_at(r->errors, v, hint, "%s%.60s: a blank is missing behind the colon", prefix,
		  v->text);
}

static void read_value(struct reader *r, const struct key *k, const struct ynode *v)
{
	bool b;

	switch (k->type) {
	case KEY_MAP: {
		_cleanup_(mo_freep) char *prefix = mo_printf("%s.", k->path);
		const char *name = v->kind == YAML_SCALAR && v->plain
					   ? without_blank(r, prefix, v->text)
					   : NULL;

		if (name)
			no_blank(r, v, prefix, name);
		else if (v->kind != YAML_MAP)
			value_wrong(r, k->path, v, NULL, "a mapping");
		else
			schema_read(r, prefix, v);
		break;
	}
	case KEY_INT: read_int(r, k, v); break;
	case KEY_REAL: read_real(r, k, v); break;
	case KEY_BOOL:
		if (!value_bool(r, k->path, v, &b))
			break;
		if (k->refused && listed(k->refused, b ? "true" : "false"))
			refuse(r, k, v);
		else if (r->bases[k->base])
			*AT(k, r, bool) = b;
		break;
	case KEY_TEXT:
	case KEY_NAME:
	case KEY_PATH: read_text(r, k, v); break;
	case KEY_WORD:
	case KEY_ENUM: read_word(r, k, v); break;
	case KEY_DURATION: read_duration(r, k, v); break;
	case KEY_LIST:
		value_list(r, k->path, v, AT(k, r, char **),
			   (size_t *)((char *)r->bases[k->base] + k->count_offset));
		break;
	case KEY_REFUSED:
		if (!asks_nothing(v) &&
		    !(k->nothing && v->kind == YAML_SCALAR && listed(k->nothing, v->text)))
			refuse(r, k, v);
		break;
	case KEY_CUSTOM: k->read(r, k, v); break;
	}
}

const struct key *schema_key(const struct key *keys, size_t n_keys, const char *path)
{
	for (size_t i = 0; i < n_keys; i++)
		if (mo_streq(keys[i].path, path))
			return &keys[i];
	return NULL;
}

/* What a key that is none was meant to be; NULL when it is near nothing. */
static const char *meant(const struct reader *r, const char *prefix, const struct ynode *key)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(r->n_keys, sizeof(*names));
	const char *name = without_blank(r, prefix, key->text);
	size_t n = 0;

	if (name)
		return name;
	for (size_t i = 0; i < r->n_keys; i++)
		if (child_name(r->keys[i].path, prefix))
			names[n++] = child_name(r->keys[i].path, prefix);
	return mo_near_miss(key->text, names, n);
}

/* Then the misspelt key was complained about already. The name itself is no misspelling: with
 * null it is missing, and what needs it must not go on without. */
static bool misspelt(const struct reader *r, const char *prefix, const struct ynode *map,
		     const char *name)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct ynode *key = map->items[i].key;

		if (!mo_streq(key->text, name) && mo_streq(meant(r, prefix, key), name))
			return true;
	}
	return false;
}

/* What to do instead of a key that is never taken: who is told its name would be refused once more.
 * NULL: it is taken. */
static const char *refused_for(const struct reader *r, const char *prefix, const char *name)
{
	for (size_t i = 0; i < r->n_keys; i++)
		if (r->keys[i].type == KEY_REFUSED &&
		    mo_streq(child_name(r->keys[i].path, prefix), name))
			return r->keys[i].instead;
	return NULL;
}

static void unknown_key(struct reader *r, const char *prefix, const struct ynode *key)
{
	const char *near = meant(r, prefix, key);

	if (near && near == without_blank(r, prefix, key->text)) {
		no_blank(r, key, prefix, near);
		return;
	}
	const char *instead = near ? refused_for(r, prefix, near) : NULL;
	_cleanup_(mo_freep) char *hint = instead ? mo_strdup(instead)
					 : near  ? mo_printf("did you mean '%s'?", near)
						 : NULL;

	for (size_t i = 0; !hint && i < r->n_keys; i++) { /* right word, wrong place */
		const char *last = strrchr(r->keys[i].path, '.');

		if (last && r->keys[i].type != KEY_REFUSED && mo_streq(last + 1, key->text))
			hint = mo_printf("it belongs to %.*s", (int)(last - r->keys[i].path),
					 r->keys[i].path);
	}
	errors_at(r->errors, key, hint, "unknown key '%s%.60s'", prefix, key->text);
}

/* The key of prefix and name together, which are not put together: this runs for every key of
 * every data file. */
static const struct key *direct_key(const struct reader *r, const char *prefix, const char *name)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < r->n_keys && !strchr(name, '.'); i++)
		if (strncmp(r->keys[i].path, prefix, n) == 0 && mo_streq(r->keys[i].path + n, name))
			return &r->keys[i];
	return NULL;
}

void schema_read(struct reader *r, const char *prefix, const struct ynode *map)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct yitem *item = &map->items[i];
		const struct key *k = direct_key(r, prefix, item->key->text);

		if (!k)
			unknown_key(r, prefix, item->key);
		else if (ynode_is_empty(item->value))
			errors_at(r->errors, item->value, "remove the key, or give it a value",
				  "%s: has no value", k->path);
		else if (!ynode_is_null(item->value))
			read_value(r, k, item->value);
	}
	for (size_t i = 0; i < r->n_keys; i++) {
		const char *name = r->keys[i].required ? child_name(r->keys[i].path, prefix) : NULL;

		if (name && ynode_is_null(ynode_get(map, name)) && !misspelt(r, prefix, map, name))
			errors_at(r->errors, map, NULL, "missing key '%s'", r->keys[i].path);
	}
}

void schema_defaults(struct reader *r, const char *prefix)
{
	for (size_t i = 0; i < r->n_keys; i++) {
		const struct key *k = &r->keys[i];

		if (!mo_starts_with(k->path, prefix) || !r->bases[k->base])
			continue;
		if (k->text_def)
			mo_str_set(AT(k, r, char *), k->text_def);
		if (!k->has_def)
			continue;
		if (k->type == KEY_BOOL)
			*AT(k, r, bool) = k->def;
		else if (k->type == KEY_ENUM)
			*AT(k, r, int) = (int)k->def;
		else
			*AT(k, r, int64_t) = k->def;
	}
}

char *schema_value(const struct key *k, const void *base)
{
	const void *at = (const char *)base + k->offset;
	int64_t n = k->type == KEY_INT || k->type == KEY_DURATION ? *(const int64_t *)at : MO_NONE;

	switch (k->type) {
	case KEY_INT:
		if (n == MO_NONE)
			return NULL;
		for (size_t i = 0; k->words && k->words[i]; i++)
			if (k->values[i] == n)
				return mo_strdup(k->words[i]);
		return mo_printf("%lld", (long long)n);
	case KEY_DURATION: return n == MO_NONE ? NULL : mo_printf("%.6g", (double)n / 1e6);
	case KEY_BOOL: return mo_strdup(*(const bool *)at ? "true" : "false");
	case KEY_TEXT:
	case KEY_NAME:
	case KEY_PATH:
	case KEY_WORD: return mo_strdup(*(char *const *)at);
	default: return NULL;
	}
}
