/* In place of lib/base/file.c: descriptors, of files (files.h), directories, locks and streams, and
 * the faults of a disk. */
#include "tests/unit/seams/world.h"

#include <errno.h>
#include <fnmatch.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/desc.h"
#include "lib/base/identity.h"
#include "lib/base/parse.h"
#include "tests/unit/seams/files.h"
#include "tests/unit/seams/streams.h"

#define FIRST_FD 100

static struct seam_fd fds[4096];
static size_t n_syncs, n_temps, n_changes;
static const char *lying; /* what is named so is never synced */
static struct seam_life first, *life = &first;

static int fails(int e)
{
	errno = e;
	return -e;
}

/* ---- faults ---- */

static int may_change(void)
{
	n_changes++;
	if (life->dead)
		return EIO;
	if (!life->armed)
		return 0;
	if (life->left > 1) {
		life->left--;
		return 0;
	}
	life->dead = life->crash;
	return life->error;
}

bool seam_acts(void)
{
	return may_change() == 0 || !(life->crash || life->dead);
}

size_t seam_changes(void)
{
	return n_changes;
}

void seam_fail_after(size_t n, int error)
{
	life->armed = error != 0;
	life->crash = false;
	life->left = n;
	life->error = error;
}

void seam_crash_after(size_t n)
{
	seam_fail_after(n, EIO);
	life->crash = true;
}

bool seam_dead(void)
{
	return life->dead;
}

void seam_alive(void)
{
	*life = (struct seam_life){ 0 };
}

void seam_be(struct seam_life *process)
{
	life = process ? process : &first;
}

/* ---- names ---- */

struct below {
	const char *dir;
	void (*fn)(void *arg, struct file *f);
	void *arg;
	bool any;
};

static void one_below(void *arg, struct file *f)
{
	struct below *b = arg;

	if (!file_is_below(f->name, b->dir))
		return;
	b->any = true;
	if (b->fn)
		b->fn(b->arg, f);
}

/* fn may be NULL; whether there is one */
static bool each_below(const char *dir, void (*fn)(void *arg, struct file *f), void *arg)
{
	struct below b = { .dir = dir, .fn = fn, .arg = arg };

	file_each_below(dir, one_below, &b);
	return b.any;
}

/* A directory is there when it was made, or something is below it. */
static bool is_dir(const char *name)
{
	const struct file *f = file_find(name);

	return f ? f->dir : each_below(name, NULL, NULL) || mo_streq(name, "/");
}

static struct seam_fd *fd_of(int fd)
{
	assert_true(fd >= FIRST_FD && fd < FIRST_FD + (int)ELEMENTSOF(fds));
	struct seam_fd *d = &fds[fd - FIRST_FD];
	assert_true(d->holders > 0);
	return d;
}

/* The whole name; caller frees. */
static char *whole(int at, const char *path)
{
	static const char own[] = "/proc/self/fd/";
	int64_t number;

	if (mo_starts_with(path, own)) {
		const char *digits = path + strlen(own), *rest = strchr(digits, '/');
		_cleanup_(mo_freep) char *fd = mo_strndup(digits, (size_t)(rest - digits));

		assert_int_equal(mo_parse_i64(fd, 0, INT32_MAX, &number), 0);
		return whole((int)number, rest + 1);
	}
	if (*path == '/')
		return mo_strdup(path);
	assert_non_null(fd_of(at)->dir);
	return mo_streq(path, ".") ? mo_strdup(fd_of(at)->dir)
				   : mo_printf("%s/%s", fd_of(at)->dir, path);
}

void seam_put(const char *path, const char *text)
{
	struct file *f = file_find(path);

	if (!f)
		f = file_new(path, false);
	mo_buf_reset(&f->data);
	seam_append(path, text);
	file_settle(f);
}

void seam_append(const char *path, const char *text)
{
	struct file *f = file_find(path);
	size_t at = f ? f->data.len : 0;

	if (!f)
		f = file_new(path, false);
	mo_buf_str(&f->data, text);
	file_touched(f, at, strlen(text));
}

const char *seam_text(const char *path)
{
	const struct file *f = file_find(path);

	return !f ? NULL : f->data.data ? f->data.data : "";
}

bool seam_exists(const char *path)
{
	return file_find(path) || is_dir(path);
}

