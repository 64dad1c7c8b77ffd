/* STATE/webhooks.sent: how far each webhook was sent events. Not synced: what a loss of power takes
 * back is sent again. */
#pragma once
#include "lib/base/desc.h"

struct webhook_sent {
	char *name;
	int64_t next; /* seq that it is to be sent next */
};
struct webhooks_sent {
	struct webhook_sent *items;
	size_t n_items;
};
extern const struct mo_desc webhook_sent_desc, webhooks_sent_desc;
MO_DEFINE_DONE(webhooks_sent)

/* Into an initialised one; empty when there is no such file, or it cannot be read. */
void webhooks_sent_read(const char *state_dir, struct webhooks_sent *ret);
/* What went wrong is said in the log. */
void webhooks_sent_write(const char *state_dir, const struct webhooks_sent *all);
