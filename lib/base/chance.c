/* See chance.h. */
#include "lib/base/chance.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

int mo_random(void *data, size_t n)
{
	char *p = data;

	while (n > 0) {
		ssize_t r = getrandom(p, n, 0);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}