static void lose(void *arg, struct file *f)
{
	file_lose(f);
}

void seam_remove(const char *path)
{
	struct file *f = file_find(path);

	each_below(path, lose, NULL);
	if (f)
		file_lose(f);
}

size_t seam_syncs(void)
{
	return n_syncs;
}

void seam_syncs_lie(const char *pattern)
{
	lying = pattern;
}

void seam_lock(const char *path, bool held)
{
	struct file *f = file_find(path);

	if (!f) {
		seam_put(path, "");
		f = file_find(path);
	}
	assert_true(f->lock <= 0);
	f->lock = held ? -1 : 0;
}

void seam_power_loss(uint64_t seed)
{
	seam_power_loss_of("/", seed);
	seam_remove("/run");
}

void seam_power_loss_of(const char *host, uint64_t seed)
{
	file_power_loss(host, seed);
}

struct rot {
	size_t n, at; /* bytes of all files; of which one */
	char *what;
};

static void count_bytes(void *arg, struct file *f)
{
	((struct rot *)arg)->n += f->data.len;
}

static void rot_one(void *arg, struct file *f)
{
	struct rot *r = arg;

	if (!r->what && r->at < f->data.len) {
		f->data.data[r->at] ^= (char)(1 << r->at % 8);
		r->what = mo_printf("%s at %zu of %zu", f->name, r->at, f->data.len);
	} else {
		r->at -= r->what ? 0 : f->data.len;
	}
}

char *seam_rot(const char *dir, uint64_t seed)
{
	struct rot r = { 0 };

	each_below(dir, count_bytes, &r);
	if (r.n == 0)
		return NULL;
	r.at = seed % r.n;
	each_below(dir, rot_one, &r);
	return r.what;
}

void seam_disk_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		while (fds[i].holders > 0)
			mo_close(FIRST_FD + (int)i);
	files_done();
	seam_alive();
	n_changes = 0;
	lying = NULL;
}

/* ---- descriptors ---- */

int seam_fd_new(void)
{
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		if (fds[i].holders == 0) {
			fds[i] = (struct seam_fd){ .holders = 1, .peer = -1 };
			return FIRST_FD + (int)i;
		}
	return fails(EMFILE);
}

struct seam_fd *seam_fd(int fd)
{
	return fd_of(fd);
}

bool seam_is_open(int fd)
{
	return fd >= FIRST_FD && fds[fd - FIRST_FD].holders > 0;
}

size_t seam_open_files(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		n += fds[i].holders > 0;
	return n;
}

static int opened(struct file *f, const char *dir)
{
	int fd = seam_fd_new();

	if (fd < 0)
		return fd;
	fd_of(fd)->file = f;
	fd_of(fd)->dir = dir ? mo_strdup(dir) : NULL;
	if (f)
		f->open++;
	return fd;
}

int mo_open_at(int at, const char *path, int flags, mode_t mode)
{
	_cleanup_(mo_freep) char *name = whole(at, path);
	struct file *f = file_find(name);
	int e = 0;

	if (mo_streq(name, "/dev/null"))
		return opened(NULL, NULL);
	if (is_dir(name))
		return flags & (O_WRONLY | O_RDWR) ? fails(EISDIR) : opened(NULL, name);
	if (flags & O_DIRECTORY)
		return fails(f ? ENOTDIR : ENOENT);
	if (!f && !(flags & O_CREAT))
		return fails(ENOENT);
	if (f && (flags & O_CREAT) && (flags & O_EXCL))
		return fails(EEXIST);
	if ((!f || (flags & O_TRUNC)) && (e = may_change()))
		return fails(e);
	if (f && (flags & O_TRUNC))
		mo_buf_reset(&f->data);
	int fd = opened(f ? f : file_new(name, false), NULL);
	if (fd >= 0)
		fd_of(fd)->append = flags & O_APPEND;
	return fd;
}

int mo_open_temp(char *template)
{
	char number[8];
	int e = may_change();

	if (e)
		return fails(e);
	snprintf(number, sizeof(number), "%06zu", n_temps++ % 1000000);
	memcpy(template + strlen(template) - 6, number, 6);
	return opened(file_new(template, false), NULL);
}

