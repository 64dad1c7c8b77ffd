/* Described struct -> JSON text, written directly: a sync of thousands of notes must not build a
 * tree first. Output is always valid, one line, valid UTF-8. Whatever the struct holds, the
 * store can read it again (decode.c, not strict): what has no form outside is written as null,
 * or as the nearest that has one. */
#include "lib/wire/encode.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/parse.h"
#include "lib/base/utf8.h"
#include "lib/wire/parse.h"

#define KEY_MAX 60 /* longest name in any table */
/* of kept text: what it stands in is nested too, and a reader takes 32 levels in all */
#define RAW_DEPTH_MAX 16

#define AT(type, obj, f) ((const type *)((const char *)(obj) + (f)->offset))
#define COUNT(obj, f) (*(const size_t *)((const char *)(obj) + (f)->count_offset))

void wire_string(const char *s, struct mo_buf *b)
{
	size_t n, start = 0, i = 0;

	if (!s) {
		mo_buf_str(b, "null");
		return;
	}
	n = strlen(s);
	mo_buf_add(b, "\"", 1);
	while (i < n) {
		unsigned char c = (unsigned char)s[i];
		size_t len = c < 0x80 ? 1 : mo_utf8_next(s + i, n - i);

		if (len > 1 || (len == 1 && c >= 0x20 && c != '"' && c != '\\')) {
			i += len;
			i += mo_text_plain(s + i, n - i);
			continue;
		}
		if (i > start)
			mo_buf_add(b, s + start, i - start);
		if (len == 0)
			mo_buf_str(b, "\xef\xbf\xbd"); /* U+FFFD for each bad byte */
		else if (c == '"' || c == '\\')
			mo_buf_add(b, (char[]){ '\\', (char)c }, 2);
		else if (c == '\n')
			mo_buf_str(b, "\\n");
		else if (c == '\t')
			mo_buf_str(b, "\\t");
		else {
			static const char hex[] = "0123456789abcdef";
			mo_buf_add(b, (char[]){ '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] }, 6);
		}
		start = ++i;
	}
	mo_buf_add(b, s + start, n - start);
	mo_buf_add(b, "\"", 1);
}

static void integer(int64_t v, struct mo_buf *b)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t u = v < 0 ? -(uint64_t)v : (uint64_t)v;

	do
		digits[--at] = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		digits[--at] = '-';
	mo_buf_add(b, digits + at, sizeof(digits) - at);
}

static void integer_or_null(int64_t v, struct mo_buf *b)
{
	if (v == MO_NONE)
		mo_buf_str(b, "null");
	else
		integer(v, b);
}

/* digits * 10^-scale as "%.15g" writes it; the last digit is not 0. */
static void decimal(bool negative, int64_t digits, int scale, struct mo_buf *b)
{
	char d[24] = "", text[40];
	int n = 0, k = 0;

	mo_assert(digits > 0 && scale >= 0); /* 0 is written elsewhere */
	for (int64_t rest = digits; rest; rest /= 10)
		n++;
	for (int i = n; i-- > 0; digits /= 10)
		d[i] = (char)('0' + digits % 10);
	if (negative)
		text[k++] = '-';
	int exponent = n - 1 - scale;
	bool scientific = exponent < -4;
	int before = scientific ? 1 : MO_MAX(n - scale, 0);
	if (before == 0)
		text[k++] = '0';
	for (int i = 0; i < before; i++)
		text[k++] = d[i];
	if (before < n)
		text[k++] = '.';
	for (int zeros = scientific ? 0 : scale - n; zeros > 0; zeros--)
		text[k++] = '0';
	for (int i = before; i < n; i++)
		text[k++] = d[i];
	if (scientific)
		k += snprintf(text + k, sizeof(text) - (size_t)k, "e-%02d", -exponent);
	mo_buf_add(b, text, (size_t)k);
}

/* Numbers of up to 15 digits, which is what engines print: the smallest scale at which an
 * integer reads back as v (m / 10^k is rounded correctly, so this is what a reader gets). Ten
 * times as fast as printing and reading. False: v is not one of those. */
static bool real_short(double v, struct mo_buf *b)
{
	double a = fabs(v), power = 1;

	if (a == 0 || a >= 1e15)
		return false;
	for (int scale = 0; scale <= 22 && a * power < 1e15; scale++, power *= 10) {
		int64_t m = (int64_t)(a * power + 0.5);
		if (m == 0 || (double)m / power != a)
			continue;
		decimal(v < 0, m, scale, b);
		return true;
	}
	return false;
}

/* The shortest of 15 to 17 digits that reads back as the same number. */
static void real(double v, struct mo_buf *b)
{
	char text[40];
	double back;

	if (v == MO_NONE_F)
		mo_buf_str(b, "null");
	else if (isnan(v))
		mo_buf_str(b, "\"NaN\"");
	else if (isinf(v))
		mo_buf_str(b, v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else if (!real_short(v, b)) {
		for (int digits = 15; digits <= 17; digits++) {
			snprintf(text, sizeof(text), "%.*g", digits, v);
			if (mo_parse_double(text, &back) == 0 && back == v)
				break;
		}
		mo_buf_str(b, text);
	}
}

static void timestamp(int64_t us, struct mo_buf *b)
{
	char text[32];
	int64_t rest = us % 1000 < 0 ? us % 1000 + 1000 : us % 1000;

	mo_time_format(us, text);
	if (rest)
		mo_buf_printf(b, "\"%.*s%03" PRId64 "Z\"", (int)strlen(text) - 1, text, rest);
	else
		mo_buf_printf(b, "\"%s\"", text);
}

static bool deeper_than(struct json_object *json, int levels)
{
	bool deeper = false;

	if (json_object_is_type(json, json_type_object)) {
		json_object_object_foreach(json, key, member) {
			(void)key;
			deeper |= levels == 0 || deeper_than(member, levels - 1);
		}
	}
	for (size_t i = 0; json_object_is_type(json, json_type_array) &&
			   i < json_object_array_length(json) && !deeper;
	     i++)
		deeper = levels == 0 || deeper_than(json_object_array_get_idx(json, i), levels - 1);
	return deeper;
}

/* Kept text may hold anything: only what parses goes out, on one line. */
static void raw(const char *text, struct mo_buf *b)
{
	struct json_object *json = NULL;

	if (text && wire_parse(text, strlen(text), &json, NULL) == 0 &&
	    !deeper_than(json, RAW_DEPTH_MAX))
		mo_buf_str(b,
			   json_object_to_json_string_ext(json,
							  JSON_C_TO_STRING_PLAIN |
								  JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		mo_buf_str(b, "null");
	json_object_put(json);
}

static void list(const struct mo_field *f, const void *obj, struct mo_buf *b)
{
	mo_buf_add(b, "[", 1);
	for (size_t i = 0; i < COUNT(obj, f); i++) {
		if (i)
			mo_buf_add(b, ",", 1);
		if (f->kind == MO_VEC)
			wire_encode(f->sub, mo_vec_element(f, obj, i), b);
		else if (f->kind == MO_STRS)
			wire_string((*AT(char **, obj, f))[i], b);
		else if (f->kind == MO_REALS)
			real((*AT(double *, obj, f))[i], b);
		else
			integer_or_null((*AT(int64_t *, obj, f))[i], b);
	}
	mo_buf_add(b, "]", 1);
}

static void value(const struct mo_field *f, const void *obj, struct mo_buf *b)
{
	int64_t v;
	int choice;

	switch (f->kind) {
	case MO_BOOL: mo_buf_str(b, *AT(bool, obj, f) ? "true" : "false"); break;
	case MO_TRI:
		mo_buf_str(b, *AT(int8_t, obj, f) < 0 ? "null"
			      : *AT(int8_t, obj, f)   ? "true"
						      : "false");
		break;
	case MO_INT: integer_or_null(*AT(int64_t, obj, f), b); break;
	case MO_ID:
	case MO_TIME:
		v = *AT(int64_t, obj, f);
		if (v == MO_NONE || (v < 0 && f->kind == MO_ID))
			mo_buf_str(b, "null");
		else if (f->kind == MO_TIME)
			timestamp(v, b);
		else
			mo_buf_printf(b, "\"%s-%" PRId64 "\"", f->names[0], v);
		break;
	case MO_REAL: real(*AT(double, obj, f), b); break;
	case MO_STR: wire_string(*AT(char *, obj, f), b); break;
	case MO_ENUM:
		choice = *AT(int, obj, f);
		wire_string(choice >= 0 && (size_t)choice < f->n_names ? f->names[choice] : NULL,
			    b);
		break;
	case MO_STRUCT: wire_encode(f->sub, AT(void, obj, f), b); break;
	case MO_OPT:
		if (*AT(void *, obj, f))
			wire_encode(f->sub, *AT(void *, obj, f), b);
		else
			mo_buf_str(b, "null");
		break;
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: list(f, obj, b); break;
	case MO_RAWJSON: raw(*AT(char *, obj, f), b); break;
	}
}

/* As after mo_desc_init. A struct in place is always written. */
static bool unknown(const struct mo_field *f, const void *obj)
{
	switch (f->kind) {
	case MO_BOOL: return !*AT(bool, obj, f);
	case MO_TRI: return *AT(int8_t, obj, f) < 0;
	case MO_INT:
	case MO_ID:
	case MO_TIME: return *AT(int64_t, obj, f) == MO_NONE;
	case MO_REAL: return *AT(double, obj, f) == MO_NONE_F;
	case MO_STR:
	case MO_OPT:
	case MO_RAWJSON: return !*AT(void *, obj, f);
	case MO_ENUM: return *AT(int, obj, f) < 0;
	case MO_STRUCT: return false;
	case MO_VEC:
	case MO_STRS:
	case MO_INTS:
	case MO_REALS: return COUNT(obj, f) == 0;
	}
	return false;
}

/* ,"NAME": in one piece: an object has many more names than long texts. */
static void key(const char *name, bool first, struct mo_buf *b)
{
	char text[KEY_MAX + 4] = ",\"";
	size_t n = strlen(name);

	assert(n <= KEY_MAX);
	memcpy(text + 2, name, n);
	memcpy(text + 2 + n, "\":", 2);
	mo_buf_add(b, text + first, n + 4 - first);
}

void wire_encode(const struct mo_desc *d, const void *obj, struct mo_buf *b)
{
	bool first = true;

	mo_assert(d->fields && obj);
	mo_buf_add(b, "{", 1);
	for (size_t i = 0; i < d->n_fields; i++) {
		const struct mo_field *f = &d->fields[i];

		if (f->omit && unknown(f, obj))
			continue;
		key(f->name, first, b);
		value(f, obj, b);
		first = false;
	}
	mo_buf_add(b, "}", 1);
}

struct json_object *wire_to_json(const struct mo_desc *d, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct json_object *json = NULL;
	int r;

	wire_encode(d, obj, &b);
	r = wire_parse(b.data, b.len, &json, NULL);
	assert(r == 0);
	return json;
}

void wire_problem(int status, const char *detail, struct mo_buf *b)
{
	static const struct {
		int status;
		const char *title;
	} titles[] = {
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 410, "Gone" },
		{ 408, "Request Timeout" },
		{ 409, "Conflict" },
		{ 411, "Length Required" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 421, "Misdirected Request" },
		{ 422, "Unprocessable Content" },
		{ 426, "Upgrade Required" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 507, "Insufficient Storage" },
	};
	const char *title = status < 500 ? "Client Error" : "Server Error";

	for (size_t i = 0; i < ELEMENTSOF(titles); i++)
		if (titles[i].status == status)
			title = titles[i].title;
	mo_buf_printf(b,
		      "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":", title,
		      status);
	wire_string(detail ? detail : title, b);
	mo_buf_str(b, "}");
}
