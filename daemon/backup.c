/* GET /v1/backup: the whole state as it is now, as one stream. As for a snapshot a forked child
 * has the state as it was at that moment, so the loop does not wait and what is stored meanwhile
 * is not in it. One at a time; a client that is too slow is given up, because the child's memory
 * grows with what changes meanwhile. A backup that was cut shows by its head. */
#include "daemon/backup.h"

#include "daemon/forked.h"
#include "daemon/forked_child.h"
#include "daemon/journal.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/wire/backup.h"
#include "lib/wire/encode.h"

static int too_large(const struct backup *b, int64_t max, int fd)
{
	_cleanup_(mo_freep) char *why =
		mo_printf("backup: the state has more than %lld MiB, and moed --restore reads no "
			  "more: stop moed, copy %s (cp -a) and start it again; such a copy is "
			  "good as long as nothing was started since",
			  (long long)(max >> 20), b->state_dir);

	return forked_problem(fd, 507, why);
}

int backup_write(const struct backup *b, int64_t max, int fd)
{
	_cleanup_(mo_buf_done) struct mo_buf head = { 0 };
	const struct mo_buf *text = b->text;
	const struct state *s = b->state;

	if ((int64_t)text->len > max)
		return too_large(b, max, fd);
	const struct backup_head h = {
		.moe_backup = BACKUP_VERSION,
		.version = (char *)MO_VERSION,
		.time = s->time,
		.epoch = s->epoch,
		.seq = b->seq,
		.jobs = (int64_t)s->n_jobs,
		.nodes = (int64_t)s->n_nodes,
		.bytes = (int64_t)text->len,
		.crc32c = mo_crc32c(0, text->data, text->len),
	};
	wire_encode(&backup_head_desc, &h, &head);
	mo_buf_str(&head, "\n");
	int r = forked_status(fd, 200);
	if (r >= 0)
		r = mo_write_all(fd, head.data, head.len);
	return r < 0 ? r : mo_write_all(fd, text->data, text->len);
}

/* In a child, which ends with it: nothing is freed. */
static int write_down(const struct manager *m, const void *arg, int fd)
{
	struct mo_buf text = { 0 };

	journal_snapshot_text(m->journal, manager_state(m), &text);
	return backup_write(&(struct backup){ manager_state(m), m->options->state_dir,
					      store_seq(m->store), &text },
			    BACKUP_BYTES_MAX, fd);
}

void api_backup(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const char *user = http_caller(r)->user;
	const struct forked_work work = { .kind = FORKED_BACKUP,
					  .user = user,
					  .run = write_down,
					  .content_type = "application/octet-stream" };

	if (forked_answer(m, r, &work))
		mo_log(MO_NOTICE, NULL, NULL, "a backup of the state is given to %s",
		       user ? user : "an admin");
}
