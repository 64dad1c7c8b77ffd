/* See yaml_texts.h. */
#include "lib/recipe/yaml_texts.h"

#include <string.h>

void yaml_texts_add(struct yaml_texts *t, struct fy_token *token)
{
	const struct fy_mark *from = token ? fy_token_start_mark(token) : NULL,
			     *to = token ? fy_token_end_mark(token) : NULL;
	enum fy_scalar_style style = token ? fy_token_scalar_style(token) : FYSS_PLAIN;

	if (from && to && style != FYSS_PLAIN)
		*MO_GROW(t->all, t->n) =
			(struct yaml_text){ from->input_pos, to->input_pos,
					    style == FYSS_LITERAL || style == FYSS_FOLDED };
}

bool yaml_not_of_block(const struct yaml_texts *t, size_t before, const char *text, size_t n,
		       const struct ynode *key, const struct ynode *value)
{
	if (value->kind != YAML_SCALAR || t->n != before + 1 || !t->all[before].block ||
	    !value->text[strspn(value->text, "\n ")])
		return false;
	size_t i = t->all[before].from, column = 1;

	while (i < n && strchr("\r\n ", text[i]))
		i++;
	while (i > 0 && text[i - 1] == ' ') {
		i--;
		column++;
	}
	return (int64_t)column <= key->column;
}

int64_t yaml_stray_tab(const struct yaml_texts *t, const char *text, size_t n)
{
	bool blank = true, comment = false;
	int64_t line = 1;
	size_t q = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		while (q < t->n && t->all[q].to <= i)
			q++;
		if (c == '\n') {
			line++;
			comment = false;
		} else if (!comment && (q == t->n || i < t->all[q].from)) {
			if (c == '\t')
				return line;
			comment = c == '#' && blank;
		}
		blank = c == '\n' || c == '\r' || c == ' ';
	}
	return 0;
}
