/* See progress.h. */
#include "agent/core/image/progress.h"

#include <string.h>

#include "lib/base/parse.h"

#define IMAGE "image "
#define UNPACKED "unpacked "
#define OF " of "
#define BYTES " bytes"

/* N of M bytes */
static bool read_bytes(const char *line, struct image_report *ret)
{
	const char *of = strstr(line, OF), *bytes = of ? strstr(of, BYTES) : NULL;
	_cleanup_(mo_freep) char *done = of ? mo_strndup(line, (size_t)(of - line)) : NULL;
	_cleanup_(mo_freep) char *total =
		bytes ? mo_strndup(of + strlen(OF), (size_t)(bytes - of) - strlen(OF)) : NULL;
	int64_t n, all;

	if (!total || mo_parse_i64(done, 0, MO_FIT_INT, &n) < 0 ||
	    mo_parse_i64(total, 0, MO_FIT_INT, &all) < 0)
		return false;
	ret->done = n;
	ret->total = all;
	return true;
}

static void read_line(const char *line, struct image_report *ret)
{
	if (mo_starts_with(line, IMAGE) && image_digest_valid(line + strlen(IMAGE)))
		mo_str_set(&ret->digest, line + strlen(IMAGE));
	else if (image_digest_valid(line))
		mo_str_set(&ret->digest, line);
	else if (mo_starts_with(line, UNPACKED))
		ret->unpacking = read_bytes(line + strlen(UNPACKED), ret);
	else
		(void)read_bytes(line, ret);
}

void progress_read(const char *out, size_t n, struct image_report *ret)
{
	for (const char *end; n > 0 && (end = memchr(out, '\n', n));) {
		_cleanup_(mo_freep) char *line = mo_strndup(out, (size_t)(end - out));

		read_line(line, ret);
		n -= (size_t)(end - out) + 1;
		out = end + 1;
	}
}
