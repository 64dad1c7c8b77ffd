/* See namespace_words.h. */
#include "agent/core/stepd/namespace_words.h"

#include <errno.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/base/utf8.h"

char *namespace_problem(const char *line, size_t n, int *ret_error)
{
	const char *space = n ? memchr(line, ' ', n) : NULL;
	_cleanup_(mo_freep) char *number = space ? mo_strndup(line, (size_t)(space - line)) : NULL;
	int64_t error = 0;

	*ret_error = 0;
	if (n == 2 && memcmp(line, "ok", 2) == 0)
		return NULL;
	*ret_error = EIO;
	if (n == 0)
		return mo_strdup("moe-namespace ended without a word");
	if (!space || mo_parse_i64(number, 1, 4095, &error) < 0 || !mo_utf8_valid(line, n))
		return mo_strdup("moe-namespace answered what it never says");
	*ret_error = (int)error;
	return mo_printf("could not %.*s: %s", (int)(n - (size_t)(space + 1 - line)), space + 1,
			 strerror((int)error));
}

const char *namespace_refusal(bool image, int error)
{
	switch (image ? error : 0) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case EACCES:
	case EINVAL:
	case EFBIG:
	case E2BIG: return "image";
	default: return "namespace";
	}
}

bool namespace_denied(const char *line, size_t n)
{
	const char *space = n ? memchr(line, ' ', n) : NULL;
	size_t rest = space ? n - (size_t)(space + 1 - line) : 0;

	return rest == strlen(NAMESPACE_MAKE) && memcmp(space + 1, NAMESPACE_MAKE, rest) == 0;
}
