/* The one place that touches files: whatever a shell asks of a disk or of /proc and /sys goes
 * through these calls, so that a program that links another file with the same names has a disk of
 * its own (docs/decisions/010-seams.md; the lint tests/lint/seams). Above them stand fd.h (whole
 * files, atomic replacement) and lib/store.
 *
 * 0 or more, or a negative errno, which errno has too. Nothing is decided here, and nothing is
 * tried again. Whatever is opened is O_CLOEXEC. `at` as in openat(2): AT_FDCWD, or a directory. */
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include "lib/base/util.h"

/* mode: of a file that O_CREAT makes, else 0 */
int mo_open_at(int at, const char *path, int flags, mode_t mode);
/* "PATH.XXXXXX" as of mkostemp(3): template gets the name */
int mo_open_temp(char *template);
/* returns -1, for fd = mo_close(fd); accepts -1 */
int mo_close(int fd);
static inline void mo_closep(int *fd)
{
	mo_close(*fd);
}
/* Bytes read or written, as read(2) and so on: fewer than n may be all. Pipes and sockets too. */
ssize_t mo_read(int fd, void *ret, size_t n);
ssize_t mo_read_at(int fd, void *ret, size_t n, int64_t at);
ssize_t mo_write(int fd, const void *data, size_t n);
ssize_t mo_write_at(int fd, const void *data, size_t n, int64_t at);
int mo_truncate(int fd, int64_t bytes);
int mo_allocate(int fd, int64_t bytes); /* from 0 on */
/* What was written, or the names in a directory, are there after a loss of power. data_only: not
 * the times. */
int mo_sync(int fd, bool data_only);
int mo_flock(int fd); /* exclusive; -EWOULDBLOCK */
/* What it returns where the file system has no locks, as NFS and Lustre may be mounted. */
bool mo_flock_lacks(int result);
int mo_stat(const char *path, struct stat *ret);
int mo_stat_fd(int fd, struct stat *ret);
/* F_OK, R_OK, W_OK, X_OK */
int mo_access(const char *path, int how);
int mo_space(const char *path, struct statvfs *ret);
int mo_fs_type(const char *path, int64_t *ret); /* f_type of statfs(2) */
int mo_rename(const char *from, const char *to);
/* flags: 0, or AT_REMOVEDIR */
int mo_remove_at(int at, const char *path, int flags);
int mo_mkdir(const char *path, mode_t mode);
int mo_chmod(const char *path, mode_t mode);
int mo_chmod_fd(int fd, mode_t mode);
/* of the link itself where path is one */
int mo_chown(const char *path, uid_t uid, gid_t gid);
int mo_chown_fd(int fd, uid_t uid, gid_t gid);
/* bytes put into ret, which gets no 0 */
ssize_t mo_readlink(const char *path, char *ret, size_t size);
/* The names in a directory, without . and .., in no order. flags: 0 or O_NOFOLLOW. NULL: errno. */
struct mo_dir;
struct mo_dir *mo_dir_open(int at, const char *path, int flags);
/* valid until the next call. NULL: that was all (errno 0), or errno. d may be NULL. */
const char *mo_dir_next(struct mo_dir *d);
int mo_dir_fd(const struct mo_dir *d);
struct mo_dir *mo_dir_free(struct mo_dir *d);
MO_DEFINE_CLEANUP(struct mo_dir, mo_dir_free)
