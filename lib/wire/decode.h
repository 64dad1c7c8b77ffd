/* JSON -> described structs (lib/base/desc.h). */
#pragma once
#include "lib/base/desc.h"
#include "lib/base/error.h"

struct json_object;

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
