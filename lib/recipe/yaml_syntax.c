/* See yaml_syntax.h. */
#include "lib/recipe/yaml_syntax.h"

#include <string.h>

#include "lib/recipe/yaml_bytes.h"

/* "  gpus:2" in the line at text: its key, the colon behind it not counted; 0: it has none, or a
 *    blank behind the colon. */
static size_t unspaced_key(const char *text, size_t n, size_t *ret_indent)
{
	static const char word[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t indent = 0, key = 0;

	while (indent < n && text[indent] == ' ')
		indent++;
	while (indent + key < n && strchr(word, text[indent + key]) && text[indent + key])
		key++;
	size_t colon = indent + key;

	*ret_indent = indent;
	return colon + 1 < n && text[colon] == ':' && !strchr(" \t\r\n/:", text[colon + 1]) ? key
											    : 0;
}

/* The most usual reason for a line that is no YAML, at that line. */
static bool report_unspaced(const char *text, size_t n, int64_t line, struct recipe_errors *errors)
{
	size_t at = 0, indent;

	for (int64_t i = 1; i < line && at < n; i++) {
		const char *end = memchr(text + at, '\n', n - at);

		at = end ? (size_t)(end - text) + 1 : n;
	}
	const char *end = memchr(text + at, '\n', n - at);
	size_t len = end ? (size_t)(end - text) - at : n - at,
	       key = unspaced_key(text + at, len, &indent);

	if (!key)
		return false;
	const char *rest = text + at + indent + key + 1;
	_cleanup_(mo_freep) char *hint =
		mo_printf("write '%.*s: %.*s'", (int)MO_MIN(key, 60), text + at + indent,
			  (int)MO_MIN(len - indent - key - 1, 60), rest);

	errors_place(errors, line, (int64_t)indent + 1, hint,
		     "not valid YAML: a blank is missing behind the colon");
	return true;
}

void yaml_report_syntax(struct fy_diag *diag, const char *text, size_t n,
			struct recipe_errors *errors)
{
	void *state = NULL;
	const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &state);
	int64_t tab = yaml_tab_line(text, n);

	if (tab)
		errors_place(errors, tab, 1, "indent with spaces",
			     "a tab indents this line: YAML allows only spaces");
	else if (e && report_unspaced(text, n, MO_MAX(e->line, 1), errors))
		return;
	else if (e)
		errors_place(errors, MO_MAX(e->line, 1), MO_MAX(e->column, 1), NULL,
			     "not valid YAML: %s", e->msg);
	else
		errors_place(errors, 1, 1, NULL, "not valid YAML");
}
