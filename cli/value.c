/* Tolerant getters for REST documents (see value.h). */
#include "cli/value.h"

#include <string.h>

#include "lib/base/parse.h"

struct json_object *js_get(struct json_object *o, const char *path)
{
	while (o && *path) {
		char key[64];
		size_t n = strcspn(path, ".");
		if (n >= sizeof(key) || !json_object_is_type(o, json_type_object))
			return NULL;
		memcpy(key, path, n);
		key[n] = 0;
		if (!json_object_object_get_ex(o, key, &o))
			return NULL;
		path += path[n] ? n + 1 : n;
	}
	return o;
}

const char *js_str(struct json_object *o, const char *path)
{
	struct json_object *v = js_get(o, path);
	return v && json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}

int64_t js_int(struct json_object *o, const char *path)
{
	struct json_object *v = js_get(o, path);
	return v && json_object_is_type(v, json_type_int) ? json_object_get_int64(v) : MO_NONE;
}

double js_real(struct json_object *o, const char *path)
{
	struct json_object *v = js_get(o, path);
	double d = MO_NONE_F;
	if (v && json_object_is_type(v, json_type_string))
		return mo_parse_double(json_object_get_string(v), &d) < 0 ? MO_NONE_F : d;
	if (v &&
	    (json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int)))
		return json_object_get_double(v);
	return MO_NONE_F;
}

size_t js_len(struct json_object *array)
{
	return array && json_object_is_type(array, json_type_array)
		       ? json_object_array_length(array)
		       : 0;
}

struct json_object *js_at(struct json_object *array, size_t i)
{
	return i < js_len(array) ? json_object_array_get_idx(array, i) : NULL;
}

struct json_object *js_items(struct json_object *doc)
{
	return js_get(doc, "items");
}
