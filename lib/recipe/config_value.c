/* Values of an engine's configuration: making, merging, showing (config_value.h). */
#include "lib/recipe/config_value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"

const char *const config_kind_names[] = {
	"null",   "a truth value", "a whole number", "a number",
	"a text", "a date",        "a list",         "a map",
};

struct config_value *config_value_new(enum config_kind kind, const char *text,
				      struct config_place place)
{
	struct config_value *v = mo_alloc(sizeof(*v));

	v->kind = kind;
	v->text = mo_strdup(text);
	v->place = place;
	return v;
}

struct config_value *config_value_free(struct config_value *v)
{
	while (v) {
		struct config_value *over = v->over;

		for (size_t i = 0; i < v->n; i++) {
			free(v->items[i].key);
			config_value_free(v->items[i].value);
		}
		free(v->items);
		free(v->text);
		free(v->variable);
		free(v);
		v = over;
	}
	return NULL;
}

/* Where the key is, or would be. */
static size_t search(const struct config_value *map, const char *key, bool *ret_found)
{
	size_t low = 0, high = map->n;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(map->items[middle].key, key);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct config_value *config_get(const struct config_value *v, const char *key)
{
	bool found;

	if (!v || v->kind != CONFIG_MAP)
		return NULL;
	size_t at = search(v, key, &found);

	return found ? v->items[at].value : NULL;
}

struct config_value *config_find(const struct config_value *v, const char *path)
{
	struct config_value *at = NULL;

	for (bool more = true; more && v; v = at) {
		size_t n = strcspn(path, ".");
		_cleanup_(mo_freep) char *key = mo_strndup(path, n);

		at = config_get(v, key);
		more = path[n] == '.';
		path += n + more;
		if (!more)
			return at;
	}
	return NULL;
}

void config_replaced(struct config_value *v, struct config_value *older)
{
	struct config_value **end = &v->over;

	while (*end)
		end = &(*end)->over;
	*end = older;
}

struct config_pair *config_put(struct config_value *map, const char *key,
			       struct config_value *value)
{
	bool found;
	size_t at = search(map, key, &found);

	if (found) {
		config_replaced(value, map->items[at].value);
		map->items[at].value = value;
		return &map->items[at];
	}
	MO_GROW(map->items, map->n);
	memmove(map->items + at + 1, map->items + at, (map->n - 1 - at) * sizeof(*map->items));
	map->items[at] = (struct config_pair){ .key = mo_strdup(key), .value = value };
	return &map->items[at];
}

struct config_value *config_take(struct config_value *map, const char *key)
{
	bool found;
	size_t at = search(map, key, &found);

	if (!found)
		return NULL;
	struct config_value *v = map->items[at].value;

	free(map->items[at].key);
	memmove(map->items + at, map->items + at + 1, (map->n - at - 1) * sizeof(*map->items));
	map->n--;
	return v;
}

void config_append(struct config_value *list, struct config_value *value)
{
	*MO_GROW(list->items, list->n) = (struct config_pair){ .value = value };
}

void config_merge(struct config_value *base, struct config_value *over)
{
	for (size_t i = 0; i < over->n; i++) {
		struct config_value *value = TAKE_PTR(over->items[i].value);
		struct config_value *there = config_get(base, over->items[i].key);

		if (there && there->kind == CONFIG_MAP && value->kind == CONFIG_MAP) {
			if (!there->n && !value->n)
				there->place = value->place;
			config_merge(there, value);
			continue;
		}
		value->is_new = value->kind == CONFIG_MAP;
		config_put(base, over->items[i].key, value)->no_text |= over->items[i].no_text;
	}
	config_value_free(over);
}

void config_known(struct config_value *v)
{
	v->is_new = false;
	for (size_t i = 0; i < v->n; i++)
		config_known(v->items[i].value);
}

void config_settle(struct config_value *map)
{
	for (size_t i = 0; i < map->n; i++) {
		struct config_value *v = map->items[i].value;

		if (config_is_text(v, "null")) {
			v->kind = CONFIG_NULL;
			v->text = (free(v->text), NULL);
		} else if (v->kind == CONFIG_MAP && v->is_new) {
			config_known(v);
		} else if (v->kind == CONFIG_MAP) {
			config_settle(v);
		}
	}
}

const struct config_pair *config_bad_key(const struct config_value *v)
{
	for (size_t i = 0; i < v->n; i++) {
		if (v->items[i].no_text)
			return &v->items[i];
		const struct config_pair *bad = config_bad_key(v->items[i].value);

		if (bad)
			return bad;
	}
	return NULL;
}

bool config_is_text(const struct config_value *v, const char *text)
{
	return v && v->kind == CONFIG_TEXT && mo_streq(v->text, text);
}

static void json_text(const char *s, struct mo_buf *b)
{
	mo_buf_str(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			mo_buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			mo_buf_printf(b, "\\u%04x", c);
		else
			mo_buf_add(b, s, 1);
	}
	mo_buf_str(b, "\"");
}

void config_json(const struct config_value *v, struct mo_buf *b)
{
	bool map = v->kind == CONFIG_MAP;

	if (v->kind == CONFIG_NULL) {
		mo_buf_str(b, "null");
	} else if (v->kind == CONFIG_TEXT || v->kind == CONFIG_DATE ||
		   (v->kind == CONFIG_REAL && strpbrk(v->text, "in"))) { /* inf, nan */
		json_text(v->text, b);
	} else if (v->kind == CONFIG_LIST || map) {
		mo_buf_str(b, map ? "{" : "[");
		for (size_t i = 0; i < v->n; i++) {
			mo_buf_str(b, i ? "," : "");
			if (map) {
				json_text(v->items[i].key, b);
				mo_buf_str(b, ":");
			}
			config_json(v->items[i].value, b);
		}
		mo_buf_str(b, map ? "}" : "]");
	} else {
		mo_buf_str(b, v->text);
	}
}

static void add_items(const struct config_value *map, const char *prefix, struct config_item **ret,
		      size_t *n_ret)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct config_value *v = map->items[i].value;
		_cleanup_(mo_freep) char *key = mo_printf("%s%s%s", prefix ? prefix : "",
							  prefix ? "." : "", map->items[i].key);

		if (v->kind == CONFIG_MAP && v->n)
			add_items(v, key, ret, n_ret);
		else
			*MO_GROW(*ret, *n_ret) = (struct config_item){ TAKE_PTR(key), v };
	}
}

