/* A draft as a recipe's text. */
#include "lib/recipe/draft_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/recipe/draft.h"

/* Always one YAML scalar that reads back as this text. plain: numbers and words may stand
 * without quotes. */
static void scalar(const char *text, bool plain, struct mo_buf *b)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
	static const char *const words[] = {
		"true", "false", "null", "yes", "no", "on", "off", "~"
	};
	double number;

	plain &= *text && !text[strspn(text, safe)] && text[0] != '-' &&
		 text[strlen(text) - 1] != '-';
	if (!plain && *text && !text[strspn(text, safe)] && (text[0] != '-' || text[1] == '-')) {
		plain = mo_parse_double(text, &number) < 0 && text[0] != '.' && text[0] != '+' &&
			!strchr("0123456789", text[0]) && (text[0] != '-' || strlen(text) > 3);
		for (size_t i = 0; i < ELEMENTSOF(words); i++)
			plain &= strcasecmp(text, words[i]) != 0;
	}
	if (plain) {
		mo_buf_str(b, text);
		return;
	}
	mo_buf_str(b, "\"");
	for (const char *p = text; *p; p++)
		if (*p == '"' || *p == '\\')
			mo_buf_printf(b, "\\%c", *p);
		else if ((unsigned char)*p < 0x20 || *p == 0x7f)
			mo_buf_printf(b, "\\x%02x", (unsigned char)*p);
		else
			mo_buf_add(b, p, 1);
	mo_buf_str(b, "\"");
}

static void line(const char *key, const char *value, struct mo_buf *b)
{
	if (!value)
		return;
	mo_buf_printf(b, "%s: ", key);
	scalar(value, false, b);
	mo_buf_str(b, "\n");
}

/* One flag and its values on a line. */
static void args_text(const struct draft *d, struct mo_buf *b)
{
	if (d->n_args)
		mo_buf_printf(b, "  %s:\n", mo_streq(d->kind, "command") ? "argv" : "args");
	for (size_t i = 0; i < d->n_args; i++) {
		mo_buf_str(b, "    - ");
		scalar(d->args[i], false, b);
		mo_buf_str(b, "\n");
	}
}

/* "parallelism: {tp: 2, pp: 4}"; paths without a dot are lines of their own. */
static void values_text(const struct draft *d, struct mo_buf *b)
{
	static const char *const groups[] = { "parallelism", "batch", "checkpoint" };

	for (size_t g = 0; g < ELEMENTSOF(groups); g++) {
		size_t n = 0, len = strlen(groups[g]);

		for (size_t i = 0; i < d->n_values; i++) {
			const char *key = d->values[i].key;

			if (!mo_starts_with(key, groups[g]) || key[len] != '.')
				continue;
			if (n++ == 0)
				mo_buf_printf(b, "%s: {", groups[g]);
			mo_buf_printf(b, "%s%s: ", n > 1 ? ", " : "", key + len + 1);
			scalar(d->values[i].value, true, b);
		}
		mo_buf_str(b, n ? "}\n" : "");
	}
	for (size_t i = 0; i < d->n_values; i++)
		if (!strchr(d->values[i].key, '.')) {
			mo_buf_printf(b, "%s: ", d->values[i].key);
			scalar(d->values[i].value, true, b);
			mo_buf_str(b, "\n");
		}
}

char *draft_text(const struct draft *d, char *const *comments, size_t n_comments)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n_comments; i++) {
		mo_buf_str(&b, "# ");
		for (const char *p = comments[i]; *p; p++)
			mo_buf_add(&b, (unsigned char)*p < 0x20 || *p == 0x7f ? "?" : p, 1);
		mo_buf_str(&b, "\n");
	}
	mo_buf_str(&b, "recipe: 1\n");
	line("name", d->name, &b);
	mo_buf_str(&b, "engine:\n");
	line("  kind", d->kind, &b);
	line("  workdir", d->workdir, &b);
	line("  entry", d->entry, &b);
	line("  python", d->python, &b);
	args_text(d, &b);
	mo_buf_printf(&b, "cluster: {gpus: %lld%s%s}\n", (long long)d->gpus,
		      d->gpu ? ", gpu: " : "", d->gpu ? d->gpu : "");
	values_text(d, &b);
	if (d->n_env)
		mo_buf_str(&b, "env:\n");
	for (size_t i = 0; i < d->n_env; i++) {
		mo_buf_printf(&b, "  %s: ", d->env[i].key);
		scalar(d->env[i].value ? d->env[i].value : "", false, &b);
		mo_buf_str(&b, "\n");
	}
	line("time_limit", d->time_limit, &b);
	return mo_buf_take(&b);
}
