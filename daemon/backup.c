/* GET /v1/backup: the whole state as it is now, as one stream. As for a snapshot a forked child has the state as it was at that moment, so the loop does not wait and what is stored
 * meanwhile is not in it. One at a time; a client that is too slow is given up, because the child's memory grows with what changes meanwhile. A backup that was cut shows by its head. */
#include "daemon/api.h"
#include "daemon/forked.h"
#include "daemon/journal.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/wire/backup.h"

static int too_large(const struct manager *m, const struct mo_buf *text, int fd)
{
	_cleanup_(mo_freep) char *why = mo_printf("backup: the state has %zu MiB, and moed --restore reads %lld at most: stop moed, copy %s (cp -a) and start it again; "
						  "such a copy is good as long as nothing was started since", text->len >> 20, (long long)(BACKUP_BYTES_MAX >> 20), m->options->state_dir);

	return forked_problem(fd, 507, why);
}

static int write_down(const struct manager *m, const void *arg, int fd)
{
	const struct state *s = manager_state(m);
	struct mo_buf text = { 0 }, head = { 0 };

	journal_snapshot_text(m->journal, s, &text);
	if ((int64_t)text.len > BACKUP_BYTES_MAX)
		return too_large(m, &text, fd);
	const struct backup_head h = {
		.moe_backup = BACKUP_VERSION, .version = (char *)MO_VERSION, .time = s->time, .epoch = s->epoch, .seq = store_seq(m->store), .jobs = (int64_t)s->n_jobs, .nodes = (int64_t)s->n_nodes,
		.bytes = (int64_t)text.len, .crc32c = mo_crc32c(0, text.data, text.len),
	};
	wire_encode(&backup_head_desc, &h, &head);
	mo_buf_str(&head, "\n");
	int r = forked_status(fd, 200);
	if (r >= 0)
		r = mo_write_all(fd, head.data, head.len);
	return r < 0 ? r : mo_write_all(fd, text.data, text.len);
}

void api_backup(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const char *user = http_caller(r)->user;
	const struct forked_work work = { .kind = FORKED_BACKUP, .user = user, .run = write_down, .content_type = "application/octet-stream" };

	if (forked_answer(m, r, &work))
		mo_log(MO_NOTICE, NULL, NULL, "a backup of the state is given to %s", user ? user : "an admin");
}
