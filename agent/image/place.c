/* See place.h. */
#include "agent/image/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/image/oci.h"
#include "lib/base/fd.h"

int place_digest(int at, const char *path, struct mo_buf *ret)
{
	_cleanup_(mo_freep) char *name = mo_path(path, "digest");
	/* in a user's directory it may be a FIFO */
	_cleanup_(mo_closep) int fd = mo_open_at(at, name, O_RDONLY | O_NONBLOCK, 0);

	return fd < 0 ? fd : mo_read_fd(fd, PLACE_DIGEST_MAX, ret);
}

bool place_has(const char *path, const char *digest)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (place_digest(AT_FDCWD, path, &b) < 0 ||
	    strncmp(b.data ? b.data : "", digest, strlen(digest)) != 0)
		return false;
	/* who does not own it does not look after it either */
	(void)utimensat(AT_FDCWD, path, NULL, 0);
	return true;
}

/* What is at PLACE already. */
static int look(const struct place *p, const char *digest, struct mo_error *err)
{
	struct stat st;
	int r = mo_stat(p->path, &st);

	if (r == -ENOENT)
		return 0;
	if (r == 0 && place_has(p->path, digest))
		return 1;
	mo_error_set(err, IMAGE_REFUSED, "%s is there already, and is not this image (%s)", p->path,
		     digest);
	mo_error_hint(err, "remove it when no job uses it, or name another directory");
	return IMAGE_REFUSED;
}

/* Of what a killed one left. */
static int empty(struct place *p)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names = mo_dir_open(p->dir, ".", O_NOFOLLOW);
	const char *name;
	int r = 0;

	while (r == 0 && (name = mo_dir_next(names))) {
		_cleanup_(mo_freep) char *path = mo_path(p->partial, "%s", name);

		r = mo_rm_rf(path);
	}
	return r < 0 || (names && !errno) ? r : -errno;
}

/* It has this name after that too: another may have renamed it. */
int place_lock(const char *path)
{
	_cleanup_(mo_closep) int dir =
		mo_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stat here, there;
	int r = dir < 0 ? dir : mo_flock(dir);

	if (r < 0 && !mo_flock_lacks(r))
		return r;
	if (mo_stat_fd(dir, &here) < 0 || mo_stat(path, &there) < 0 ||
	    here.st_ino != there.st_ino || here.st_dev != there.st_dev)
		return -EWOULDBLOCK;
	return TAKE_FD(dir);
}

int place_begin(struct place *p, const char *path, const char *digest, struct mo_error *err)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	*p = (struct place){ .path = mo_strndup(path, n), .dir = -1 };
	p->partial = mo_printf("%s" PLACE_PARTIAL, p->path);
	int r = look(p, digest, err);

	if (r != 0)
		return r;
	r = mo_mkdir(p->partial, 0755);
	if (r < 0 && r != -EEXIST)
		return mo_error_set(err, r, "%s cannot be made: %s", p->partial, strerror(-r));
	p->dir = place_lock(p->partial);
	r = p->dir < 0 ? p->dir : empty(p);
	if (r == 0)
		return 0;
	p->dir = mo_close(p->dir);
	if (r == -EWOULDBLOCK)
		return mo_error_set(err, r, "another process unpacks an image to %s now", p->path);
	return mo_error_set(err, r, "%s cannot be emptied: %s", p->partial, strerror(-r));
}

/* The directory that PLACE is in. */
static int sync_parent(const struct place *p)
{
	const char *slash = strrchr(p->path, '/');
	_cleanup_(mo_freep) char *dir =
		slash ? mo_strndup(p->path, (size_t)(slash - p->path) + 1) : mo_strdup(".");
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);

	return fd < 0 ? fd : mo_sync(fd, false);
}

int place_finish(struct place *p, struct mo_error *err)
{
	int r = syncfs(p->dir) < 0 ? -errno : 0;

	if (r == 0 && renameat2(AT_FDCWD, p->partial, AT_FDCWD, p->path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		return mo_error_set(err, r, "%s cannot become %s: %s", p->partial, p->path,
				    strerror(-r));
	p->dir = mo_close(p->dir);
	r = sync_parent(p);
	return r < 0 ? mo_error_set(err, r, "%s cannot be written to the disk: %s", p->path,
				    strerror(-r))
		     : 0;
}

void place_end(struct place *p)
{
	if (p->dir >= 0)
		(void)mo_rm_rf(p->partial);
	mo_close(p->dir);
	free(p->partial);
	free(p->path);
}

int place_remove(const char *path, const char *by_name, struct mo_error *err)
{
	_cleanup_(mo_closep) int dir = place_lock(path);
	int r = MO_MIN(dir, 0);

	if (r == -EWOULDBLOCK || r == -ENOTDIR)
		return r;
	if (r == 0 && !mo_streq(path, by_name))
		r = mo_rename(path, by_name);
	if (r == 0)
		r = mo_rm_rf(by_name);
	return r < 0 ? mo_error_set(err, r, "%s cannot be removed: %s", path, strerror(-r)) : 0;
}
