/* What the registry says of an event and is not so; shared by the unit tests of the core and the
 * simulator. */
#pragma once
#include <string.h>

#include "lib/model/event_type.h"
#include "lib/model/job.h"
#include "lib/wire/parse.h"

/* NULL = its type has an entry, and its data only keys that this names; the caller frees. */
static inline char *event_wrong(const struct event *e)
{
	const struct event_about *about = event_about(e->type);
	struct json_object *data = NULL;
	char *wrong = NULL;

	if (!about)
		return mo_printf("event %s is not in the registry", e->type);
	if (e->data && wire_parse(e->data, strlen(e->data), &data, NULL) < 0)
		return mo_printf("event %s: its data is no JSON: %s", e->type, e->data);
	if (!data)
		return NULL;
	json_object_object_foreach(data, key, value) {
		(void)value;
		if (!wrong && !event_has_key(about, key, strlen(key)))
			wrong = mo_printf("event %s: the registry has no key %s", e->type, key);
	}
	json_object_put(data);
	return wrong;
}
