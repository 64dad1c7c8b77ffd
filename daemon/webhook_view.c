/* See webhook_view.h. */
#include "daemon/webhook_view.h"

#include "daemon/core/rules/webhook.h"

static const struct mo_field webhook_delivery_fields[] = {
	MO_D(webhook_delivery, time, MO_TIME, "when it began"),
	MO_D(webhook_delivery, first, MO_INT, "seq of the first event; null: of a test"),
	MO_D(webhook_delivery, last, MO_INT, "seq of the last one"),
	MO_D(webhook_delivery, events, MO_INT, "how many they are"),
	MO_D(webhook_delivery, status, MO_INT, "HTTP status of the answer; null: there was none"),
	MO_D(webhook_delivery, error, MO_STR, "why there was none", .omit = true),
	MO_D_ENUM(webhook_delivery, result, webhook_result_names,
		  "delivered; refused: the receiver does not take these, they are left; failed: it "
		  "is tried again"),
	MO_D(webhook_delivery, ms, MO_INT, "milliseconds that it took"),
	MO_D(webhook_delivery, test, MO_BOOL, "somebody asked for it"),
};
const struct mo_desc webhook_delivery_desc = MO_DESC(webhook_delivery, webhook_delivery_fields);

static const struct mo_field webhook_view_fields[] = {
	MO_D(webhook_view, name, MO_STR, "name of the webhook"),
	MO_D(webhook_view, host, MO_STR, "where it sends to; the rest of its URL is a secret"),
	MO_DN(webhook_view, is_signed, "signed", MO_BOOL, "deliveries have a signature"),
	MO_D_LIST(webhook_view, types, MO_STRS, "patterns of event types; none: all"),
	MO_D_LIST(webhook_view, jobs, MO_STRS, "patterns of names of jobs; none: all events"),
	MO_D_ENUM(webhook_view, format, webhook_format_names, "what is posted"),
	MO_D(webhook_view, next, MO_INT, "seq of the event that it is to be sent next"),
	MO_D(webhook_view, waiting, MO_INT, "events that it is still to be sent, 50 at most"),
	MO_D(webhook_view, failures, MO_INT, "tries that failed since the last that did not"),
	MO_D(webhook_view, due_at, MO_TIME, "when it is tried again; null: it does not wait",
	     .omit = true),
	MO_D(webhook_view, delivered, MO_INT, "deliveries since the start of the controller"),
	MO_D(webhook_view, refused, MO_INT, "those that the receiver refused"),
	MO_D(webhook_view, failed, MO_INT, "tries that failed"),
	MO_D(webhook_view, missed, MO_INT,
	     "events, of any type, that were not kept until it could be sent them"),
	MO_D_VEC(webhook_view, deliveries, &webhook_delivery_desc, "the newest 20 tries"),
};
const struct mo_desc webhook_view_desc = MO_DESC(webhook_view, webhook_view_fields);
