/* Files below a directory that somebody else filled: an image. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/file.h"

/* openat2(2): opens only what is there; the path cannot leave the directory `root`, whatever links
 * it holds, nor go through the links of /proc. "" is the directory. A descriptor, or a negative
 * errno, which errno has too; -ENOSYS: a kernel before Linux 5.6. */
int mo_open_in(int root, const char *path, int flags);
/* The same, and no mount below the directory is entered: -EXDEV. */
int mo_open_in_fs(int root, const char *path, int flags);
/* A regular file, opened to be read after it was looked at: to open a FIFO or a device has effects
 * of its own. A descriptor, -EINVAL for another kind of file, or a negative errno. */
int mo_open_plain_in(int root, const char *path, int flags);
/* The whole of it, of at most max bytes (-EFBIG), added to b. 0, or as above. */
int mo_read_in(int root, const char *path, int flags, size_t max, struct mo_buf *b);
