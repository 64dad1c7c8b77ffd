/* Described structs (lib/base/desc.h) -> JSON: records on the disk, messages between daemons, REST
 * documents, `moectl --json`. decode.h is the way back.
 *
 * What goes out is one line of valid UTF-8 with every field in the order of its table, but those
 * marked `omit` that are unknown or empty. What comes from users' files and ranks' lines may be any
 * bytes: bad ones become U+FFFD, real numbers that JSON lacks become strings.
 *
 * What never happens: something is written that wire_decode(), not strict, refuses; a text that is
 * kept as JSON (MO_RAWJSON) goes out unchecked. */
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
