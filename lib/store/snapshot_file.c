/* See snapshot_file.h. A file begins with a struct head; nobody reads one under the name that it
 * has while it is written. */
#include "lib/store/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/file.h"
#include "lib/base/parse.h"
#include "lib/base/util.h"
#include "lib/store/ballast.h"
#include "lib/store/checksum.h"

#define WRITE_BYTES (1 << 20) /* written and synced in such pieces, */
/* with rests of so many times what a piece took: records need the disk too */
#define WRITE_REST 3
#define SNAPSHOT_MAX (4LL << 30)
#define SNAPSHOT_PREFIX "snapshot-"
#define SECOND_SUFFIX "-2" /* where the one that counts is of the same record */
#define NEW_SUFFIX ".new"
#define SNAPSHOT_MAGIC "moe-snap"

/* n: bytes of text after it */
struct head {
	char magic[8];
	int64_t seq, n, sum;
};

char *snapshot_file_name(int64_t seq, const char *counts)
{
	_cleanup_(mo_freep) char *name = mo_printf(SNAPSHOT_PREFIX "%lld", (long long)seq);

	mo_assert(seq >= 0);
	return mo_streq(name, counts) ? mo_printf("%s" SECOND_SUFFIX, name) : TAKE_PTR(name);
}

static bool is_snapshot(const char *name)
{
	const char *number = name + strlen(SNAPSHOT_PREFIX),
		   *suffix = mo_starts_with(name, SNAPSHOT_PREFIX)
				     ? number + strspn(number, "0123456789")
				     : number;

	if (suffix == number)
		return false;
	if (mo_starts_with(suffix, SECOND_SUFFIX))
		suffix += strlen(SECOND_SUFFIX);
	return !*suffix || mo_streq(suffix, NEW_SUFFIX);
}

void snapshot_file_remove_others(const char *dir, const char *keep)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, dir, 0);

	for (const char *name; (name = mo_dir_next(d));) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
		if (is_snapshot(name) && !mo_streq(name, keep))
			mo_remove_at(AT_FDCWD, path, 0);
	}
}

int snapshot_file_read(const char *dir, const char *name, const struct snapshot_head *want,
		       struct mo_buf *b, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	struct head head = { 0 };

	int r = mo_read_file(path, SNAPSHOT_MAX, b);
	if (r < 0)
		return mo_error_set(err, r == -ENOENT ? -EBADMSG : r,
				    "%s: %s: the newest snapshot cannot be read: restore the state "
				    "directory from a backup",
				    path, strerror(-r));
	if (b->len >= sizeof(head))
		memcpy(&head, b->data, sizeof(head));
	if (memcmp(head.magic, SNAPSHOT_MAGIC, sizeof(head.magic)) != 0 || head.seq != want->seq ||
	    head.sum != want->sum || head.n != (int64_t)(b->len - sizeof(head)) ||
	    store_checksum(b->data + sizeof(head), b->len - sizeof(head)) != want->sum)
		return mo_error_set(err, -EBADMSG,
				    "%s: the snapshot is damaged (checksum): restore the state "
				    "directory from a backup",
				    path);
	mo_buf_consume(b, sizeof(head));
	return 0;
}

int snapshot_file_check_end(const char *dir, int64_t last, struct mo_error *err)
{
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, dir, 0);

	for (const char *name; (name = mo_dir_next(d));) {
		const char *number = is_snapshot(name) ? name + strlen(SNAPSHOT_PREFIX) : "0";
		_cleanup_(mo_freep) char *digits = mo_strndup(number, strspn(number, "0123456789"));
		int64_t seq = 0;

		if (mo_parse_i64(digits, 0, INT64_MAX, &seq) == 0 && seq > last)
			return mo_error_set(err, -EBADMSG,
					    "%s/moe.db: the database ends with record %lld, but %s "
					    "beside it "
					    "is of a later one: records are lost (moe.db-wal was "
					    "cut or "
					    "removed): restore the state directory from a backup",
					    dir, (long long)last, name);
	}
	return 0;
}

static int write_synced(int fd, const char *text, size_t n)
{
	int r = 0;

	mo_assert(fd >= 0);
	for (size_t at = 0; r >= 0 && at < n; at += WRITE_BYTES) {
		int64_t began = mo_clock_boot_us();
		r = mo_write_all(fd, text + at, MO_MIN(n - at, WRITE_BYTES));
		if (r >= 0 && mo_sync(fd, true) < 0)
			r = -errno;
		mo_clock_rest_ms(
			(int)MO_MIN(WRITE_REST * (mo_clock_boot_us() - began) / 1000, 1000));
	}
	return r;
}

int snapshot_file_write(const char *dir, const char *name, int64_t seq, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "%s", name);
	_cleanup_(mo_freep) char *new = mo_path(dir, "%s" NEW_SUFFIX, name);
	struct head head = { .magic = SNAPSHOT_MAGIC, .seq = seq, .n = (int64_t)n };
	_cleanup_(mo_closep) int at = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0), fd = -1;
	struct statvfs v;

	mo_assert(text && seq >= 0);
	if (n > SNAPSHOT_MAX - sizeof(head))
		return -EFBIG;
	if (at < 0 || mo_space(dir, &v) < 0)
		return -errno;
	if ((int64_t)v.f_bavail * (int64_t)v.f_frsize < BALLAST_FREE_MIN + (int64_t)n)
		return -ENOSPC;
	fd = mo_open_at(AT_FDCWD, new, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return -errno;
	head.sum = store_checksum(text, n);
	int r = mo_write_all(fd, &head, sizeof(head));
	if (r >= 0)
		r = write_synced(fd, text, n);
	if (r >= 0 &&
	    (mo_sync(fd, false) < 0 || mo_rename(new, path) < 0 || mo_sync(at, false) < 0))
		r = -errno;
	if (r < 0)
		mo_remove_at(AT_FDCWD, new, 0);
	return r;
}

int snapshot_file_head(const char *path, int64_t seq, struct snapshot_head *ret,
		       struct mo_error *err)
{
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, path, O_RDONLY, 0);
	struct head head = { 0 };
	struct stat st;

	if (fd < 0)
		return mo_error_set(err, -errno, "%s: it cannot be read: %s", path,
				    strerror(errno));
	if (mo_read(fd, &head, sizeof(head)) != sizeof(head) || mo_stat_fd(fd, &st) < 0)
		return mo_error_set(err, -EBADMSG, "%s: it cannot be read: it is cut", path);
	if (memcmp(head.magic, SNAPSHOT_MAGIC, sizeof(head.magic)) != 0 || head.seq != seq ||
	    head.n != st.st_size - (int64_t)sizeof(head))
		return mo_error_set(err, -EBADMSG, "%s: it is not what was written", path);
	*ret = (struct snapshot_head){ head.seq, head.n, head.sum };
	return 0;
}
