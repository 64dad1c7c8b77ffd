/* See names.h. */
#include "agent/image/names.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/fd.h"

#define FILE_NAME "names"
#define NAMES_MAX 32 /* the oldest go */
#define FILE_MAX (NAMES_MAX * 4097)

void names_read(int image_dir, char ***ret, size_t *n_ret)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (mo_read_file_at(image_dir, FILE_NAME, FILE_MAX, &b) < 0)
		return;
	for (const char *line = b.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		_cleanup_(mo_freep) char *name = mo_strndup(line, (size_t)(end - line));

		if (*name && *n_ret < NAMES_MAX)
			mo_strs_add(ret, n_ret, name);
	}
}

void names_add(const char *image_dir, const char *name)
{
	_cleanup_(mo_closep) int dir =
		mo_open_at(AT_FDCWD, image_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	_cleanup_(mo_freep) char *path = mo_path(image_dir, FILE_NAME);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	char **names = NULL;
	size_t n = 0;

	if (dir < 0 || strchr(name, '\n'))
		return;
	names_read(dir, &names, &n);
	if (n == 0 || !mo_streq(names[n - 1], name)) {
		for (size_t i = n == NAMES_MAX ? 1 : 0; i < n; i++)
			if (!mo_streq(names[i], name))
				mo_buf_printf(&b, "%s\n", names[i]);
		mo_buf_printf(&b, "%s\n", name);
		(void)mo_write_file(path, b.data, b.len, 0644, false);
	}
	mo_strs_clear(&names, &n);
}
