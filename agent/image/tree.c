/* See tree.h. */
#include "agent/image/tree.h"

#include <archive.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "agent/core/image/oci.h"
#include "agent/image/inside.h"
#include "lib/base/fd.h"
#include "lib/base/rooted.h"
#include "lib/base/utf8.h"

/* A name in a directory. */
struct mark {
	UT_hash_handle hh;
	size_t n;
	char key[]; /* inode of the directory, and the name */
};

static size_t key_of(int dir, const char *name, char key[static 8 + ENTRY_NAME_MAX])
{
	size_t n = MO_MIN(strlen(name), (size_t)ENTRY_NAME_MAX);
	struct stat st = { 0 };
	uint64_t inode;

	(void)fstat(dir, &st);
	inode = st.st_ino;
	memcpy(key, &inode, sizeof(inode));
	memcpy(key + sizeof(inode), name, n);
	return sizeof(inode) + n;
}

static bool is_made(const struct tree *t, int dir, const char *name)
{
	char key[8 + ENTRY_NAME_MAX];
	size_t n = key_of(dir, name, key);
	struct mark *m;

	HASH_FIND(hh, t->made, key, n, m);
	return m != NULL;
}

static void mark(struct tree *t, int dir, const char *name)
{
	char key[8 + ENTRY_NAME_MAX];
	size_t n = key_of(dir, name, key);
	struct mark *m;

	if (is_made(t, dir, name))
		return;
	m = mo_alloc(sizeof(*m) + n);
	memcpy(m->key, key, n);
	m->n = n;
	HASH_ADD_KEYPTR(hh, t->made, m->key, m->n, m);
}

void tree_next_layer(struct tree *t)
{
	struct mark *m, *next;

	HASH_ITER(hh, t->made, m, next) {
		HASH_DEL(t->made, m);
		free(m);
	}
}

/* With all below it; missing is fine. */
static int remove_all(int dir, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_printf("/proc/self/fd/%d/%s", dir, name);

	return mo_rm_rf(path);
}

/* All that lower layers brought into the directory, and what is empty then. */
static int clear(const struct tree *t, int dir, int depth)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names = NULL;
	const char *name;
	int r = 0;

	if (depth > ENTRY_DEPTH_MAX)
		return -ELOOP;
	names = mo_dir_open(dir, ".", O_NOFOLLOW);
	while (r == 0 && (name = mo_dir_next(names))) {
		int here = mo_dir_fd(names);
		_cleanup_(mo_closep) int below = -1;
		bool keep = is_made(t, here, name);

		if (!keep && mo_remove_at(here, name, 0) == 0)
			continue;
		below = mo_open_at(here, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (keep && (below == -ENOTDIR || below == -ELOOP))
			continue;
		r = below < 0 ? below : clear(t, below, depth + 1);
		if (r == 0 && !keep && mo_remove_at(here, name, AT_REMOVEDIR) < 0 &&
		    errno != ENOTEMPTY)
			r = -errno;
	}
	return r < 0 || (names && !errno) ? r : -errno;
}

static int write_file(int fd, struct archive *data, int64_t bytes, struct mo_error *err)
{
	const void *piece;
	la_int64_t at;
	size_t n;
	int r;

	while ((r = archive_read_data_block(data, &piece, &n, &at)) == ARCHIVE_OK) {
		if (at < 0 || at > bytes || (int64_t)n > bytes - at)
			return mo_error_set(err, IMAGE_REFUSED, "it is larger than it says");
		for (size_t done = 0; done < n;) {
			ssize_t w = mo_write_at(fd, (const char *)piece + done, n - done,
						at + (int64_t)done);

			if (w < 0)
				return (int)w;
			done += (size_t)w;
		}
	}
	if (r != ARCHIVE_EOF)
		return mo_error_set(err, IMAGE_REFUSED, "its bytes are damaged: %s",
				    archive_error_string(data) ? archive_error_string(data) : "");
	return mo_truncate(fd, bytes);
}

