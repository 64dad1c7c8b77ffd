/* See cache.h. What has not the name of its own digest was put there by somebody, and stays. */
#include "agent/image/cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/image/entry.h"
#include "agent/core/image/oci.h"
#include "agent/image/place.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/model/image.h"
#include "lib/base/parse.h"

#define BLOCK 512 /* of st_blocks */
#define SECOND_US 1000000LL
#define DAY_US (24 * 3600 * SECOND_US)

void images_done(struct images *i)
{
	for (size_t k = 0; k < i->n; k++)
		free(i->all[k].name);
	free(i->all);
}

/* Bytes on the disk below dir, each file once. */
static int64_t bytes_below(int dir, int depth)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names =
		depth > 2 * ENTRY_DEPTH_MAX ? NULL : mo_dir_open(dir, ".", O_NOFOLLOW);
	const char *name;
	int64_t bytes = 0;

	while (names && (name = mo_dir_next(names))) {
		struct stat st;

		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			_cleanup_(mo_closep) int below =
				mo_open_at(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

			bytes += below < 0 ? 0 : bytes_below(below, depth + 1);
		}
		bytes += (int64_t)st.st_blocks * BLOCK / (S_ISDIR(st.st_mode) ? 1 : st.st_nlink);
	}
	return bytes;
}

/* A directory with the name of the digest in it. */
static bool is_image(int dir, const char *name)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *wanted = NULL;

	if (place_digest(dir, ".", &b) < 0 || b.len == 0 || b.data[b.len - 1] != '\n')
		return false;
	b.data[b.len - 1] = 0;
	wanted = image_dir_name(b.data);
	return mo_streq(wanted, name);
}

/* For a moment only: who wants to use it waits for two seconds (agent/namespace/image.c). */
static bool is_locked(int cache, const char *name)
{
	_cleanup_(mo_closep) int dir =
		mo_open_at(cache, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = dir < 0 ? 0 : mo_flock(dir);

	return r < 0 && !mo_flock_lacks(r);
}

static void look(struct images *all, int cache, const char *name)
{
	_cleanup_(mo_closep) int dir =
		mo_open_at(cache, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct cached *c;
	struct stat st;

	if (dir < 0 || mo_stat_fd(dir, &st) < 0 || !is_image(dir, name))
		return;
	c = MO_GROW(all->all, all->n);
	*c = (struct cached){ .name = mo_strdup(name),
			      .used_us = (int64_t)st.st_mtime * SECOND_US,
			      .in_use = is_locked(cache, name) };
	c->bytes = bytes_below(dir, 0);
}

int cache_read(const char *path, struct images *ret, struct mo_error *err)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names = mo_dir_open(AT_FDCWD, path, 0);
	const char *name;

	if (!names)
		return mo_error_set(err, IMAGE_REFUSED, "it cannot be read: %s", strerror(errno));
	while ((name = mo_dir_next(names)))
		look(ret, mo_dir_fd(names), name);
	if (errno)
		return mo_error_set(err, -errno, "it cannot be read: %s", strerror(errno));
	cache_sort(ret->all, ret->n);
	return 0;
}

static void say(const struct cached *c, const char *what)
{
	char when[32];

	printf("%s %lld %s %s\n", c->name, (long long)c->bytes, mo_time_format(c->used_us, when),
	       what);
}

int cache_list(const char *path, struct mo_error *err)
{
	_cleanup_(images_done) struct images all = { 0 };
	int r = cache_read(path, &all, err);

	for (size_t i = 0; r == 0 && i < all.n; i++)
		say(&all.all[i], all.all[i].in_use ? "used" : "free");
	return r;
}

/* What has no lock may be at work. */
static bool is_young(int dir, const char *name, int64_t since)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (int64_t)st.st_mtime * SECOND_US >= since;
}

/* What is left of killed ones. */
static int remove_partials(const char *path, int64_t since, struct mo_error *err)
{
	_cleanup_(mo_dir_freep) struct mo_dir *names = mo_dir_open(AT_FDCWD, path, 0);
	static const char end[] = PLACE_PARTIAL;
	const char *name;
	int r = 0;

	while (names && r == 0 && (name = mo_dir_next(names))) {
		size_t n = strlen(name), n_end = strlen(end);
		_cleanup_(mo_freep) char *there = NULL;

		if (n <= n_end || !mo_streq(name + n - n_end, end) ||
		    is_young(mo_dir_fd(names), name, since))
			continue;
		there = mo_path(path, "%s", name);
		r = place_remove(there, there, err);
		r = r == -EWOULDBLOCK || r == -ENOTDIR ? 0 : r;
	}
	return r;
}

int cache_remove(const char *path, const char *name, struct mo_error *err)
{
	_cleanup_(mo_freep) char *there = mo_path(path, "%s", name);
	_cleanup_(mo_freep) char *partial = mo_printf("%s" PLACE_PARTIAL, there);

	return place_remove(there, partial, err);
}

bool cache_keeps(const struct args *a, const char *name)
{
	for (size_t i = 0; i < a->n_keeps; i++) {
		_cleanup_(mo_freep) char *kept = image_dir_name(a->keeps[i]);

		if (mo_streq(kept, name))
			return true;
	}
	return false;
}

/* An empty directory shows it as well as an image. */
static bool has_locks(const char *path)
{
	_cleanup_(mo_closep) int dir = mo_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);

	return dir < 0 || !mo_flock_lacks(mo_flock(dir));
}

int cache_prune(const struct args *a, struct mo_error *err)
{
	_cleanup_(images_done) struct images all = { 0 };
	const char *path = a->dir;
	bool locks = has_locks(path);
	int64_t unused_us = locks ? a->unused_us : MO_MAX(a->unused_us, DAY_US);
	int64_t since = unused_us > 0 ? mo_clock_wall_us() - unused_us : INT64_MAX;
	int r = cache_read(path, &all, err);

	if (!locks)
		printf(CACHE_LOCKLESS "%s: what was used within a day stays\n", path);
	for (size_t i = 0; i < all.n; i++)
		all.all[i].in_use |= all.all[i].used_us >= since || cache_keeps(a, all.all[i].name);

	int64_t bytes = r == 0 ? cache_choose(all.all, all.n, a->bytes_max) : 0;
	size_t n = all.n;

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		struct cached *c = &all.all[i];

		if (!c->goes)
			continue;
		r = cache_remove(path, c->name, err);
		n -= r == 0;
		if (r == 0)
			say(c, "removed");
		if (r == -EWOULDBLOCK) { /* since we looked */
			bytes += c->bytes;
			r = 0;
		}
	}
	if (r == 0)
		r = remove_partials(path, locks ? INT64_MAX : since, err);
	if (r == 0)
		printf("%zu images with %lld bytes\n", n, (long long)bytes);
	return r;
}
