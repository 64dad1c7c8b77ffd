/* A directory of images, each in a directory that is named by its digest: which of them go when
 * they take too much. Pure. */
#pragma once
#include "lib/base/util.h"

/* Of a directory whose file system has none: with it begins the line that says so. */
#define CACHE_LOCKLESS "no locks in "

struct cached {
	char *name; /* of the directory */
	int64_t bytes;
	int64_t used_us; /* when it was last asked for */
	bool in_use;
	bool goes; /* cache_choose() says so */
};
/* By time of use, the oldest first. */
void cache_sort(struct cached *all, size_t n);
/* Sorted ones: the oldest go that are not in use, until the rest takes no more than max. What the
 * rest takes. */
int64_t cache_choose(struct cached *all, size_t n, int64_t bytes_max);
