/* A directory of images by their digests (unpack --by-digest). Who uses one, as a step does, holds
 * a shared flock(2) on its directory, and looks after that whether the directory still has its
 * name. Its age is the directory's time of change: unpack, asked for it once more, sets it. */
#pragma once
#include "lib/base/error.h"

/* One line for each: digest, bytes, time of last use, used or free. 0, or an error with err. */
int cache_list(const char *path, struct mo_error *err);
/* Removes the longest unused ones until the rest takes no more, and what killed ones left; never
 * one that is used, or was
 * asked for within unused_us. One line for each, and one of what is there then. */
int cache_prune(const char *path, int64_t bytes_max, int64_t unused_us, struct mo_error *err);
