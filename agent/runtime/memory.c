/* See memory.h. "BOOT_US IMAGE", then the answer; an image's name has no blanks. */
#include "agent/runtime/memory.h"

#include <string.h>

#include "agent/core/stepd/runtime_image.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

/* from a controller's question to its launch, on a node that is slow */
#define AGE_MAX_US (INT64_C(60) * 1000000)

void memory_write(const char *dir, const char *runtime, const char *image, const char *text)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "image.%s", runtime),
				 *all = mo_printf("%lld %s\n%s", (long long)mo_clock_boot_us(),
						  image, text);

	(void)mo_write_file(path, all, strlen(all), 0600, false);
}

bool memory_read(const char *dir, const char *runtime, const char *image, struct mo_buf *ret)
{
	_cleanup_(mo_freep) char *path = mo_path(dir, "image.%s", runtime);
	_cleanup_(mo_buf_done) struct mo_buf all = { 0 };
	int64_t at, now = mo_clock_boot_us();

	if (mo_read_file(path, RUNTIME_ANSWER_MAX, &all) < 0 || all.len == 0)
		return false;
	const char *text = all.data;
	_cleanup_(mo_freep) char *time = mo_part(&text, " "), *name = mo_part(&text, "\n");

	if (mo_parse_i64(time, 0, now, &at) < 0 || now - at > AGE_MAX_US || !mo_streq(name, image))
		return false;
	mo_buf_consume(ret, ret->len);
	mo_buf_str(ret, text);
	return true;
}
