/* Documents without what looks like a credential (lib/model/mask.h), at any depth. */
#pragma once
#include <json-c/json.h>

/* A copy; caller puts it. Texts are masked by their form, `value` beside a `name` or `key` by that
 * name, and in lists of words the one behind --name. NULL stays NULL. */
struct json_object *scrubbed(struct json_object *doc);
