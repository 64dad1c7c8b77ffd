/* A directory of images by their digests (unpack --by-digest). Who uses one, as a step does, holds
 * a shared flock(2) on its directory, and looks after that whether the directory still has its
 * name. Its age is the directory's time of change: unpack, asked for it once more, sets it. */
#pragma once
#include "agent/core/image/cache.h"
#include "agent/image/args.h"
#include "lib/base/error.h"

struct images {
	struct cached *all; /* by time of use, the oldest first */
	size_t n;
};
/* 0, or an error with err; images_done() in any case. */
int cache_read(const char *path, struct images *ret, struct mo_error *err);
void images_done(struct images *i);
/* It is one of a->keeps. */
bool cache_keeps(const struct args *a, const char *name);
/* One of them goes, unless somebody holds a lock on it: -EWOULDBLOCK. */
int cache_remove(const char *path, const char *name, struct mo_error *err);

/* One line for each: digest, bytes, time of last use, used or free. 0, or an error with err. */
int cache_list(const char *path, struct mo_error *err);
/* Removes the longest unused ones of a->dir until the rest takes no more than a->bytes_max, and
 * what killed ones left; never one that is used, is in a->keeps, or was asked for within
 * a->unused_us; without locks, within a day. One line for each, and one of what is there then. */
int cache_prune(const struct args *a, struct mo_error *err);
