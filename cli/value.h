/* Reading REST documents: missing and null members are "unknown" (MO_NONE, MO_NONE_F, NULL). */
#pragma once
#include <json-c/json.h>
#include "lib/base/desc.h"

/* "checkpoint.iteration"; NULL when missing or null */
struct json_object *js_get(struct json_object *o, const char *path);
const char *js_str(struct json_object *o, const char *path); /* borrowed; NULL */
int64_t js_int(struct json_object *o, const char *path);
/* understands "NaN" and infinities */
double js_real(struct json_object *o, const char *path);
size_t js_len(struct json_object *array);                       /* 0 for NULL */
struct json_object *js_at(struct json_object *array, size_t i); /* NULL behind the end */
struct json_object *js_items(struct json_object *doc);          /* doc.items */
