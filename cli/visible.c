/* Control characters as visible text (see visible.h). */
#include "cli/visible.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/utf8.h"

static bool is_plain(unsigned char c, enum visible_kind kind)
{
	return c == '\n' || c == '\t' || (c == '\r' && kind == VISIBLE_OUTPUT) ||
	       (c >= 0x20 && c < 0x7f);
}

/* The code point at c where it steers a terminal and is no byte below 0x80: 0x80 to 0x9f, what ends
 * a line (U+2028, U+2029), and what turns the order of the text around it (U+202a to U+202e,
 * U+2066 to U+2069); 0 else. *ret_len: its bytes. */
static int steering(const unsigned char *c, size_t n, size_t *ret_len)
{
	int point = 0;

	if (n >= 2 && c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) {
		*ret_len = 2;
		return c[1];
	}
	if (n >= 3 && c[0] == 0xe2 && (c[1] & 0xc0) == 0x80 && (c[2] & 0xc0) == 0x80)
		point = 0x2000 | (c[1] & 0x3f) << 6 | (c[2] & 0x3f);
	*ret_len = 3;
	return (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) ? point
											    : 0;
}

void visible_add(struct mo_buf *b, const char *s, size_t n, enum visible_kind kind)
{
	for (size_t at = 0, len; at < n; at += len) {
		const unsigned char *c = (const unsigned char *)s + at;

		for (len = 0; at + len < n && is_plain(c[len], kind); len++)
			;
		if (len) {
			mo_buf_add(b, s + at, len);
			continue;
		}
		int point = steering(c, n - at, &len);
		if (point) {
			mo_buf_printf(b, "\\u%04x", (unsigned)point);
			continue;
		}
		len = MO_MAX(mo_utf8_next(s + at, n - at), 1u);
		if (len > 1)
			mo_buf_add(b, s + at, len);
		else if (*c >= 0xa0) /* not UTF-8, and no control character either */
			mo_buf_add(b, s + at, 1);
		else
			mo_buf_printf(b, "\\x%02x", *c);
	}
}

char *visible(const char *s)
{
	struct mo_buf b = { 0 };

	visible_add(&b, s, strlen(s), VISIBLE_TEXT);
	return b.len ? mo_buf_take(&b) : mo_strdup("");
}

static bool is_visible(const char *s)
{
	for (; *s; s++)
		if (!is_plain((unsigned char)*s, VISIBLE_TEXT))
			return false;
	return true;
}

static void visible_member(struct json_object *o, const char *name)
{
	_cleanup_(mo_freep) char *old = mo_strdup(name), *new = visible(name);
	struct json_object *value = json_object_get(json_object_object_get(o, name));

	json_object_object_del(o, old);
	json_object_object_add(o, new, value);
}

void visible_json(struct json_object *o)
{
	if (json_object_is_type(o, json_type_string)) {
		const char *text = json_object_get_string(o);
		_cleanup_(mo_freep) char *shown = is_visible(text) ? NULL : visible(text);

		if (shown)
			json_object_set_string(o, shown);
	} else if (json_object_is_type(o, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(o); i++)
			visible_json(json_object_array_get_idx(o, i));
	} else if (json_object_is_type(o, json_type_object)) {
		char **odd = NULL;
		size_t n_odd = 0;

		json_object_object_foreach(o, name, value) {
			visible_json(value);
			if (!is_visible(name))
				mo_strs_add(&odd, &n_odd, name);
		}
		for (size_t i = 0; i < n_odd; i++) {
			visible_member(o, odd[i]);
			free(odd[i]);
		}
		free(odd);
	}
}

void print_json_part(const char *text, size_t n)
{
	for (size_t at = 0, len; at < n; at += len) {
		const unsigned char *c = (const unsigned char *)text + at;
		int point = steering(c, n - at, &len);

		if (!point)
			len = 1;
		if (point || *c == 0x7f)
			printf("\\u%04x", point ? (unsigned)point : *c);
		else
			putchar(*c);
	}
}

void print_json(const char *text, size_t n)
{
	print_json_part(text, n);
	putchar('\n');
}

void print_json_doc(struct json_object *doc)
{
	const char *text =
		json_object_to_json_string_ext(doc, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE);

	print_json(text, strlen(text));
}
