/* See secret.h. */
#include "lib/base/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "lib/base/fd.h"
#include "lib/base/util.h"

#define TOKEN_BYTES_MAX 4096

static int check(const char *path, int fd, struct mo_error *err)
{
	struct stat st;

	if (mo_stat_fd(fd, &st) < 0)
		return mo_error_set(err, -errno, "%s: %s", path, strerror(errno));
	mode_t refused = st.st_uid == 0 ? S_IWGRP | S_IRWXO : S_IRWXG | S_IRWXO;
	if (!S_ISDIR(st.st_mode) && !(st.st_mode & refused))
		return 0;
	if (S_ISDIR(st.st_mode))
		return mo_error_set(err, -EISDIR, "%s: is a directory; name the file in it", path);
	return mo_error_set(err, -EPERM,
			    "%s: others may %s it (mode %04o); it holds a secret: chmod 600 %s, "
			    "and make a new one if others are on this machine",
			    path, st.st_mode & refused & (S_IRGRP | S_IROTH) ? "read" : "change",
			    (unsigned)(st.st_mode & 07777), path);
}

static int open_checked(const char *path, int flags, struct mo_error *err)
{
	int fd = mo_open_at(AT_FDCWD, path, O_RDONLY | flags, 0);

	if (fd < 0)
		return mo_error_set(err, -errno, "%s: %s", path, strerror(errno));
	int r = check(path, fd, err);
	if (r < 0) {
		mo_close(fd);
		return r;
	}
	return fd;
}

int mo_secret_check(const char *path, struct mo_error *err)
{
	int fd = open_checked(path, 0, err);

	mo_close(fd);
	return MO_MIN(fd, 0);
}

static int read_checked(int fd, const char *path, size_t max, struct mo_buf *b,
			struct mo_error *err)
{
	int r = mo_read_fd(fd, max, b);

	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int mo_secret_read(const char *path, size_t max, struct mo_buf *b, struct mo_error *err)
{
	_cleanup_(mo_closep) int fd = open_checked(path, 0, err);

	return fd < 0 ? fd : read_checked(fd, path, max, b, err);
}

int mo_secret_read_file(const char *path, size_t max, struct mo_buf *b, struct mo_error *err)
{
	_cleanup_(mo_closep) int fd = open_checked(path, O_NONBLOCK | O_NOCTTY, err);
	struct stat st;

	if (fd < 0)
		return fd;
	if (mo_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return mo_error_set(err, -EINVAL, "%s: it is no regular file", path);
	return read_checked(fd, path, max, b, err);
}

int mo_token_read(const char *path, char **ret, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	int r = mo_secret_read(path, TOKEN_BYTES_MAX, &b, err);
	if (r < 0)
		return r;
	const char *text = b.data ? b.data : "";
	text += strspn(text, " \t\r\n");
	size_t n = strcspn(text, " \t\r\n");
	if (n == 0)
		return mo_error_set(err, -ENODATA, "%s: holds no token", path);
	*ret = mo_strndup(text, n);
	return 0;
}
