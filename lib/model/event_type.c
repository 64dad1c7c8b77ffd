/* See event_type.h. */
#include "lib/model/event_type.h"

#include <string.h>

const char *const event_level_names[_EVENT_LEVEL_N] = {
	"emerg", "alert", "crit", "error", "warning", "notice", "info",
};

/* Described values own their texts; nobody frees these. */
#define EVENT(name, text, loud, id, keys, title, follows, todo) \
	[EVENT_##name] = { .type = (char *)text, \
			   .level = EVENT_##loud, \
			   .message_id = (char *)id, \
			   .data = (char *)keys, \
			   .subject = (char *)title, \
			   .means = (char *)follows, \
			   .next = (char *)todo },
const struct event_about event_registry[_EVENT_TYPE_N] = {
#include "lib/model/event_types.def"
};
#undef EVENT

#define EVENT(name, text, ...) [EVENT_##name] = text,
const char *const event_type_names[_EVENT_TYPE_N] = {
#include "lib/model/event_types.def"
};
#undef EVENT

static const struct mo_field event_about_fields[] = {
	MO_D(event_about, type, MO_STR, "what is stored and sent, such as job.queued"),
	MO_D_ENUM(event_about, level, event_level_names,
		  "how loud it is; the index is the journal's priority"),
	MO_D(event_about, message_id, MO_STR,
	     "class of its journal entry, 32 hex digits; unset: it has none"),
	MO_D(event_about, data, MO_STR,
	     "keys that its data may have, with a space between two; empty: no data"),
	MO_D(event_about, subject, MO_STR, "what happened, as a title"),
	MO_D(event_about, means, MO_STR,
	     "what follows from it; empty: nothing that the title does not say"),
	MO_D(event_about, next, MO_STR, "what a person should do"),
};
const struct mo_desc event_about_desc = MO_DESC(event_about, event_about_fields);

const struct event_about *event_about(const char *type)
{
	for (size_t i = 0; type && i < _EVENT_TYPE_N; i++)
		if (strcmp(event_registry[i].type, type) == 0)
			return &event_registry[i];
	return NULL;
}

bool event_has_key(const struct event_about *about, const char *key, size_t n)
{
	for (const char *p = about->data; *p; p += strcspn(p, " "), p += *p == ' ')
		if (strcspn(p, " ") == n && memcmp(p, key, n) == 0)
			return true;
	return false;
}
