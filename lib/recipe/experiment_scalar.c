/* A scalar of an experiment's file: YAML 1.1's types, placeholders of the environment. */
#include "lib/recipe/experiment_scalar.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/config_scalar.h"
#include "lib/recipe/experiment_file.h"

#define TEXTS_MAX (4 * 1024 * 1024) /* bytes of all texts of one experiment */

int experiment_error(struct experiment_reader *r, struct config_place place, const char *hint,
		     const char *fmt, ...)
{
	_cleanup_(mo_freep) char *where = experiment_place(r->out, place);
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	mo_error_set(r->err, -EINVAL, "%s: %s", where, text);
	if (hint)
		mo_error_hint(r->err, "%s", hint);
	free(text);
	return -EINVAL;
}

/* Replaces ${NAME} and ${NAME:default}; *ret_variable is the first name that is set. */
static int replace(struct experiment_reader *r, struct config_place place, const char *text,
		   struct mo_buf *b, const char **ret_value, char **ret_variable)
{
	while (*text) {
		size_t n = mo_starts_with(text, "${") ? strcspn(text + 2, ":{}") : 0;
		const char *end = text + 2 + n;
		const char *close = n && *end == ':'   ? strchr(end, '}')
				    : n && *end == '}' ? end
						       : NULL;

		if (!close) {
			mo_buf_add(b, text++, 1);
			continue;
		}
		_cleanup_(mo_freep) char *name = mo_strndup(text + 2, n);
		const char *value = r->world->variable(r->world->arg, name);

		if (!value && close == end)
			return experiment_error(r, place,
						"give it in the recipe's env:, or a default: "
						"${NAME:default}",
						"${%.60s}: the variable is not set, and the file "
						"gives no default",
						name);
		if (value && !*ret_variable)
			*ret_variable = mo_strdup(name);
		if (value)
			mo_buf_str(b, value);
		else
			mo_buf_add(b, end + 1, (size_t)(close - end - 1));
		if (b->len > CONFIG_TEXT_MAX)
			return experiment_error(r, place, NULL, "a text of more than %d bytes",
						CONFIG_TEXT_MAX);
		text = close + 1;
	}
	*ret_value = b->data ? b->data : "";
	return 0;
}

/* What stands without quotes in JSON. */
static struct config_value *json_scalar(const char *text, struct config_place place,
					struct mo_error *err)
{
	bool yes = mo_streq(text, "true");
	double real;

	if (mo_streq(text, "null"))
		return config_value_new(CONFIG_NULL, NULL, place);
	if (yes || mo_streq(text, "false"))
		return config_value_new(CONFIG_BOOL, text, place);
	if (*text && !text[(*text == '-') + strspn(text + (*text == '-'), "0123456789")])
		return config_value_new(CONFIG_INT, text, place);
	if (strpbrk(text, "0123456789") && mo_parse_double(text, &real) == 0)
		return config_value_new(CONFIG_REAL, text, place);
	mo_error_set(err, -EINVAL, "'%.40s' is no value of JSON: texts stand in quotes", text);
	return NULL;
}

struct config_value *experiment_yaml_value(const struct ynode *n, struct config_place place,
					   struct mo_error *err)
{
	static const enum config_kind kinds[] = {
		[YAML_TAG_STR] = CONFIG_TEXT,   [YAML_TAG_INT] = CONFIG_INT,
		[YAML_TAG_FLOAT] = CONFIG_REAL, [YAML_TAG_BOOL] = CONFIG_BOOL,
		[YAML_TAG_NULL] = CONFIG_NULL,
	};

	if (n->tag > YAML_TAG_STR)
		return config_tagged_scalar(n->text, kinds[n->tag], place, err);
	return n->plain ? config_yaml_scalar(n->text, place, err)
			: config_value_new(CONFIG_TEXT, n->text, place);
}

struct config_value *experiment_scalar(struct experiment_reader *r, const struct ynode *n,
				       struct config_place place)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(config_value_freep) struct config_value *v = NULL;
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *variable = NULL;
	const char *text = "";

	v = n->plain && mo_streq(r->format, "json") ? json_scalar(n->text, place, &err)
						    : experiment_yaml_value(n, place, &err);
	if (!v) {
		experiment_error(r, place, NULL, "%s", mo_error_text(&err, -EINVAL));
		return NULL;
	}
	r->bytes += strlen(n->text);
	if (!r->format && v->kind == CONFIG_TEXT && strstr(v->text, "${")) {
		if (replace(r, place, v->text, &b, &text, &variable) < 0)
			return NULL;
		r->bytes += b.len;
		if (strcmp(text, v->text) != 0) {
			v = config_value_free(v);
			v = config_replaced_scalar(text, place);
			v->variable = TAKE_PTR(variable);
		}
	}
	if (r->bytes > TEXTS_MAX) {
		experiment_error(r, place, NULL, "more than %d bytes of texts in one experiment",
				 TEXTS_MAX);
		return NULL;
	}
	return TAKE_PTR(v);
}
