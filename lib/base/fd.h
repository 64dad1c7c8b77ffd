/* What is made of the calls of file.h: whole files, atomic replacement, locks, paths, data files.
 *
 * Called by shells, helpers and moectl; not for pure rooms. It does not ask the kernel itself: that
 * is file.c, the seam for files (docs/decisions/010-seams.md), so that a test may play a disk.
 * All return 0 or more, or a negative errno.
 *
 * What never happens: a reader sees half of a file that mo_write_file() replaces (it is written
 * beside it and renamed); a file is read beyond the limit that the caller names; a link is followed
 * while something is removed. Calls may wait for the disk: a daemon asks here only for small files
 * on local disks, what may hang is a helper's. */
#pragma once
#include <sys/types.h>
#include "lib/base/buf.h"
#include "lib/base/chance.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

int mo_write_all(int fd, const void *data, size_t n);
/* Whole file into b, at most max bytes (-EFBIG above). */
int mo_read_file(const char *path, size_t max, struct mo_buf *b);
int mo_read_fd(int fd, size_t max, struct mo_buf *b);
int mo_read_file_at(int dirfd, const char *path, size_t max, struct mo_buf *b);
/* Atomic replacement: tmp in the same directory, write, fsync when sync, rename, fsync of the
 * directory when sync. mode e.g. 0600. */
int mo_write_file(const char *path, const void *data, size_t n, mode_t mode, bool sync);
/* The names in it last, also those of somebody who was killed before he synced them. */
int mo_sync_dir(const char *path);
/* With all above it; sync: they last, as what is synced in them does. */
int mo_mkdir_p(const char *path, mode_t mode, bool sync);
/* path and everything below, links not followed; missing is fine */
int mo_rm_rf(const char *path);
char *mo_path(const char *dir, const char *fmt, ...) _printf_(2, 3); /* "dir/…", caller frees */
/* Nonblocking flock(LOCK_EX) on path (created 0600). Returns the held fd or -EWOULDBLOCK when
 * somebody holds it. */
int mo_lock_file(const char *path);
/* The same, asked again for two seconds: a child between fork and exec still holds the lock of a
 * process that was just killed. */
int mo_lock_file_soon(const char *path);
/* /proc/sys/kernel/random/boot_id without dashes; MOE_BOOT_ID in the environment replaces it,
 * for units that cannot see it and for tests; NULL when unreadable */
char *mo_boot_id(void);
char *mo_random_hex(size_t n_bytes);
/* Where a data file or directory of that name may lie, first come first served: MOE_DATA_DIR,
 * /etc/moe, what is shipped. NULL: none; the caller frees each. */
#define MO_DATA_PATHS 3
void mo_data_paths(const char *name, char *ret[static MO_DATA_PATHS]);
/* Data files: MOE_DATA_DIR, /etc/moe, then the installed share directory (compiled in; the
 * source tree's config/ when run from the tree). Returns the first existing path of name below
 * those (caller frees), NULL if none. */
char *mo_data_file(const char *name);
/* the one that came with the program, whatever lies before it */
char *mo_data_shipped(const char *name);
/* Names (without .yaml) of the files in this directory of any of them, each once, in no order;
 * appended. mo_data_file() of a name finds the one that counts. */
void mo_data_names(const char *dir, char ***ret, size_t *n_ret);
/* Where our own helper programs are: next to /proc/self/exe (or, within the source tree, in a
 * directory above it), else the compiled-in libexec directory. Caller frees; NULL if none. */
char *mo_libexec(const char *program);
