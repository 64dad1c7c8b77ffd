/* The state as one text that moed --restore reads (lib/wire/backup.h). */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/base/buf.h"
#include "lib/http/server.h"

/* text: of a snapshot of the state; seq: of the last record in it. */
struct backup {
	const struct state *state;
	const char *state_dir;
	int64_t seq;
	const struct mo_buf *text;
};
/* Head and text into fd, as a child's answer (forked.h): 507 when the text has more than max bytes.
 * 0 or a negative errno of fd. */
int backup_write(const struct backup *b, int64_t max, int fd);
void api_backup(void *arg, struct http_request *r);
