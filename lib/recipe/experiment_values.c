/* Rows of an engine file's experiment.values against a resolved experiment (experiment_values.h). */
#include "lib/recipe/experiment_values.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"

/* "A|B|=1": the first that is a whole number above 0, or the engine's own default. */
static bool number(const struct experiment *x, const char *keys, char **ret_text, char **ret_key,
		   const struct config_value **ret_from)
{
	for (const char *s = keys; *s;) {
		size_t n = strcspn(s, "|");
		_cleanup_(mo_freep) char *key = mo_strndup(s, n);
		const struct config_value *v = *key == '=' ? NULL : config_find(x->merged, key);
		int64_t size;

		s += n + (s[n] == '|');
		if (*key == '=') {
			*ret_text = mo_strdup(key + 1);
			*ret_key = mo_strdup(keys);
			(*ret_key)[strcspn(*ret_key, "|")] = 0;
			*ret_from = NULL;
			return true;
		}
		if (!v || v->kind == CONFIG_NULL)
			continue;
		if (v->kind != CONFIG_INT || mo_parse_i64(v->text, 1, INT64_MAX, &size) < 0)
			return false;
		*ret_text = mo_strdup(v->text);
		*ret_key = TAKE_PTR(key);
		*ret_from = v;
		return true;
	}
	return false;
}

/* "A=true B": A is true, and B is there and not null. */
static bool holds(const struct experiment *x, const char *conditions, char **ret_key,
		  const struct config_value **ret_from)
{
	*ret_from = NULL;
	for (const char *s = conditions; *s;) {
		size_t n = strcspn(s, " "), equals = strcspn(s, "= ");
		_cleanup_(mo_freep) char *key = mo_strndup(s, MO_MIN(n, equals));
		_cleanup_(mo_freep) char *want =
			equals < n ? mo_strndup(s + equals + 1, n - equals - 1) : NULL;
		const struct config_value *v = config_find(x->merged, key);
		bool null = !v || v->kind == CONFIG_NULL;

		if (mo_streq(want, "null") ? !null : null || (want && !mo_streq(v->text, want)))
			return false;
		if (!*ret_from) {
			*ret_from = v;
			mo_str_set(ret_key, key);
		}
		s += n + (s[n] == ' ');
	}
	return true;
}

bool experiment_value(const struct engine *e, const struct experiment *x, const char *path,
		      char **ret_text, char **ret_key, const struct config_value **ret_from)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < e->n_experiment_values; i++) {
		const struct kv *row = &e->experiment_values[i];
		_cleanup_(mo_freep) char *key = NULL;

		if (strncmp(row->key, path, n) != 0 || (row->key[n] && row->key[n] != '='))
			continue;
		if (!row->key[n])
			return number(x, row->value, ret_text, ret_key, ret_from);
		if (!holds(x, row->value, &key, ret_from))
			continue;
		*ret_text = mo_strdup(row->key + n + 1);
		*ret_key = TAKE_PTR(key);
		return true;
	}
	return false;
}

static void quoted(const char *s, struct mo_buf *b)
{
	const struct config_value v = { .kind = CONFIG_TEXT, .text = (char *)s };

	config_json(&v, b);
}

char *experiment_said(const struct engine *e, const struct recipe *r, const struct experiment *x)
{
	struct mo_buf b = { 0 }, said = { 0 };

	mo_buf_printf(&b, "{\"files\":\"crc32c:%08x\",\"values\":{", x->crc);
	for (size_t i = 0; i < r->n_left; i++) {
		_cleanup_(mo_freep) char *text = NULL, *key = NULL;
		const struct config_value *from;

		if (!experiment_value(e, x, r->left[i], &text, &key, &from))
			continue;
		_cleanup_(mo_freep) char *place =
			experiment_place(x,
					 from ? from->place : (struct config_place){ -1, 0, -1 });
		_cleanup_(mo_freep) char *where =
			from ? mo_printf("%s: %s", place, key)
			     : mo_printf("%s, which the experiment does not give", key);

		mo_buf_printf(&b, "%s\"%s\":%s", said.len ? "," : "", r->left[i], text);
		mo_buf_printf(&said, "%s\"%s\":", said.len ? "," : "", r->left[i]);
		quoted(where, &said);
	}
	mo_buf_printf(&b, "},\"said\":{%s}}", said.data ? said.data : "");
	mo_buf_done(&said);
	return mo_buf_take(&b);
}
