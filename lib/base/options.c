/* See options.h. The file syntax is the flat part of YAML 1.2 that both YAML parsers and this
 * one read alike: comments, `key: value`, plain, 'single' and "double" quoted scalars on one
 * line. Everything else of YAML is refused by name, so that a file never means something else to
 * another reader. */
#include "lib/base/options.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"

#define OPTIONS_FILE_MAX (256 * 1024)
#define OPTIONS_MAX 128 /* rows of one table */

static char **str_at(void *obj, const struct mo_option *o)
{
	return (char **)((char *)obj + o->offset);
}
static int64_t *int_at(void *obj, const struct mo_option *o)
{
	return (int64_t *)((char *)obj + o->offset);
}
static bool *bool_at(void *obj, const struct mo_option *o)
{
	return (bool *)((char *)obj + o->offset);
}

static bool is_text(const struct mo_option *o)
{
	return o->type == MO_OPTION_STR || o->type == MO_OPTION_PATH || o->type == MO_OPTION_NAME ||
	       o->type == MO_OPTION_WORD;
}

static const struct mo_option *option_find(const struct mo_options *o, const char *name)
{
	mo_assert(o->items && o->n > 0);
	for (size_t i = 0; i < o->n; i++)
		if (mo_streq(o->items[i].name, name))
			return &o->items[i];
	return NULL;
}

static bool in_bounds(const struct mo_option *o, int64_t v)
{
	return (o->min == 0 && o->max == 0) || (v >= o->min && v <= o->max);
}

static char *bounds_text(const struct mo_option *o)
{
	const char *unit = o->type == MO_OPTION_DURATION ? " us"
			   : o->type == MO_OPTION_SIZE   ? " bytes"
							 : "";
	if (o->min == 0 && o->max == 0)
		return mo_strdup("");
	if (o->max == INT64_MAX)
		return mo_printf(" of at least %lld%s", (long long)o->min, unit);
	return mo_printf(" from %lld to %lld%s", (long long)o->min, (long long)o->max, unit);
}

static char *words_text(const struct mo_option *o)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	for (size_t i = 0; o->words[i]; i++)
		mo_buf_printf(&b, "%s%s", i ? ", " : "", o->words[i]);
	return mo_buf_take(&b);
}

static int range_parse(const char *value, int64_t *ret_first, int64_t *ret_last)
{
	const char *dash = strchr(value, '-');
	if (!dash || dash == value)
		return -EINVAL;
	_cleanup_(mo_freep) char *first = mo_strndup(value, (size_t)(dash - value));
	int r = mo_parse_i64(first, 0, INT64_MAX, ret_first);
	return r < 0 ? r : mo_parse_i64(dash + 1, 0, INT64_MAX, ret_last);
}

static int set_text(const struct mo_option *o, void *obj, const char *value, struct mo_error *err)
{
	if (o->type == MO_OPTION_PATH && value[0] != '/')
		return mo_error_set(err, -EINVAL, "%s: '%s' is not an absolute path", o->name,
				    value);
	if (o->type == MO_OPTION_NAME && !mo_name_valid(value))
		return mo_error_set(err, -EINVAL,
				    "%s: '%s' is not a name: expected letters, digits, '.', '_' "
				    "and '-', at most 63, beginning with a letter or digit",
				    o->name, value);
	if (o->type == MO_OPTION_WORD) {
		size_t i = 0;
		while (o->words[i] && !mo_streq(o->words[i], value))
			i++;
		if (!o->words[i]) {
			_cleanup_(mo_freep) char *words = words_text(o);
			return mo_error_set(err, -EINVAL, "%s: '%s' is not one of: %s", o->name,
					    value, words);
		}
	}
	mo_str_set(str_at(obj, o), value);
	return 0;
}

static int set_number(const struct mo_option *o, void *obj, const char *value, struct mo_error *err)
{
	int64_t first = 0, last = 0;
	int r = 0;
	const char *what = "a whole number";
	switch (o->type) {
	case MO_OPTION_DURATION:
		what = "a duration such as 30s";
		r = mo_parse_duration_us(value, &first);
		break;
	case MO_OPTION_SIZE:
		what = "a size such as 64M";
		if (o->min == -1 && mo_streq(value, "unlimited"))
			first = -1;
		else
			r = mo_parse_size(value, &first);
		break;
	case MO_OPTION_RANGE:
		what = "a range such as 20000-29999";
		r = range_parse(value, &first, &last);
		if (r == 0 && (last < first || !in_bounds(o, last)))
			r = -ERANGE;
		break;
	default: r = mo_parse_i64(value, INT64_MIN, INT64_MAX, &first);
	}
	if (r < 0 || !in_bounds(o, first)) {
		_cleanup_(mo_freep) char *bounds = bounds_text(o);
		return mo_error_set(err, -EINVAL, "%s: '%s' is not %s%s", o->name, value, what,
				    bounds);
	}
	*int_at(obj, o) = first;
	if (o->type == MO_OPTION_RANGE)
		int_at(obj, o)[1] = last;
	return 0;
}