int mo_close(int fd)
{
	if (fd < FIRST_FD)
		return -1;
	struct seam_fd *d = fd_of(fd);
	if (--d->holders > 0)
		return -1;
	if (d->file) {
		d->file->open--;
		if (d->file->lock == fd)
			d->file->lock = 0;
	}
	if (d->peer >= 0 && seam_is_open(d->peer) && fd_of(d->peer)->peer == fd)
		fd_of(d->peer)->ended = true;
	free(d->dir);
	mo_buf_done(&d->in);
	*d = (struct seam_fd){ .peer = -1 };
	return -1;
}

ssize_t mo_read(int fd, void *ret, size_t n)
{
	struct seam_fd *d = fd_of(fd);

	if (!d->file)
		return seam_take(d, ret, n);
	ssize_t got = mo_read_at(fd, ret, n, (int64_t)d->at);
	d->at += got > 0 ? (size_t)got : 0;
	return got;
}

ssize_t mo_read_at(int fd, void *ret, size_t n, int64_t at)
{
	const struct mo_buf *b = &fd_of(fd)->file->data;
	size_t left = (size_t)at < b->len ? b->len - (size_t)at : 0;

	n = MO_MIN(n, left);
	if (n)
		memcpy(ret, b->data + at, n);
	return (ssize_t)n;
}

ssize_t mo_write_at(int fd, const void *data, size_t n, int64_t at)
{
	struct mo_buf *b = &fd_of(fd)->file->data;
	bool was_dead = life->dead, was_armed = life->armed && life->left == 1;
	int e = may_change();

	if (e && (was_dead || !was_armed || n < 2))
		return fails(e);
	if (e) { /* the first that fails: half of it is there */
		n /= 2;
		life->left = 0;
	}
	if (b->len < (size_t)at)
		file_resize(fd_of(fd)->file, (size_t)at);
	size_t over = MO_MIN(n, b->len - (size_t)at);
	if (over)
		memcpy(b->data + at, data, over);
	mo_buf_add(b, (const char *)data + over, n - over);
	file_touched(fd_of(fd)->file, (size_t)at, n);
	return (ssize_t)n;
}

/* What is logged goes nowhere. */
ssize_t mo_write(int fd, const void *data, size_t n)
{
	if (fd < FIRST_FD)
		return (ssize_t)n;
	struct seam_fd *d = fd_of(fd);
	if (!d->file)
		return d->peer < 0 ? (ssize_t)n : seam_give(d, data, n);
	ssize_t done = mo_write_at(fd, data, n, (int64_t)(d->append ? d->file->data.len : d->at));
	d->at += done > 0 ? (size_t)done : 0;
	return done;
}

int mo_truncate(int fd, int64_t bytes)
{
	struct file *f = fd_of(fd)->file;
	int e = (size_t)bytes == f->data.len ? 0 : may_change();

	if (e)
		return fails(e);
	file_resize(f, (size_t)bytes);
	f->reserved = 0;
	return 0;
}

int mo_allocate(int fd, int64_t bytes)
{
	int e = may_change();

	if (e)
		return fails(e);
	fd_of(fd)->file->reserved = bytes;
	return 0;
}

int mo_sync(int fd, bool data_only)
{
	struct seam_fd *d = fd_of(fd);
	const char *name = d->dir ? d->dir : d->file ? d->file->name : NULL;
	int e = may_change();

	if (e)
		return fails(e);
	n_syncs++;
	if (lying && name && fnmatch(lying, name, 0) == 0)
		return 0;
	if (d->dir)
		file_sync_names(d->dir);
	if (d->file)
		file_sync(d->file);
	return 0;
}

int mo_flock(int fd)
{
	struct file *f = fd_of(fd)->file;

	if (f->lock && f->lock != fd)
		return fails(EWOULDBLOCK);
	f->lock = fd;
	return 0;
}

static int stat_of(const struct file *f, bool dir, struct stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->st_mode = dir ? S_IFDIR | 0700 : S_IFREG | 0600;
	ret->st_uid = mo_uid();
	ret->st_size = f ? MO_MAX((off_t)f->data.len, (off_t)f->reserved) : 0;
	ret->st_ino = f ? (ino_t)f->number : 0;
	ret->st_mtim.tv_sec = f ? f->changed_ns / 1000000000 : 0;
	ret->st_mtim.tv_nsec = f ? f->changed_ns % 1000000000 : 0;
	return 0;
}

