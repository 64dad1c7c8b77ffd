/* See begin.h. Both begin an incarnation (core/incarnation.h). A restore is marked by
 * DIR/restoring until it is whole, so that one that was cut short is never taken for an empty
 * state. Run by root for the unit, it becomes the unit's user first, so that the files belong to
 * him; the backup is opened before. */
#include "daemon/begin.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/core/rules/turn.h"
#include "daemon/core/state/incarnation.h"
#include "daemon/journal.h"
#include "daemon/journal_replay.h"
#include "daemon/owner.h"
#include "lib/base/clock.h"
#include "lib/base/crc32c.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/wire/backup.h"

#define RESTORING "restoring"
#define BEGINNING "beginning" /* the same of --init, which says it again */

static bool exists(const char *dir, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);

	/* What may not be read is not nothing: whoever opens it says why. */
	return mo_access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool begin_there(const char *dir)
{
	return exists(dir, "moe.db") || exists(dir, "store.id");
}

int begin_check(const char *dir, struct mo_error *err)
{
	if (exists(dir, RESTORING))
		return mo_error_set(err, -EBUSY,
				    "%s: a restore was cut short here: empty the directory and run "
				    "'moed --restore FILE' again",
				    dir);
	if (exists(dir, BEGINNING))
		return mo_error_set(err, -EBUSY,
				    "%s: a new state was cut short while it was made: run 'moed "
				    "--init' again",
				    dir);
	if (begin_there(dir))
		return 0;
	return mo_error_set(err, -ENOENT,
			    "%s: no state of a controller is here, and a start makes none: is its "
			    "disk mounted? A lost state comes back with 'moed --restore FILE', a "
			    "new controller begins with 'moed --init'",
			    dir);
}

int begin_begun(const char *dir, const struct store *store, struct mo_error *err)
{
	if (store_seq(store) > 0)
		return 0;
	return mo_error_set(err, -EBADMSG,
			    "%s/moe.db: it holds no record, not even that with which each state "
			    "begins: its log (moe.db-wal) was cut or removed: restore the state "
			    "directory from a backup; if no controller ever ran on it, empty the "
			    "directory and run 'moed --init' again",
			    dir);
}

static int append(struct store *store, struct journal *journal, struct core *core, struct record *r,
		  struct mo_error *err)
{
	int e = core_update(core, r);

	if (e < 0)
		return mo_error_set(err, e,
				    "the beginning of the incarnation is refused by its own state");
	char *text = journal_record_text(journal, r);
	e = store_append(store, &text, 1, err);
	free(text);
	return e;
}

/* The backup's state, with the incarnation begun, becomes the snapshot that the first start
 * reads. */
static int put_snapshot(struct store *store, struct journal *journal, const struct core *core,
			struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	int64_t bytes;

	journal_snapshot_text(journal, core_state(core), &text);
	int r = store_write_snapshot(store, store_seq(store), text.data, text.len);
	if (r < 0)
		return mo_error_set(err, r, "the state cannot be written: %s", strerror(-r));
	r = store_adopt_snapshot(store, store_seq(store), &bytes, err);
	return r > 0 ? -EIO : r;
}

struct record begin_incarnation(const struct state *s, int64_t backup_time)
{
	struct record r;

	record_init(&r, REC_RESTORED);
	r.time = s->time;
	r.restored->epoch = incarnation_epoch(s->epoch, mo_clock_wall_us());
	r.restored->from_backup = backup_time != MO_NONE;
	r.restored->backup_at = backup_time;
	return r;
}

static int make(const char *dir, struct journal *journal, struct core *core, int64_t backup_time,
		struct mo_error *err)
{
	_cleanup_(store_freep) struct store *store = NULL;
	struct record r = begin_incarnation(core_state(core), backup_time);

	int e = store_open(dir, &store, err);
	if (e >= 0)
		e = append(store, journal, core, &r, err);
	mo_desc_done(&record_desc, &r);
	return e >= 0 && backup_time != MO_NONE ? put_snapshot(store, journal, core, err) : e;
}

/* What an earlier --init left that was cut short: no controller ever started on it. */
static void clear_beginning(const char *dir)
{
	static const char *const names[] = { "moe.db", "moe.db-wal", "moe.db-shm", "moe.db-open",
					     "store.id" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", names[i]);
		mo_remove_at(AT_FDCWD, path, 0);
	}
}

/* From the marker to its removal a start refuses the directory. */
static int make_new(const char *dir, struct mo_error *err)
{
	_cleanup_(mo_freep) char *marker = mo_path(dir, BEGINNING);
	_cleanup_(core_freep) struct core *core = core_new(&core_config_default);
	struct journal *journal = journal_new();
	bool again = mo_access(marker, F_OK) == 0;
	int r = mo_mkdir_p(dir, 0700, true);

	if (r < 0 || (r = mo_write_file(marker, "", 0, 0600, true)) < 0)
		mo_error_set(err, r,
			     "%s: %s: make the state directory writable or choose another "
			     "state_dir",
			     dir, strerror(-r));
	if (r >= 0 && again)
		clear_beginning(dir);
	if (r >= 0)
		r = make(dir, journal, core, MO_NONE, err);
	if (r >= 0 && mo_remove_at(AT_FDCWD, marker, 0) < 0)
		r = mo_error_set(err, -errno, "%s: %s", marker, strerror(errno));
	journal_free(journal);
	return r;
}

