/* The registry of events (event_types.def): what an event of each type is, how loud it is, and
 * what a person should do. From here come the journal's levels and MESSAGE_IDs, the entries of
 * units/moe.catalog, the table of docs/events.md and `moectl explain event`.
 * The type of a stored event stays text: one that another version wrote is read and shown, though
 * nothing is known of it here. */
#pragma once
#include "lib/base/desc.h"

enum event_type {
#define EVENT(name, ...) EVENT_##name,
#include "lib/model/event_types.def"
#undef EVENT
	_EVENT_TYPE_N
};

/* The numbers are the journal's priorities. */
enum event_level { EVENT_ERROR = 3, EVENT_WARNING, EVENT_NOTICE, EVENT_INFO, _EVENT_LEVEL_N };
extern const char *const event_level_names[_EVENT_LEVEL_N];

/* Fields are those of event_types.def. */
struct event_about {
	char *type;
	int level;
	char *message_id; /* 32 hex digits, or NULL */
	char *data, *subject, *means, *next;
};
extern const struct mo_desc event_about_desc;
extern const struct event_about event_registry[_EVENT_TYPE_N];
extern const char *const event_type_names[_EVENT_TYPE_N]; /* their types alone */

/* NULL: of another version. */
const struct event_about *event_about(const char *type);
/* Is this a key that data of such events may have? */
bool event_has_key(const struct event_about *about, const char *key, size_t n);