void (*seam_on_stat)(void);

int mo_stat_fd(int fd, struct stat *ret)
{
	int r = stat_of(fd_of(fd)->file, fd_of(fd)->dir, ret);

	if (seam_on_stat)
		seam_on_stat();
	return r;
}

int mo_stat(const char *path, struct stat *ret)
{
	return seam_exists(path) ? stat_of(file_find(path), is_dir(path), ret) : fails(ENOENT);
}

int mo_access(const char *path, int how)
{
	return seam_exists(path) ? 0 : fails(ENOENT);
}

int mo_space(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){ .f_frsize = 4096, .f_bavail = 1 << 20 };
	return 0;
}

int mo_rename(const char *from, const char *to)
{
	struct file *f = file_find(from);
	int e = !f ? ENOENT : is_dir(to) && !is_dir(from) ? EISDIR : may_change();

	if (e)
		return fails(e);
	file_rename(f, to);
	return 0;
}

int mo_remove_at(int at, const char *path, int flags)
{
	_cleanup_(mo_freep) char *name = whole(at, path);
	struct file *f = file_find(name);
	bool dir = is_dir(name);

	if (!f && !dir)
		return fails(ENOENT);
	if (dir != (flags == AT_REMOVEDIR))
		return fails(dir ? EISDIR : ENOTDIR);
	if (dir && each_below(name, NULL, NULL))
		return fails(ENOTEMPTY);
	int e = may_change();
	if (e)
		return fails(e);
	if (f)
		file_remove(f);
	return 0;
}

int mo_mkdir(const char *path, mode_t mode)
{
	_cleanup_(mo_freep) char *name = whole(AT_FDCWD, path);

	if (seam_exists(name))
		return fails(EEXIST);
	int e = may_change();
	if (e)
		return fails(e);
	file_new(name, true);
	return 0;
}

int mo_chmod_fd(int fd, mode_t mode)
{
	return 0;
}

int mo_chmod(const char *path, mode_t mode)
{
	return seam_exists(path) ? 0 : fails(ENOENT);
}

ssize_t mo_readlink(const char *path, char *ret, size_t size)
{
	static const char self[] = "/usr/lib/moe/self";

	if (!mo_streq(path, "/proc/self/exe"))
		return fails(ENOENT);
	memcpy(ret, self, strlen(self));
	return (ssize_t)strlen(self);
}

struct mo_dir {
	int fd;
	char **names;
	size_t n, next;
	size_t prefix; /* of their paths */
};

static void add_name(void *arg, struct file *f)
{
	struct mo_dir *d = arg;

	if (!strchr(f->name + d->prefix, '/'))
		mo_strs_add(&d->names, &d->n, f->name + d->prefix);
}

struct mo_dir *mo_dir_open(int at, const char *path, int flags)
{
	_cleanup_(mo_freep) char *name = whole(at, path);

	if (!is_dir(name)) {
		errno = file_find(name) ? ENOTDIR : ENOENT;
		return NULL;
	}
	struct mo_dir *d = mo_alloc(sizeof(*d));
	d->fd = opened(NULL, name);
	d->prefix = strlen(name) + 1;
	each_below(name, add_name, d);
	return d;
}

const char *mo_dir_next(struct mo_dir *d)
{
	errno = 0;
	return d && d->next < d->n ? d->names[d->next++] : NULL;
}

int mo_dir_fd(const struct mo_dir *d)
{
	return d->fd;
}

struct mo_dir *mo_dir_free(struct mo_dir *d)
{
	if (!d)
		return NULL;
	for (size_t i = 0; i < d->n; i++)
		free(d->names[i]);
	free(d->names);
	mo_close(d->fd);
	free(d);
	return NULL;
}

/* Nobody asks for these here; each has to stand somewhere, or file.c would be linked too. */
#define NOT_ASKED(name, ...) \
	int name(__VA_ARGS__) \
	{ \
		fail_msg(#name " was asked"); \
		return -1; \
	}
NOT_ASKED(mo_fs_type, const char *path, int64_t *ret)
NOT_ASKED(mo_chown, const char *path, uid_t uid, gid_t gid)
NOT_ASKED(mo_chown_fd, int fd, uid_t uid, gid_t gid)