static int init(const struct options *o, struct mo_error *err)
{
	bool again = exists(o->state_dir, BEGINNING);

	if (exists(o->state_dir, RESTORING) || (begin_there(o->state_dir) && !again))
		return mo_error_set(err, -EEXIST,
				    "%s: it holds the state of a controller already: nothing was "
				    "changed",
				    o->state_dir);
	int r = owner_make(o, err);
	if (r >= 0)
		r = make_new(o->state_dir, err);
	if (r >= 0)
		printf("%s: ready for a new controller\n", o->state_dir);
	return r;
}

static int load(const char *file, const struct mo_buf *b, struct journal *journal,
		struct core *core, struct backup_head *head, struct mo_error *err)
{
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	const char *end =
		b->len ? memchr(b->data, '\n', MO_MIN(b->len, (size_t)BACKUP_HEAD_MAX)) : NULL;
	size_t line = end ? (size_t)(end - b->data) : 0;
	int r = backup_head_read(b->data ? b->data : "", line, head, &why);

	if (r < 0)
		return mo_error_set(err, r, "%s: %s", file, mo_error_text(&why, r));
	if ((int64_t)(b->len - line - 1) != head->bytes ||
	    (int64_t)mo_crc32c(0, end + 1, b->len - line - 1) != head->crc32c)
		return mo_error_set(err, -EBADMSG,
				    "%s: the backup is cut or damaged (%zu of %lld bytes, or their "
				    "checksum): take another one",
				    file, b->len - line - 1, (long long)head->bytes);
	r = journal_load(journal, core, end + 1, b->len - line - 1, &why);
	return r < 0 ? mo_error_set(err, r, "%s: %s", file, mo_error_text(&why, r)) : 0;
}

static void tell(const struct options *o, const struct backup_head *head, const struct state *s)
{
	char when[32];

	printf("%s: restored from a backup of %s: %zu jobs, %zu nodes. Jobs that run are adopted "
	       "as their agents come back; new ones begin with j-%lld.\n"
	       "Unknown: what happened after the backup. Tokens revoked since are valid again: "
	       "moectl token list. Steps of later jobs and attempts are kept until they end or you "
	       "decide: moectl resolve.\n",
	       o->state_dir, mo_time_format(head->time, when), s->n_jobs, s->n_nodes,
	       (long long)s->next_job);
}

/* One that is too large is refused before it is read. */
static int read_backup(const char *path, struct mo_buf *b, struct mo_error *err)
{
	const size_t max = (size_t)BACKUP_BYTES_MAX + BACKUP_HEAD_MAX;
	struct stat st;
	int r = mo_stat(path, &st) < 0    ? -errno
		: st.st_size > (off_t)max ? -EFBIG
					  : mo_read_file(path, max, b);

	if (r == -EFBIG)
		return mo_error_set(err, r,
				    "%s: it is larger than any backup (%lld MiB): give the file "
				    "that 'moectl backup' wrote",
				    path, (long long)(BACKUP_BYTES_MAX >> 20));
	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

static int restore(const struct options *o, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf file = { 0 };
	_cleanup_(mo_freep) char *marker = mo_path(o->state_dir, RESTORING);
	_cleanup_(core_freep) struct core *core = core_new(&core_config_default);
	struct journal *journal = journal_new();
	struct backup_head head;

	mo_desc_init(&backup_head_desc, &head);
	int r = begin_there(o->state_dir) || exists(o->state_dir, RESTORING)
			? mo_error_set(err, -EEXIST,
				       "%s: it holds the state of a controller: a backup is "
				       "restored into an empty directory; move this one away first",
				       o->state_dir)
			: 0;
	if (r >= 0)
		r = read_backup(o->restore, &file, err);
	if (r >= 0)
		r = load(o->restore, &file, journal, core, &head, err);
	if (r >= 0)
		r = owner_make(o, err);
	if (r >= 0 && ((r = mo_mkdir_p(o->state_dir, 0700, true)) < 0 ||
		       (r = mo_write_file(marker, "", 0, 0600, true)) < 0))
		mo_error_set(err, r,
			     "%s: %s: make the state directory writable or choose another "
			     "state_dir",
			     o->state_dir, strerror(-r));
	if (r >= 0)
		r = make(o->state_dir, journal, core, head.time, err);
	if (r >= 0 && mo_remove_at(AT_FDCWD, marker, 0) < 0)
		r = mo_error_set(err, -errno, "%s: %s", marker, strerror(errno));
	if (r >= 0)
		tell(o, &head, core_state(core));
	journal_free(journal);
	mo_desc_done(&backup_head_desc, &head);
	return r;
}

int begin_run(const struct options *o, struct mo_error *err)
{
	if (o->init && o->restore)
		return mo_error_set(err, -EINVAL, "--init and --restore: only one of them");
	return o->init ? init(o, err) : restore(o, err);
}
