/* See report.h. */
#include "agent/namespace/report.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/line.h"
#include "lib/base/utf8.h"

#define REPORT_FD 3
/* of a line: moe-stepd reads no longer one, and what is longer is a path of somebody's */
#define WHAT_MAX 480

_Noreturn void report_failure(int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	_cleanup_(mo_freep) char *all = mo_vprintf(fmt, ap);
	va_end(ap);
	size_t n = mo_line_plain(all, strlen(all), all);
	_cleanup_(mo_freep) char *what = mo_strndup(all, n);
	_cleanup_(mo_freep) char *line =
		mo_printf("%d %.*s\n", error, mo_utf8_shown(what, WHAT_MAX), what);

	(void)mo_write_all(REPORT_FD, line, strlen(line));
	_exit(1);
}

_Noreturn void report_made(const char *image_config)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "ok\n");
	if (image_config)
		mo_buf_printf(&b, "%s\n", image_config);
	/* who does not hear it has ended, and this process with it */
	if (mo_write_all(REPORT_FD, b.data, b.len) < 0)
		_exit(1);
	struct pollfd life = { .fd = STDIN_FILENO };

	while (poll(&life, 1, -1) < 0 && errno == EINTR)
		continue;
	_exit(0);
}
