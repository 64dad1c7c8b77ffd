/* In place of lib/base/file.c: files in memory, and no more of a disk than the controller asks
 * for. */
#include "tests/unit/seams/bed.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/file.h"

struct file {
	char *name;
	struct mo_buf data;
};
static struct file files[32];
static struct {
	struct file *file;
	size_t at;
} open_files[32];
static size_t n_syncs, n_temps;

static int fails(int e)
{
	errno = e;
	return -e;
}

static struct file *find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(files); i++)
		if (files[i].name && mo_streq(files[i].name, name))
			return &files[i];
	return NULL;
}

static struct file *make(const char *name)
{
	struct file *f = find(name);

	for (size_t i = 0; !f && i < ELEMENTSOF(files); i++)
		if (!files[i].name)
			f = &files[i];
	assert_non_null(f);
	mo_str_set(&f->name, name);
	mo_buf_reset(&f->data);
	return f;
}

void seam_put(const char *path, const char *text)
{
	mo_buf_str(&make(path)->data, text);
}

size_t seam_syncs(void)
{
	return n_syncs;
}

void seam_disk_done(void);
void seam_disk_done(void)
{
	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		mo_str_set(&files[i].name, NULL);
		mo_buf_done(&files[i].data);
	}
}

/* Descriptors from 100 on are ours. A directory's has no file. */
static int opened(struct file *f)
{
	static struct file directory;

	for (size_t i = 0; i < ELEMENTSOF(open_files); i++)
		if (!open_files[i].file) {
			open_files[i].file = f ? f : &directory;
			open_files[i].at = 0;
			return 100 + (int)i;
		}
	return fails(EMFILE);
}

int mo_open_at(int at, const char *path, int flags, mode_t mode)
{
	struct file *f = find(path);

	assert_int_equal(at, AT_FDCWD);
	if (flags & O_DIRECTORY)
		return opened(NULL);
	if (!f && !(flags & O_CREAT))
		return fails(ENOENT);
	return opened(f && !(flags & O_TRUNC) ? f : make(path));
}

int mo_open_temp(char *template)
{
	char number[8];

	snprintf(number, sizeof(number), "%06zu", n_temps++ % 1000000);
	memcpy(template + strlen(template) - 6, number, 6);
	return opened(make(template));
}

int mo_close(int fd)
{
	if (fd >= 100)
		open_files[fd - 100].file = NULL;
	return -1;
}

ssize_t mo_read(int fd, void *ret, size_t n)
{
	const struct mo_buf *b = &open_files[fd - 100].file->data;
	size_t left = b->len - open_files[fd - 100].at;

	n = MO_MIN(n, left);
	if (n)
		memcpy(ret, b->data + open_files[fd - 100].at, n);
	open_files[fd - 100].at += n;
	return (ssize_t)n;
}

/* What is logged goes nowhere. */
ssize_t mo_write(int fd, const void *data, size_t n)
{
	if (fd >= 100)
		mo_buf_add(&open_files[fd - 100].file->data, data, n);
	return (ssize_t)n;
}

int mo_sync(int fd, bool data_only)
{
	n_syncs++;
	return 0;
}

int mo_flock(int fd)
{
	return 0;
}

int mo_stat_fd(int fd, struct stat *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->st_mode = S_IFREG | 0600;
	ret->st_uid = geteuid();
	return 0;
}

int mo_stat(const char *path, struct stat *ret)
{
	return find(path) ? mo_stat_fd(0, ret) : fails(ENOENT);
}

int mo_access(const char *path, int how)
{
	return find(path) ? 0 : fails(ENOENT);
}

int mo_space(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){ .f_frsize = 4096, .f_bavail = 1 << 20 };
	return 0;
}

int mo_rename(const char *from, const char *to)
{
	struct file *f = find(from), *old = find(to);

	if (!f)
		return fails(ENOENT);
	if (old)
		mo_str_set(&old->name, NULL);
	mo_str_set(&f->name, to);
	return 0;
}

int mo_remove_at(int at, const char *path, int flags)
{
	struct file *f = find(path);

	if (!f)
		return fails(ENOENT);
	mo_str_set(&f->name, NULL);
	return 0;
}

int mo_mkdir(const char *path, mode_t mode)
{
	return 0;
}

int mo_chmod_fd(int fd, mode_t mode)
{
	return 0;
}

ssize_t mo_readlink(const char *path, char *ret, size_t size)
{
	return fails(ENOENT);
}

struct mo_dir *mo_dir_open(int at, const char *path, int flags)
{
	errno = ENOENT;
	return NULL;
}

const char *mo_dir_next(struct mo_dir *d)
{
	return NULL;
}

int mo_dir_fd(const struct mo_dir *d)
{
	return -1;
}

struct mo_dir *mo_dir_free(struct mo_dir *d)
{
	return NULL;
}

/* Nobody asks for these here; each has to stand somewhere, or file.c would be linked too. */
#define NOT_ASKED(name, ...) \
	int name(__VA_ARGS__) \
	{ \
		fail_msg(#name " was asked"); \
		return -1; \
	}
NOT_ASKED(mo_truncate, int fd, int64_t bytes)
NOT_ASKED(mo_allocate, int fd, int64_t bytes)
NOT_ASKED(mo_fs_type, const char *path, int64_t *ret)
NOT_ASKED(mo_chmod, const char *path, mode_t mode)
NOT_ASKED(mo_chown, const char *path, uid_t uid, gid_t gid)
NOT_ASKED(mo_chown_fd, int fd, uid_t uid, gid_t gid)

ssize_t mo_read_at(int fd, void *ret, size_t n, int64_t at)
{
	return fails(EIO);
}

ssize_t mo_write_at(int fd, const void *data, size_t n, int64_t at)
{
	return fails(EIO);
}
