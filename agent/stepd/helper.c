/* See helper.h. */
#include "agent/stepd/helper.h"

#include <string.h>

#include "lib/base/file.h"

char *stepd_helper(const char *name)
{
	char self[4096];
	ssize_t n = mo_readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return NULL;
	self[n] = 0;
	const char *slash = strrchr(self, '/');

	return slash ? mo_printf("%.*s/%s", (int)(slash - self), self, name) : NULL;
}
