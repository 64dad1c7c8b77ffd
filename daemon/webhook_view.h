/* What is shown of a webhook: what it is sent, how far it is, and its newest tries. */
#pragma once
#include "lib/base/desc.h"

/* One try. */
struct webhook_delivery {
	int64_t time; /* when it began */
	int64_t first, last, events;
	int64_t status; /* of HTTP; MO_NONE: there was no answer, and why: */
	char *error;
	int result; /* enum webhook_result */
	int64_t ms;
	bool test;
};
#define WEBHOOK_DELIVERIES_KEPT 20
struct webhook_view {
	char *name, *host;
	bool is_signed;
	char **types, **jobs;
	size_t n_types, n_jobs;
	int format;
	int64_t next, waiting, failures, due_at;
	int64_t delivered, refused, failed, missed; /* since the start */
	struct webhook_delivery *deliveries;
	size_t n_deliveries;
};
extern const struct mo_desc webhook_delivery_desc, webhook_view_desc;
