/* Paths that cannot leave a directory, whatever links lie in it: openat2(2). */
#pragma once
#include "lib/base/util.h"

/* Opens what is there; links that lead elsewhere are followed as if the directory were the root.
 * "" is the directory. A descriptor, or a negative errno. */
int inside_open(int root, const char *path, int flags);
/* Opens a directory (O_PATH), which is made, with those above it, where it is missing. */
int inside_directory(int root, const char *path);
