/* See cache.h. */
#include "agent/core/image/cache.h"

#include <string.h>

static int by_use(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	if (x->used_us != y->used_us)
		return x->used_us < y->used_us ? -1 : 1;
	return strcmp(x->name, y->name);
}

void cache_sort(struct cached *all, size_t n)
{
	if (n > 0)
		qsort(all, n, sizeof(*all), by_use);
}

int64_t cache_choose(struct cached *all, size_t n, int64_t bytes_max)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += all[i].bytes;
	for (size_t i = 0; i < n && bytes > bytes_max; i++) {
		if (all[i].in_use)
			continue;
		all[i].goes = true;
		bytes -= all[i].bytes;
	}
	return bytes;
}
