/* Checked parse of JSON text from anywhere. json-c 0.16 alone is too kind even with JSON_TOKENER_STRICT: it takes NaN and Infinity, numbers like 007 and 1., control characters in strings, the last of
 * duplicate keys, cuts keys at \u0000, and clips huge integers; so the text is scanned first, and keys are counted against the tree. */
#include "lib/wire/json.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"

#define DEPTH_MAX 32
#define BYTES_MAX (1024U * 1024 * 1024)   /* json-c counts in int; callers have far lower limits of their own */

/* Bytes that may stand outside strings: structure, true false null, white space; numbers are looked at apart. */
static bool plain_byte(unsigned char c)
{
	return c && strchr("{}[]:,truefalsn \t\r\n", c);
}

static size_t digits(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && text[i] >= '0' && text[i] <= '9')
		i++;
	return i;
}

/* Length of the number of RFC 8259 at text, 0 = none. */
static size_t number(const char *text, size_t n)
{
	size_t i = n > 0 && text[0] == '-', more = digits(text + i, n - i);

	if (more == 0 || (text[i] == '0' && more > 1))
		return 0;
	i += more;
	if (i < n && text[i] == '.') {
		more = digits(text + i + 1, n - i - 1);
		if (more == 0)
			return 0;
		i += 1 + more;
	}
	if (i < n && (text[i] == 'e' || text[i] == 'E')) {
		i++;
		i += i < n && (text[i] == '+' || text[i] == '-');
		more = digits(text + i, n - i);
		if (more == 0)
			return 0;
		i += more;
	}
	return i;
}

/* -EINVAL with what is wrong at which byte, and its place by line and column. */
static int wrong_at(const char *text, size_t at, struct mo_error *err, const char *what)
{
	int64_t line = 1, column = 1;

	for (size_t i = 0; i < at; i++) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	return mo_error_set_at(err, -EINVAL, line, column, "JSON: %s at byte %zu", what, at);
}

/* Looks at the bytes and counts the ':' outside strings: one per key of a valid document. -EINVAL with what is wrong at which byte. */
static int scan(const char *text, size_t n, size_t *ret_keys, struct mo_error *err)
{
	bool in_string = false;
	size_t keys = 0, len;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (!in_string && c == '"') {
			in_string = true;
		} else if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
			len = number(text + i, n - i);
			if (len == 0)
				return wrong_at(text, i, err, "not a number");
			i += len - 1;
		} else if (!in_string) {
			if (!plain_byte(c))
				return wrong_at(text, i, err, "unexpected character");
			keys += c == ':';
		} else if (c == '"') {
			in_string = false;
		} else if (c == '\\') {
			if (n - i > 5 && memcmp(text + i, "\\u0000", 6) == 0)
				return wrong_at(text, i, err, "a string with a NUL character");
			i++;   /* json-c judges the escape */
		} else if (c < 0x20) {
			return wrong_at(text, i, err, "control character in a string");
		}
	}
	if (!mo_utf8_valid(text, n))
		return mo_error_set(err, -EINVAL, "JSON: not valid UTF-8");
	*ret_keys = keys;
	return 0;
}

static size_t count_keys(struct json_object *json)
{
	size_t n = 0;

	if (json_object_is_type(json, json_type_object)) {
		json_object_object_foreach(json, key, value) {
			(void)key;
			n += 1 + count_keys(value);
		}
	} else if (json_object_is_type(json, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(json); i++)
			n += count_keys(json_object_array_get_idx(json, i));
	}
	return n;
}

static void tokener_freep(struct json_tokener **t)
{
	if (*t)   /* json-c 0.16 does not take NULL */
		json_tokener_free(*t);
}

static void json_putp(struct json_object **json)
{
	json_object_put(*json);
}

int wire_parse(const char *text, size_t n, struct json_object **ret, struct mo_error *err)
{
	_cleanup_(tokener_freep) struct json_tokener *tok = NULL;
	_cleanup_(json_putp) struct json_object *json = NULL;
	enum json_tokener_error e;
	size_t keys = 0, end;
	int r;

	if (n > BYTES_MAX)
		return mo_error_set(err, -E2BIG, "JSON: %zu bytes are too many", n);
	r = scan(text, n, &keys, err);
	if (r < 0)
		return r;
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		abort();
	/* trailing bytes are allowed to the tokener, because it may be told the end of a number only by one more byte */
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 | JSON_TOKENER_ALLOW_TRAILING_CHARS);
	json = json_tokener_parse_ex(tok, text, (int)n);
	e = json_tokener_get_error(tok);
	end = json_tokener_get_parse_end(tok);
	if (e == json_tokener_continue) {
		json = json_tokener_parse_ex(tok, "", 1);
		e = json_tokener_get_error(tok);
		end = n;
	}
	if (e == json_tokener_error_depth)
		return mo_error_set(err, -EINVAL, "JSON: nested deeper than %d at byte %zu", DEPTH_MAX, end);
	if (e == json_tokener_continue)
		return mo_error_set(err, -EINVAL, "JSON: the text ends too early (%zu bytes)", n);
	if (e != json_tokener_success)
		return wrong_at(text, end, err, json_tokener_error_desc(e));
	while (end < n && strchr(" \t\r\n", text[end]))
		end++;
	if (end < n)
		return wrong_at(text, end, err, "something follows the document");
	if (count_keys(json) != keys)
		return mo_error_set(err, -EINVAL, "JSON: a key is given twice in one object");
	*ret = TAKE_PTR(json);
	return 0;
}
