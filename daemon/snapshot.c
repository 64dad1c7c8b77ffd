/* A snapshot of 8,000 jobs takes 0.4 s to write down. The loop does not wait for it: a forked
 * child has the state as it was at that moment (copied page by page as the parent changes it),
 * writes it to a file and ends; then the store takes the file as its snapshot. The child touches
 * neither sockets nor the database and dies with its parent; what was stored meanwhile stays as
 * records. Nothing is lost when it fails: the records before it are kept, what it left is
 * removed, and it is tried again later. One that does not end (stopped, or a disk that hangs) is
 * killed. */
#include "daemon/snapshot.h"
#include <errno.h>
#include <string.h>
#include "daemon/child.h"
#include "daemon/core/rules/snapshot_pace.h"
#include "daemon/fatal.h"
#include "daemon/journal.h"
#include "daemon/disk.h"
#include "lib/base/assert.h"
#include "lib/base/fd.h"
#include "lib/wire/parse.h"

#define LATE "it is not written within 30 minutes"

struct snapshots {
	struct manager *owner;
	struct child *child;       /* NULL: none is under way */
	int64_t seq;               /* of the one under way */
	struct snapshot_pace pace; /* boot us */
	bool reported;             /* that they fail; until one succeeds */
};

void snapshots_new(struct manager *m)
{
	m->snapshots = mo_alloc(sizeof(*m->snapshots));
	m->snapshots->owner = m;
}

struct snapshots *snapshots_free(struct snapshots *s)
{
	if (s)
		child_free(s->child);
	free(s);
	return NULL;
}

void snapshots_count(struct manager *m, size_t bytes)
{
	snapshot_stored(&m->snapshots->pace, bytes);
}

static void tell(struct manager *m, const char *why)
{
	if (!m->snapshots->reported)
		disk_tell(m, EVENT_STORE_SNAPSHOT,
			  "the state cannot be written down whole (%s): nothing is lost, but the "
			  "records in %s grow; it is tried again each minute",
			  why, m->options->state_dir);
	m->snapshots->reported = true;
}

static void put_off(struct manager *m, const char *why)
{
	struct snapshots *s = m->snapshots;

	store_remove_strays(m->store);
	m->n_snapshot_failures++;
	snapshot_failed(&s->pace, mo_clock_boot_us());
	mo_log(MO_WARNING, NULL, NULL,
	       "snapshot: %s: the records are kept instead, the next try is in a minute", why);
	tell(m, why);
}

static void on_end(void *arg, int error, bool killed)
{
	struct snapshots *s = arg;
	struct manager *m = s->owner;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	s->child = NULL;
	if (m->fatal)
		return;
	if (killed || error != 0) {
		put_off(m, s->pace.late      ? LATE
			   : killed          ? "its process was killed"
			   : error == ENOSPC ? "not enough space on the disk of state_dir"
					     : strerror(error));
		return;
	}
	int64_t bytes = s->pace.bytes;
	int r = store_adopt_snapshot(m->store, s->seq, &bytes, &err);
	if (r == -ENOSPC || r == STORE_NO_SNAPSHOT) {
		put_off(m, mo_error_text(&err, r));
	} else if (r < 0) {
		fatal_stop(m, mo_error_text(&err, r));
	} else {
		snapshot_adopted(&s->pace, bytes);
		m->n_snapshots++;
		s->reported = false;
	}
}

/* In the child. */
static int write_down(void *arg)
{
	const struct snapshots *s = arg;
	const struct manager *m = s->owner;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	journal_snapshot_text(m->journal, manager_state(m), &text);
	if (text.len > WIRE_BYTES_MAX)
		return -EFBIG; /* nobody could read it */
	return store_write_snapshot(m->store, s->seq, text.data, text.len);
}

void snapshots_check(struct manager *m, int64_t now)
{
	struct snapshots *s = m->snapshots;

	mo_assert(s->owner == m && (!s->child || s->pace.under_way));
	if (snapshot_overdue(&s->pace, now)) {
		child_kill(s->child);
		tell(m, LATE);
	}
	if (!snapshot_due(&s->pace, store_records_since_snapshot(m->store), now))
		return;
	s->seq = store_seq(m->store);
	int r = child_start(m->loop, write_down, on_end, s, &s->child);
	if (r < 0) {
		put_off(m, strerror(-r));
		return;
	}
	snapshot_began(&s->pace, now);
	journal_snapshot_taken(m->journal);
}
