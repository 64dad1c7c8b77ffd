/* Described structs (lib/base/desc.h) -> JSON. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/desc.h"

struct json_object;

/* Appends obj as one line of JSON (no newline). Valid UTF-8 is guaranteed (bad bytes become
 * U+FFFD), and whatever obj holds, wire_decode() that is not strict takes it. */
void wire_encode(const struct mo_desc *d, const void *obj, struct mo_buf *b);
struct json_object *wire_to_json(const struct mo_desc *d, const void *obj); /* caller puts */
/* application/problem+json body: {"type":"about:blank","title":...,"status":...,"detail":...}. */
void wire_problem(int status, const char *detail, struct mo_buf *b);
/* Appends a JSON string with quotes. */
void wire_string(const char *s, struct mo_buf *b);
