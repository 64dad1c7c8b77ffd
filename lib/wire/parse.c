/* Checked parse of JSON text from anywhere. json-c 0.16 alone is too kind even with
 * JSON_TOKENER_STRICT: it takes NaN and Infinity, numbers like 007 and 1., control characters in
 * strings, the last of duplicate keys, cuts keys at \u0000, and clips huge integers; so the text
 * is scanned first, and keys are counted against the tree. */
#include "lib/wire/parse.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/utf8.h"

#define DEPTH_MAX 32
/* json-c counts in int; callers have far lower limits of their own */
#define BYTES_MAX WIRE_BYTES_MAX

/* Bytes that may stand outside strings: structure, true false null, white space; numbers are
 * parsed apart. */
static bool plain_byte(unsigned char c)
{
	static const bool plain[256] = {
		['{'] = true, ['}'] = true, ['['] = true,  [']'] = true,  [':'] = true,
		[','] = true, [' '] = true, ['\t'] = true, ['\r'] = true, ['\n'] = true,
		['t'] = true, ['r'] = true, ['u'] = true,  ['e'] = true,  ['f'] = true,
		['a'] = true, ['l'] = true, ['s'] = true,  ['n'] = true,
	};

	return plain[c];
}

static size_t digits(const char *text, size_t n)
{
	size_t i = 0;

	while (i < n && text[i] >= '0' && text[i] <= '9')
		i++;
	return i;
}

size_t wire_number(const char *text, size_t n)
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

/* Reads the bytes and counts the ':' outside strings: one per key of a valid document.
 * -EINVAL with what is wrong at which byte. */
static int scan(const char *text, size_t n, size_t *ret_keys, struct mo_error *err)
{
	bool in_string = false;
	size_t keys = 0, len;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (!in_string && c == '"') {
			in_string = true;
		} else if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
			len = wire_number(text + i, n - i);
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
			i++; /* json-c judges the escape */
		} else if (c < 0x20) {
			return wrong_at(text, i, err, "control character in a string");
		} else {
			size_t plain = mo_text_plain(text + i, n - i);

			i += plain ? plain - 1 : 0;
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

/* ---- which key is given twice: only when one is known to be ---- */

#define NAMED_KEYS_MAX 100000

struct key_place {
	int64_t object;
	size_t at, len;
	const char *text;
};

static int key_order(const void *a, const void *b)
{
	const struct key_place *x = a, *y = b;
	int r;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	r = memcmp(x->text + x->at, y->text + y->at, x->len);
	return r ? r : (x->at > y->at) - (x->at < y->at);
}

/* The keys of a valid document, each with the number of its object. */
static size_t list_keys(const char *text, size_t n, struct key_place *keys)
{
	int64_t stack[DEPTH_MAX + 1] = { 0 }, last = 0;
	size_t depth = 0, n_keys = 0;

	for (size_t i = 0; i < n && n_keys < NAMED_KEYS_MAX; i++) {
		size_t begin = i + 1, after;

		if ((text[i] == '{' || text[i] == '[') && depth < DEPTH_MAX)
			stack[++depth] = ++last;
		else if ((text[i] == '}' || text[i] == ']') && depth > 0)
			depth--;
		if (text[i] != '"')
			continue;
		for (i++; i < n && text[i] != '"'; i++)
			i += text[i] == '\\';
		for (after = i + 1; after < n && strchr(" \t\r\n", text[after]);)
			after++;
		if (after < n && text[after] == ':')
			keys[n_keys++] = (struct key_place){
				.object = stack[depth], .at = begin, .len = i - begin, .text = text
			};
	}
	return n_keys;
}

static int given_twice(const char *text, size_t n, size_t n_keys, struct mo_error *err)
{
	_cleanup_(mo_freep) struct key_place *keys =
		mo_alloc_array(MO_MIN(n_keys, (size_t)NAMED_KEYS_MAX) + 1, sizeof(*keys));
	_cleanup_(mo_freep) char *what = NULL;
	size_t found = list_keys(text, n, keys), first = SIZE_MAX, len = 0;

	qsort(keys, found, sizeof(*keys), key_order);
	for (size_t i = 1; i < found; i++)
		if (keys[i].object == keys[i - 1].object && keys[i].len == keys[i - 1].len &&
		    memcmp(text + keys[i].at, text + keys[i - 1].at, keys[i].len) == 0 &&
		    keys[i].at < first) {
			first = keys[i].at;
			len = keys[i].len;
		}
	if (first == SIZE_MAX) /* written in two ways (\u0061 and a), or too far behind */
		return mo_error_set(err, -EINVAL, "JSON: a key is given twice in one object");
	what = mo_printf("key '%.*s' is given twice in one object, the second time",
			 (int)MO_MIN(len, (size_t)80), text + first);
	return wrong_at(text, first - 1, err, what);
}

static void tokener_freep(struct json_tokener **t)
{
	if (*t) /* json-c 0.16 does not take NULL */
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

	assert(ret && (text || n == 0));
	if (n > BYTES_MAX)
		return mo_error_set(err, -E2BIG, "JSON: %zu bytes are too many", n);
	r = scan(text, n, &keys, err);
	if (r < 0)
		return r;
	tok = json_tokener_new_ex(DEPTH_MAX);
	if (!tok)
		abort();
	/* trailing bytes are allowed to the tokener, because it may be given the end of a number
	 * only by one more byte */
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
					    JSON_TOKENER_ALLOW_TRAILING_CHARS);
	json = json_tokener_parse_ex(tok, text, (int)n);
	e = json_tokener_get_error(tok);
	end = json_tokener_get_parse_end(tok);
	if (e == json_tokener_continue) {
		json = json_tokener_parse_ex(tok, "", 1);
		e = json_tokener_get_error(tok);
		end = n;
	}
	if (e == json_tokener_error_depth)
		return mo_error_set(err, -EINVAL, "JSON: nested deeper than %d at byte %zu",
				    DEPTH_MAX, end);
	if (e == json_tokener_continue)
		return mo_error_set(err, -EINVAL, "JSON: the text ends too early (%zu bytes)", n);
	if (e != json_tokener_success)
		return wrong_at(text, end, err, json_tokener_error_desc(e));
	while (end < n && strchr(" \t\r\n", text[end]))
		end++;
	if (end < n)
		return wrong_at(text, end, err, "something follows the document");
	if (count_keys(json) != keys)
		return given_twice(text, n, keys, err);
	*ret = TAKE_PTR(json);
	return 0;
}
