/* Calls of the kernel about mounts and paths that the C library of 2022 does not have. A call that
 * the kernel lacks ends the maker with its name: all are in Linux 5.12. */
#pragma once
#include <stdint.h>

#include "lib/base/util.h"

/* Flags of a mount (MOUNT_ATTR_*). */
enum { FLAG_RDONLY = 1, FLAG_NOSUID = 2, FLAG_NODEV = 4, FLAG_NOEXEC = 8 };

/* A copy of what is mounted at path, in no place yet; deep: with all that is mounted below it.
 * Symbolic links are followed. A descriptor (O_PATH), or a negative errno. */
int kernel_copy_mount(const char *path, bool deep);
/* A new mount of a file system of this type, in no place yet, read-only, nosuid, nodev. */
int kernel_mount(const char *type, const char *source);
/* The same of what fd is open on (O_PATH), of that mount alone. */
int kernel_copy_open(int fd);
/* The owners of files seen through the copy are those that the user namespace maps them to; others
 * are nobody. -EINVAL: the file system cannot. */
int kernel_map_owners(int copy, int user_namespace);
/* Puts the copy in the place that target is open on (O_PATH). */
int kernel_place(int copy, int target);
/* Sets flags on the mount that fd is the root of, deep: and on all below it, at once or not at all;
 * reads back those of the first. 0, or a negative errno; -EXDEV: they are not set. */
int kernel_set_flags(int fd, unsigned flags, bool deep);
/* openat2(2): the path cannot leave the directory `root`, whatever links it holds, nor go through
 * the links of /proc.
 * Opens only what is there. */
int kernel_open_in(int root, const char *path, int flags);
/* What dir is open on becomes the root, and the root before is gone. */
int kernel_change_root(int dir);
