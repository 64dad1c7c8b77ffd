/* An image that is a file with a squashfs in it, which the kernel mounts. */
#pragma once
#include "agent/core/stepd/box.h"

/* The file, as the user, to be read. */
int squash_open(const struct box *b);
/* As root: a mount of it in no place yet, read-only, nosuid, nodev. O_PATH of its root; it ends,
 * with its loop device, when nothing holds it. */
int squash_mount(const struct box *b, int file);
