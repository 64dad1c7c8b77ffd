/* JSON for described structs (lib/base/desc.h), through json-c. */
#pragma once
#include <json-c/json.h>
#include "lib/base/buf.h"
#include "lib/base/desc.h"
#include "lib/base/error.h"

/* of a text that is parsed: whoever writes one that is to be read again stays below */
#define WIRE_BYTES_MAX (1024U * 1024 * 1024)

/* Appends obj as one line of JSON (no newline). Valid UTF-8 is guaranteed (bad bytes become
 * U+FFFD), and whatever obj holds, wire_decode() that is not strict takes it. */
void wire_encode(const struct mo_desc *d, const void *obj, struct mo_buf *b);
struct json_object *wire_to_json(const struct mo_desc *d, const void *obj); /* caller puts */
/* Parses text[0..n) as exactly one object of the description; obj must be initialised and is
 * untouched on failure. strict: unknown keys are refused (daemon protocol and REST bodies);
 * otherwise ignored (the store: newer writers). -EINVAL with err (path and what was expected),
 * -E2BIG over a limit, depth at most 32. Trailing bytes and duplicate keys are refused. */
int wire_decode(const struct mo_desc *d, const char *text, size_t n, bool strict, void *obj,
		struct mo_error *err);
/* The same, not strict, of a text that wire_encode() has written: the elements of its lists of
 * structs are taken one by one, so that never more than one of them is a tree. A tree is six
 * times as large as its text. */
int wire_decode_large(const struct mo_desc *d, const char *text, size_t n, void *obj,
		      struct mo_error *err);
int wire_from_json(const struct mo_desc *d, struct json_object *json, bool strict, void *obj,
		   struct mo_error *err);
/* For what a peer has sent, before anything else: may it be read within 50 ms of one core and 64
 * MB? Else -E2BIG. It says nothing about its form. */
int wire_affordable(const char *text, size_t n, struct mo_error *err);
/* Checked parse of any JSON text: depth, size, UTF-8, trailing bytes, duplicate keys. err tells
 * line and column too. */
int wire_parse(const char *text, size_t n, struct json_object **ret, struct mo_error *err);
/* application/problem+json body: {"type":"about:blank","title":...,"status":...,"detail":...}. */
void wire_problem(int status, const char *detail, struct mo_buf *b);
/* Appends a JSON string with quotes. */
void wire_string(const char *s, struct mo_buf *b);
