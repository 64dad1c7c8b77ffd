/* See scrub.h. */
#include "cli/scrub.h"

#include <string.h>

#include "cli/value.h"
#include "lib/model/mask.h"

static struct json_object *masked_text(struct json_object *text)
{
	_cleanup_(mo_freep) char *masked = mo_mask_text(json_object_get_string(text));

	return json_object_new_string(masked);
}

static bool is_secret(const char *name)
{
	return name && (mo_mask_variable(name) || mo_mask_argument(name));
}

static struct json_object *list(struct json_object *doc)
{
	struct json_object *copy = json_object_new_array();
	bool hidden = false; /* what comes is the value of --name */

	for (size_t i = 0; i < js_len(doc); i++) {
		struct json_object *word = js_at(doc, i);
		const char *text = json_object_is_type(word, json_type_string)
					   ? json_object_get_string(word)
					   : NULL;

		json_object_array_add(copy, hidden && text && *text != '-'
						    ? json_object_new_string(MO_MASKED)
						    : scrubbed(word));
		hidden = text && strncmp(text, "--", 2) == 0 && !strchr(text, '=') &&
			 mo_mask_argument(text);
	}
	return copy;
}

static struct json_object *object(struct json_object *doc)
{
	struct json_object *copy = json_object_new_object();
	const char *name = js_str(doc, "name");
	bool secret = is_secret(name ? name : js_str(doc, "key"));

	json_object_object_foreach(doc, key, v) {
		bool hidden = secret && v && strcmp(key, "value") == 0;

		json_object_object_add(copy, key,
				       hidden ? json_object_new_string(MO_MASKED) : scrubbed(v));
	}
	return copy;
}

struct json_object *scrubbed(struct json_object *doc)
{
	switch (json_object_get_type(doc)) {
	case json_type_object: return object(doc);
	case json_type_array: return list(doc);
	case json_type_string: return masked_text(doc);
	default: return json_object_get(doc);
	}
}