void config_items(const struct config_value *map, struct config_item **ret, size_t *n_ret)
{
	add_items(map, NULL, ret, n_ret);
}

void config_items_free(struct config_item *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(items[i].key);
	free(items);
}

char *config_real_text(double v)
{
	char shortest[48];
	double back;
	int digits = 0;

	if (isnan(v) || isinf(v))
		return mo_strdup(isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
	do
		snprintf(shortest, sizeof(shortest), "%.*e", digits, v);
	while (++digits < 17 && (mo_parse_double(shortest, &back) < 0 || back != v));
	const char *mark = strchr(shortest, 'e');
	int64_t exponent = 0;

	if (!mark || mo_parse_i64(mark + 1 + (mark[1] == '+'), -400, 400, &exponent) < 0)
		return mo_strdup(shortest);
	if (exponent >= -4 && exponent < 16)
		return mo_printf("%.*f", (int)MO_MAX(digits - 1 - exponent, 1), v);
	_cleanup_(mo_freep) char *head = mo_strndup(shortest, (size_t)(mark - shortest));

	return mo_printf("%se%c%02lld", head, exponent < 0 ? '-' : '+',
			 (long long)(exponent < 0 ? -exponent : exponent));
}

char *config_int_text(const char *digits)
{
	struct mo_buf b = { 0 };
	bool negative = *digits == '-';

	for (digits += *digits == '-' || *digits == '+'; *digits; digits++)
		if (*digits != '_' && (*digits != '0' || b.len))
			mo_buf_add(&b, digits, 1);
	if (!b.len)
		return mo_strdup("0");
	_cleanup_(mo_freep) char *text = mo_buf_take(&b);

	return mo_printf("%s%s", negative ? "-" : "", text);
}

struct config_value *config_number(const char *text, struct config_place place)
{
	size_t sign = *text == '-' || *text == '+', digits = strspn(text + sign, "0123456789");
	_cleanup_(mo_freep) char *shown = NULL;
	double real;

	if (digits && !text[sign + digits])
		return config_value_new(CONFIG_INT, shown = config_int_text(text), place);
	if (strpbrk(text, "0123456789") && !text[strspn(text, "0123456789.eE+-")] &&
	    mo_parse_double(text, &real) == 0)
		return config_value_new(CONFIG_REAL, shown = config_real_text(real), place);
	return NULL;
}

size_t config_parts(const char *path, size_t n)
{
	size_t parts = 1;

	for (size_t i = 0; i < n; i++)
		parts += path[i] == '.';
	return parts;
}
