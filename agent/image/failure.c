/* See failure.h. */
#include "agent/image/failure.h"

#include <stdio.h>

#include "lib/base/line.h"
#include "lib/base/util.h"
#include "lib/model/reference.h"

int failure_told(const char *what, int r, const struct mo_error *err)
{
	_cleanup_(mo_freep) char *line =
		mo_printf("%s%s%s", mo_error_text(err, r), err->hint ? "; " : "",
			  err->hint ? err->hint : "");
	_cleanup_(mo_freep) char *plain = mo_line_plain_dup(line);

	fprintf(stderr, "moe-image: %s: %s\n", what, plain);
	return r == IMAGE_REFUSED ? 3 : 1;
}
