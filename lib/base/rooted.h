/* Files below a directory that somebody else filled: an image. */
#pragma once
#include "lib/base/file.h"

/* openat2(2): opens only what is there; the path cannot leave the directory `root`, whatever links
 * it holds, nor go through the links of /proc. "" is the directory. A descriptor, or a negative
 * errno, which errno has too; -ENOSYS: a kernel before Linux 5.6. */
int mo_open_in(int root, const char *path, int flags);
/* The same, and no mount below the directory is entered: -EXDEV. */
int mo_open_in_fs(int root, const char *path, int flags);