static int make_file(int dir, const struct entry *e, struct archive *data, int64_t bytes,
		     time_t changed, struct mo_error *err)
{
	struct timespec times[2] = { { .tv_sec = changed }, { .tv_sec = changed } };
	_cleanup_(mo_closep) int fd =
		mo_open_at(dir, e->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : write_file(fd, data, bytes, err);

	if (r == 0)
		r = mo_chmod_fd(fd, e->mode);
	/* Python compares it with what it has compiled */
	return r < 0 || futimens(fd, times) == 0 ? r : -errno;
}

/* One that is there already stays. */
static int make_directory(int dir, const struct entry *e)
{
	struct stat st;

	if (fstatat(dir, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
		int r = remove_all(dir, e->name);

		if (r < 0 || mkdirat(dir, e->name, 0700) < 0)
			return r < 0 ? r : -errno;
	}
	_cleanup_(mo_closep) int fd =
		mo_open_at(dir, e->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	return fd < 0 ? fd : mo_chmod_fd(fd, e->mode);
}

static int make_hardlink(int root, int dir, const struct entry *e, struct mo_error *err)
{
	_cleanup_(mo_closep) int from = mo_open_in_fs(root, e->link_dir, O_PATH | O_DIRECTORY);

	if (from >= 0 && linkat(from, e->link, dir, e->name, 0) == 0)
		return 0;
	int r = from < 0 ? from : -errno;

	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EPERM)
		return mo_error_set(err, IMAGE_REFUSED, "it is a hard link to %s%s%s, %s",
				    e->link_dir, *e->link_dir ? "/" : "", e->link,
				    r == -EPERM ? "which is a directory" : "which is not there");
	return r;
}

static int make(struct tree *t, int dir, const struct entry *e, struct archive *data, int64_t bytes,
		time_t changed, struct mo_error *err)
{
	int r = e->kind == ENTRY_DIRECTORY ? make_directory(dir, e) : remove_all(dir, e->name);

	if (r == 0 && e->kind == ENTRY_FILE)
		r = make_file(dir, e, data, bytes, changed, err);
	if (r == 0 && e->kind == ENTRY_SYMLINK && symlinkat(e->link, dir, e->name) < 0)
		r = -errno;
	if (r == 0 && e->kind == ENTRY_HARDLINK)
		r = make_hardlink(t->root, dir, e, err);
	if (r == 0)
		mark(t, dir, e->name);
	return r;
}

static bool means_bad_path(int r)
{
	return r == -ENOTDIR || r == -ELOOP || r == -EEXIST || r == -EXDEV || r == -ENAMETOOLONG;
}

int tree_apply(struct tree *t, const struct entry *e, struct archive *data, int64_t bytes,
	       time_t changed, struct mo_error *err)
{
	bool takes_away = e->kind == ENTRY_WHITEOUT || e->kind == ENTRY_OPAQUE;
	_cleanup_(mo_error_done) struct mo_error why = { 0 };
	_cleanup_(mo_closep) int dir = -1;
	int r = 0;

	if (e->kind == ENTRY_NONE)
		return 0;
	dir = takes_away ? mo_open_in_fs(t->root, e->dir, O_PATH | O_DIRECTORY)
			 : inside_directory(t->root, e->dir);
	if (takes_away && (dir == -ENOENT || dir == -ENOTDIR))
		return 0;
	if (dir < 0)
		r = dir;
	else if (e->kind == ENTRY_OPAQUE)
		r = clear(t, dir, 0);
	else if (e->kind == ENTRY_WHITEOUT)
		r = is_made(t, dir, e->name) ? 0 : remove_all(dir, e->name);
	else
		r = make(t, dir, e, data, bytes, changed, &why);
	if (r == 0)
		return 0;
	return mo_error_set(err, means_bad_path(r) ? IMAGE_REFUSED : r, "%s%s%.*s: %s", e->dir,
			    *e->dir ? "/" : "", e->name ? mo_utf8_shown(e->name, 200) : 0,
			    e->name ? e->name : "", mo_error_text(&why, r));
}
