/* See recipe_schema.h. */
#include "lib/recipe/recipe_schema.h"

#include <string.h>

#include "lib/base/parse.h"
#include "lib/recipe/json.h"
#include "lib/recipe/keys.h"

/* mo_name_valid() */
#define NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
/* mo_parse_duration_us() */
#define DURATION_PATTERN "^[0-9]+(\\\\.[0-9]+)?(us|ms|s|m|h|d)?$"
#define TEXT "\"type\":[\"string\",\"number\",\"boolean\"]"

/* A key's own part of the path below prefix; NULL: it is no child of it. */
static const char *child_of(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return mo_starts_with(path, prefix) && !strchr(path + n, '.') ? path + n : NULL;
}

static void add_words(const char *const *words, struct mo_buf *b)
{
	mo_buf_str(b, "\"enum\":[");
	for (size_t i = 0; words[i]; i++) {
		mo_buf_str(b, i ? "," : "");
		json_quoted(words[i], b);
		/* what YAML does not take for a text */
		if (mo_streq(words[i], "0") || mo_streq(words[i], "false"))
			mo_buf_printf(b, ",%s", words[i]);
	}
	mo_buf_str(b, "]");
}

static void add_bounds(const struct key *k, struct mo_buf *b)
{
	mo_buf_printf(b, "\"minimum\":%lld", (long long)k->min);
	if (k->max != INT64_MAX)
		mo_buf_printf(b, ",\"maximum\":%lld", (long long)k->max);
}

static void add_int(const struct key *k, struct mo_buf *b)
{
	mo_buf_str(b, k->words ? "\"anyOf\":[{" : "");
	mo_buf_str(b, "\"type\":\"integer\",");
	add_bounds(k, b);
	if (!k->words)
		return;
	mo_buf_str(b, "},{");
	add_words(k->words, b);
	mo_buf_str(b, "}]");
}

static void add_default(const struct key *k, struct mo_buf *b)
{
	if (k->text_def) {
		mo_buf_str(b, ",\"default\":");
		json_quoted(k->text_def, b);
	} else if (k->has_def && k->type == KEY_BOOL)
		mo_buf_printf(b, ",\"default\":%s", k->def ? "true" : "false");
	else if (k->has_def && k->type == KEY_INT && k->def >= k->min && k->def <= k->max)
		mo_buf_printf(b, ",\"default\":%lld", (long long)k->def);
}

/* The mapping of all keys below prefix; false: there is none below it. */
static bool add_map(const char *prefix, struct mo_buf *b);

/* "string|object", the parts of a shape. */
static void add_shape(const struct key *k, struct mo_buf *b)
{
	static const char *const types[] = { "string", "integer", "boolean", "array", "object" };
	_cleanup_(mo_freep) char *prefix = mo_printf("%s.", k->path);

	mo_buf_str(b, "\"anyOf\":[");
	for (const char *s = k->shape; *s; s += strcspn(s, "|"), s += *s == '|') {
		_cleanup_(mo_freep) char *one = mo_strndup(s, strcspn(s, "|"));
		bool type = mo_enum_parse(types, ELEMENTSOF(types), one) >= 0;

		mo_buf_str(b, s == k->shape ? "{" : ",{");
		if (!mo_streq(one, "object"))
			mo_buf_printf(b, "\"%s\":\"%s\"", type ? "type" : "const", one);
		else if (!add_map(prefix, b))
			mo_buf_str(b, "\"type\":\"object\"");
		mo_buf_str(b, "}");
	}
	mo_buf_str(b, "]");
}

static void add_value(const struct key *k, struct mo_buf *b)
{
	_cleanup_(mo_freep) char *prefix = mo_printf("%s.", k->path);

	switch (k->type) {
	case KEY_MAP: (void)add_map(prefix, b); break;
	case KEY_INT: add_int(k, b); break;
	case KEY_REAL:
		mo_buf_str(b, "\"type\":\"number\",");
		add_bounds(k, b);
		break;
	case KEY_BOOL: mo_buf_str(b, "\"type\":\"boolean\""); break;
	case KEY_TEXT: mo_buf_str(b, TEXT); break;
	case KEY_NAME: mo_buf_str(b, "\"type\":\"string\",\"pattern\":\"" NAME_PATTERN "\""); break;
	case KEY_PATH: mo_buf_str(b, "\"type\":\"string\",\"pattern\":\"^/\""); break;
	case KEY_WORD:
	case KEY_ENUM: add_words(k->words, b); break;
	case KEY_DURATION:
		mo_buf_str(b,
			   "\"type\":[\"string\",\"number\"],\"pattern\":\"" DURATION_PATTERN "\"");
		break;
	case KEY_LIST: mo_buf_str(b, "\"type\":\"array\",\"items\":{" TEXT "}"); break;
	case KEY_CUSTOM:
		if (k->shape)
			add_shape(k, b);
		break;
	case KEY_REFUSED: /* what asks for nothing passes, whatever its type */
		mo_buf_str(b, "\"description\":");
		json_quoted(k->instead, b);
		break;
	}
	add_default(k, b);
}

static bool add_map(const char *prefix, struct mo_buf *b)
{
	const struct reader r = recipe_reader(NULL, NULL);
	_cleanup_(mo_buf_done) struct mo_buf required = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < r.n_keys; i++) {
		const char *name = child_of(r.keys[i].path, prefix);

		if (!name)
			continue;
		mo_buf_str(b, n++ ? ","
				  : "\"type\":\"object\",\"additionalProperties\":false,"
				    "\"properties\":{");
		mo_buf_printf(b, "\"%s\":{", name);
		add_value(&r.keys[i], b);
		mo_buf_str(b, "}");
		if (r.keys[i].required)
			mo_buf_printf(&required, "%s\"%s\"", required.len ? "," : "", name);
	}
	mo_buf_str(b, n ? "}" : "");
	if (required.len)
		mo_buf_printf(b, ",\"required\":[%s]", required.data);
	return n > 0;
}

void recipe_schema(struct mo_buf *b)
{
	mo_buf_str(b, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
		      "\"title\":\"recipe of moectl\",");
	(void)add_map("", b);
	mo_buf_str(b, "}");
}
