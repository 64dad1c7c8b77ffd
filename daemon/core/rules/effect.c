/* Descriptions of effects. */
#include "daemon/core/rules/effect.h"

#include "lib/model/event_type.h"

const char *const effect_type_names[_FX_N] = {
	"reply", "welcome", "ack", "hold", "wake", "config", "power", "event",
};

static const struct mo_field effect_reply_fields[] = {
	MO_D(effect_reply, status, MO_INT, "status of HTTP"),
	MO_D(effect_reply, text, MO_STR, "what, why, what to do; unset: nothing went wrong",
	     .omit = true),
	MO_D(effect_reply, after_s, MO_INT,
	     "of a refusal: seconds before which it would be refused again", .omit = true),
};
const struct mo_desc effect_reply_desc = MO_DESC(effect_reply, effect_reply_fields);

static const struct mo_field effect_event_fields[] = {
	MO_D_ENUM(effect_event, type, event_type_names, "its row in the registry of events"),
	MO_D_SUB(effect_event, event, MO_OPT, &event_desc, "the event as it is stored"),
};
const struct mo_desc effect_event_desc = MO_DESC(effect_event, effect_event_fields);

static const struct mo_field effect_fields[] = {
	MO_D_ENUM(effect, type, effect_type_names, "what is to be done"),
	MO_D(effect, request, MO_INT, "the shell's handle of who waits for the answer",
	     .omit = true),
	MO_D(effect, job, MO_INT, "number of the job that it is about", .omit = true),
	MO_D(effect, node, MO_STR, "name of the node that it is about", .omit = true),
	MO_D_SUB(effect, reply, MO_OPT, &effect_reply_desc, "answer to a user or an operator",
		 .omit = true),
	MO_D_SUB(effect, welcome, MO_OPT, &agent_welcome_desc, "answer to an agent that registers",
		 .omit = true),
	MO_D_SUB(effect, event, MO_OPT, &effect_event_desc, "what is written to the log",
		 .omit = true),
};
const struct mo_desc effect_desc = MO_DESC(effect, effect_fields);
