/* See webhooks_sent.h. */
#include "daemon/webhooks_sent.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define BYTES_MAX 65536
#define NAME "webhooks.sent"

static const struct mo_field webhook_sent_fields[] = {
	MO_D(webhook_sent, name, MO_STR, "of the webhook"),
	MO_D(webhook_sent, next, MO_INT, "seq that it is to be sent next"),
};
const struct mo_desc webhook_sent_desc = MO_DESC(webhook_sent, webhook_sent_fields);
static const struct mo_field webhooks_sent_fields[] = {
	MO_D_VEC(webhooks_sent, items, &webhook_sent_desc, "all of them"),
};
const struct mo_desc webhooks_sent_desc = MO_DESC(webhooks_sent, webhooks_sent_fields);

void webhooks_sent_read(const char *state_dir, struct webhooks_sent *ret)
{
	_cleanup_(mo_freep) char *path = mo_path(state_dir, NAME);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (mo_read_file(path, BYTES_MAX, &b) >= 0)
		(void)wire_decode(&webhooks_sent_desc, b.data ? b.data : "", b.len, false, ret,
				  NULL);
}

void webhooks_sent_write(const char *state_dir, const struct webhooks_sent *all)
{
	_cleanup_(mo_freep) char *path = mo_path(state_dir, NAME);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(&webhooks_sent_desc, all, &b);
	int r = mo_write_file(path, b.data, b.len, 0600, false);
	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL,
		       "%s: %s: after a start webhooks are sent the newest events again", path,
		       strerror(-r));
}