static int set_value(const struct mo_option *o, void *obj, const char *value, struct mo_error *err)
{
	if (is_text(o))
		return set_text(o, obj, value, err);
	if (o->type != MO_OPTION_BOOL)
		return set_number(o, obj, value, err);
	if (mo_parse_bool(value, bool_at(obj, o)) < 0)
		return mo_error_set(err, -EINVAL, "%s: '%s' is not true or false", o->name, value);
	return 0;
}

static void set_default(const struct mo_option *o, void *obj)
{
	if (is_text(o))
		mo_str_set(str_at(obj, o), NULL);
	else if (o->type == MO_OPTION_BOOL)
		*bool_at(obj, o) = false;
	else
		*int_at(obj, o) = 0;
	if (o->value && set_value(o, obj, o->value, NULL) < 0)
		abort(); /* the table's own default is wrong: found by the first start */
}

char **mo_options_action_at(void *obj, const struct mo_action *a)
{
	return (char **)((char *)obj + a->offset);
}

void mo_options_init(const struct mo_options *o, void *obj)
{
	for (size_t i = 0; i < o->n; i++) {
		if (is_text(&o->items[i]))
			*str_at(obj, &o->items[i]) = NULL;
		set_default(&o->items[i], obj);
	}
	for (size_t i = 0; i < o->n_actions; i++)
		*mo_options_action_at(obj, &o->actions[i]) = NULL;
}

void mo_options_done(const struct mo_options *o, void *obj)
{
	for (size_t i = 0; i < o->n; i++)
		if (is_text(&o->items[i]))
			mo_str_set(str_at(obj, &o->items[i]), NULL);
	for (size_t i = 0; i < o->n_actions; i++)
		mo_str_set(mo_options_action_at(obj, &o->actions[i]), NULL);
}

int mo_options_set(const struct mo_options *o, void *obj, const char *name, const char *value,
		   struct mo_error *err)
{
	const struct mo_option *option = option_find(o, name);
	if (!option) {
		const char *names[OPTIONS_MAX];
		size_t n = MO_MIN(o->n, (size_t)OPTIONS_MAX);
		for (size_t i = 0; i < n; i++)
			names[i] = o->items[i].name;
		const char *near = mo_near_miss(name, names, n);
		return mo_error_set(err, -EINVAL, "unknown key '%s'%s%s%s", name,
				    near ? "; did you mean '" : "", near ? near : "",
				    near ? "'?" : "");
	}
	if (value[0] == '\0' || mo_streq(value, "null") || mo_streq(value, "~")) {
		set_default(option, obj);
		return 0;
	}
	return set_value(option, obj, value, err);
}

/* A scalar from s (no leading blanks) into out; *ret_error says what is wrong. Returns the first
 * byte after it, NULL on error. */
static const char *scan_double(const char *s, struct mo_buf *out, const char **ret_error)
{
	for (s++; *s && *s != '"'; s++) {
		if (*s != '\\') {
			mo_buf_add(out, s, 1);
			continue;
		}
		static const char from[] = "\"\\/nrt", to[] = "\"\\/\n\r\t";
		const char *at = s[1] ? strchr(from, s[1]) : NULL;
		if (!at) {
			*ret_error = "unsupported escape in a double-quoted value: use \\\" \\\\ "
				     "\\n \\r or \\t";
			return NULL;
		}
		mo_buf_add(out, &to[at - from], 1);
		s++;
	}
	if (!*s) {
		*ret_error = "the double-quoted value is not closed";
		return NULL;
	}
	return s + 1;
}

static const char *scan_single(const char *s, struct mo_buf *out, const char **ret_error)
{
	for (s++; *s; s++) {
		if (*s == '\'' && s[1] == '\'')
			s++;
		else if (*s == '\'')
			return s + 1;
		mo_buf_add(out, s, 1);
	}
	*ret_error = "the single-quoted value is not closed";
	return NULL;
}

static const char *scan_plain(const char *s, struct mo_buf *out, const char **ret_error)
{
	if (*s && strchr("[]{}&*!|>%@`,", *s)) {
		*ret_error = "only plain 'key: value' lines are supported here; quote the value if "
			     "it really begins with this character";
		return NULL;
	}
	const char *end = s;
	for (const char *p = s; *p; p++) {
		if (*p == '#' && (p == s || p[-1] == ' ' || p[-1] == '\t'))
			break;
		if (*p == ':' && (p[1] == ' ' || p[1] == '\t' || p[1] == '\0')) {
			*ret_error = "a second ': ' in one line; quote the value";
			return NULL;
		}
		if (*p != ' ' && *p != '\t')
			end = p + 1;
	}
	mo_buf_add(out, s, (size_t)(end - s));
	return end;
}

