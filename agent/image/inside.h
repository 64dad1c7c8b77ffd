/* Paths that cannot leave a directory, whatever links lie in it: openat2(2). */
#pragma once
#include "lib/base/util.h"

/* Opens a directory (O_PATH) below `root`, whatever links lie on the way; it is made, with those
 * above it, where it is missing. A descriptor, or a negative errno. */
int inside_directory(int root, const char *path);
