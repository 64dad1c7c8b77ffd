/* Places that something is mounted on. All names resolve in the root, which is the working
 * directory and the image's by then: whatever links the image holds, nothing of the node is
 * reached. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#include "lib/base/util.h"

/* What is mounted on the directory from now on is the step's own: root, tmpfs. Only there is made
 * what is missing; what the node's mounts hold is never changed. */
void target_own(const char *path);
/* Of what lies there. */
bool target_is_own(const struct stat *st);
/* O_PATH descriptor of the path (absolute, without `..`), a directory or a file as the source is,
 * made if it is missing. A symbolic link, `/` and one of the other kind end the maker. */
int target_open(const char *path, bool directory);