static const char *skip_blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

static bool ends_here(const char *s)
{
	return *s == '\0' || *s == '#';
}

/* line: one line without newline. seen: one flag per row. */
static int options_line(const struct mo_options *o, void *obj, const char *line, bool *seen,
			int64_t *ret_column, struct mo_error *err)
{
	const char *s = skip_blanks(line);
	*ret_column = s - line + 1;
	if (ends_here(s) || mo_streq(line, "---"))
		return 0;
	if (s != line)
		return mo_error_set(err, -EINVAL,
				    "a key must begin in column 1: nested values are not supported "
				    "here");
	size_t n_key = strcspn(s, ": \t#");
	const char *colon = skip_blanks(s + n_key);
	if (n_key == 0 || *colon != ':' ||
	    !(colon[1] == '\0' || colon[1] == ' ' || colon[1] == '\t'))
		return mo_error_set(err, -EINVAL, "expected 'key: value'");
	_cleanup_(mo_freep) char *key = mo_strndup(s, n_key);
	const struct mo_option *option = option_find(o, key);
	if (option && seen[option - o->items])
		return mo_error_set(err, -EINVAL, "duplicate key '%s'", key);
	if (!option)
		return mo_options_set(o, obj, key, "", err);
	seen[option - o->items] = true;
	s = skip_blanks(colon + 1);
	*ret_column = s - line + 1;
	_cleanup_(mo_buf_done) struct mo_buf value = { 0 };
	const char *problem = NULL;
	bool quoted = *s == '"' || *s == '\'';
	const char *end = *s == '"'    ? scan_double(s, &value, &problem)
			  : *s == '\'' ? scan_single(s, &value, &problem)
				       : scan_plain(s, &value, &problem);
	if (!end)
		return mo_error_set(err, -EINVAL, "%s: %s", key, problem);
	if (!ends_here(skip_blanks(end)))
		return mo_error_set(err, -EINVAL, "%s: unexpected text after the value", key);
	mo_buf_add(&value, "", 0);
	/* "" is an empty string, not the default */
	if (quoted && value.len == 0 && is_text(option)) {
		mo_str_set(str_at(obj, option), "");
		return 0;
	}
	return mo_options_set(o, obj, key, value.data ? value.data : "", err);
}

int mo_options_text(const struct mo_options *o, void *obj, const char *file, const char *text,
		    size_t n, struct mo_error *err)
{
	bool seen[OPTIONS_MAX] = { 0 };
	if (!mo_utf8_valid(text, n) || memchr(text, '\0', n))
		return mo_error_set(err, -EINVAL, "%s: not valid UTF-8 text", file);
	int64_t number = 0;
	for (size_t at = 0; at < n;) {
		const char *nl = memchr(text + at, '\n', n - at);
		size_t len = nl ? (size_t)(nl - (text + at)) : n - at;
		size_t used = len > 0 && text[at + len - 1] == '\r' ? len - 1 : len;
		_cleanup_(mo_freep) char *line = mo_strndup(text + at, used);
		at += len + 1;
		number++;
		_cleanup_(mo_error_done) struct mo_error e = { 0 };
		int64_t column = 1;
		int r = options_line(o, obj, line, seen, &column, &e);
		if (r < 0) {
			return mo_error_set_at(err, r, number, column, "%s:%lld:%lld: %s", file,
					       (long long)number, (long long)column,
					       mo_error_text(&e, r));
		}
	}
	return 0;
}

int mo_options_file(const struct mo_options *o, void *obj, const char *file, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file(file, OPTIONS_FILE_MAX, &b);
	if (r == -EFBIG)
		return mo_error_set(err, r, "%s: larger than %d bytes", file, OPTIONS_FILE_MAX);
	if (r < 0)
		return mo_error_set(err, r, "%s: %s%s", file, strerror(-r),
				    r == -ENOENT ? "; --example-config prints such a file" : "");
	return mo_options_text(o, obj, file, b.data ? b.data : "", b.len, err);
}

void mo_options_example(const struct mo_options *o, const char *head, struct mo_buf *b)
{
	mo_buf_printf(b, "# %s\n# Each value shown is the default.\n", head);
	for (size_t i = 0; i < o->n; i++) {
		const struct mo_option *p = &o->items[i];
		mo_buf_str(b, "\n# ");
		for (const char *c = p->doc; *c; c++)
			mo_buf_add(b, *c == '\n' ? "\n# " : c, *c == '\n' ? 3 : 1);
		if (p->type == MO_OPTION_WORD) {
			_cleanup_(mo_freep) char *words = words_text(p);
			mo_buf_printf(b, "\n# One of: %s.", words);
		}
		mo_buf_printf(b, "\n#%s:%s%s\n", p->name, p->value ? " " : "",
			      p->value ? p->value : "");
	}
}
