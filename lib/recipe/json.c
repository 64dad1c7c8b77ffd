/* A recipe's text as JSON, for documents that carry recipes: plain scalars that are JSON
 * numbers, booleans or null stay what they are, everything else is a string. */
#include "lib/recipe/json.h"

#include <stdio.h>
#include <string.h>
#include "lib/recipe/yaml.h"

static const char *digits(const char *p)
{
	while (*p >= '0' && *p <= '9')
		p++;
	return p;
}

/* RFC 8259, section 6. */
static bool is_number(const char *p)
{
	p += *p == '-';
	const char *end = digits(p);
	if (end == p || (*p == '0' && end > p + 1))
		return false;
	p = end;
	if (*p == '.') {
		end = digits(p + 1);
		if (end == p + 1)
			return false;
		p = end;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		p += *p == '+' || *p == '-';
		end = digits(p);
		if (end == p)
			return false;
		p = end;
	}
	return !*p;
}

void json_quoted(const char *s, struct mo_buf *b)
{
	mo_buf_str(b, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			mo_buf_printf(b, "\\%c", c);
		else if (c == '\n' || c == '\t')
			mo_buf_str(b, c == '\n' ? "\\n" : "\\t");
		else if (c < 0x20)
			mo_buf_printf(b, "\\u%04x", c);
		else
			mo_buf_add(b, s, 1);
	}
	mo_buf_str(b, "\"");
}

static void node(const struct ynode *n, struct mo_buf *b)
{
	if (!n || ynode_is_null(n) || ynode_is_empty(n)) {
		mo_buf_str(b, "null");
	} else if (n->kind == YAML_SCALAR) {
		bool as_is = n->plain && (is_number(n->text) || strcmp(n->text, "true") == 0 ||
					  strcmp(n->text, "false") == 0);
		if (as_is)
			mo_buf_str(b, n->text);
		else
			json_quoted(n->text, b);
	} else {
		bool map = n->kind == YAML_MAP;
		mo_buf_str(b, map ? "{" : "[");
		for (size_t i = 0; i < n->n; i++) {
			mo_buf_str(b, i ? "," : "");
			if (map) {
				json_quoted(n->items[i].key->text, b);
				mo_buf_str(b, ":");
			}
			node(n->items[i].value, b);
		}
		mo_buf_str(b, map ? "}" : "]");
	}
}

char *recipe_json(const char *text, size_t n)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "recipe", &errors);
	struct mo_buf b = { 0 };

	if (!root || errors.n)
		return NULL;
	node(root, &b);
	return mo_buf_take(&b);
}
