/* Reading for a probe (see probe_pass.h). */
#include "agent/probe/probe_pass.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "lib/base/fd.h"

#define NAMES_MAX 4096
#define SHOWN_BYTES 40 /* of what a file says that is not understood */

int pass_open(const char *root, struct probe *probe, struct probe_pass *ret)
{
	*ret = (struct probe_pass){ .root = root, .dir = -1, .probe = probe };
	ret->top = open(*root ? root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->top < 0 ? -errno : 0;
}

void pass_done(struct probe_pass *l)
{
	l->top = mo_close(l->top);
	l->dir = mo_close(l->dir);
	mo_buf_done(&l->text);
}

bool pass_enter(struct probe_pass *l, const char *path)
{
	l->dir = mo_close(l->dir);
	l->dir = openat(l->top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return l->dir >= 0;
}

bool pass_device(struct probe_pass *l, const char *dir, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, name);

	if (pass_enter(l, path))
		return true;
	l->problems++;
	probe_problem(l->probe, "%s: " PROBE_NO_DEVICE, name);
	return false;
}

/* Files that other versions of a driver do not have, and values that this device does not give. */
static bool means_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EOPNOTSUPP || r == -ENODATA;
}

static void problem(struct probe_pass *l, const char *path, const char *what)
{
	l->problems++;
	if (!l->others)
		probe_problem(l->probe, "%s: %s", path, what);
}

void pass_bad(struct probe_pass *l, const char *path, const char *what)
{
	_cleanup_(mo_freep) char *shown =
		l->text.len ? text_clean(l->text.data, l->text.len, SHOWN_BYTES) : NULL;
	_cleanup_(mo_freep) char *whole =
		shown ? mo_printf("%s: '%s'", what, shown) : mo_strdup("it is empty");

	problem(l, path, whole);
}

static const struct mo_buf *read_at(struct probe_pass *l, int dir, const char *path, size_t max)
{
	mo_buf_reset(&l->text);
	int r = dir < 0 ? -ENOENT : mo_read_file_at(dir, path, max, &l->text);
	l->files += r != -ENOENT;
	if (r < 0) {
		if (!means_absent(r))
			problem(l, path, strerror(-r));
		return NULL;
	}
	mo_buf_add(&l->text, "", 0);
	return &l->text;
}

static const char *text_at(struct probe_pass *l, int dir, const char *path)
{
	const struct mo_buf *b = read_at(l, dir, path, PASS_FILE_MAX);

	if (!b || (b->len && text_is_text(b->data, b->len)))
		return b ? b->data : NULL;
	pass_bad(l, path, "it is no text");
	return NULL;
}

const char *pass_text(struct probe_pass *l, const char *path)
{
	return text_at(l, l->dir, path);
}

const char *pass_root(struct probe_pass *l, const char *path)
{
	return text_at(l, l->top, path);
}

const struct mo_buf *pass_bytes(struct probe_pass *l, const char *path, size_t max)
{
	return read_at(l, l->dir, path, max);
}

bool pass_touch(struct probe_pass *l, const char *path)
{
	bool before = l->others;

	l->others = true;
	bool there = read_at(l, l->top, path, PASS_FILE_MAX) != NULL;
	l->others = before;
	return there;
}

static int64_t int_of(struct probe_pass *l, const char *path, const char *s)
{
	int64_t v = s && !text_no_value(s) ? text_whole(s) : MO_NONE;

	if (!s || v >= 0 || text_no_value(s))
		return v;
	pass_bad(l, path, "it is no number");
	return MO_NONE;
}

int64_t pass_int(struct probe_pass *l, const char *path)
{
	return int_of(l, path, pass_text(l, path));
}

int64_t pass_root_int(struct probe_pass *l, const char *path)
{
	return int_of(l, path, pass_root(l, path));
}

static char *line_of(const char *s)
{
	_cleanup_(mo_freep) char *line = s ? text_line(s) : NULL;
	return line ? text_clean(line, strlen(line), TEXT_LINE_MAX) : NULL;
}

char *pass_line(struct probe_pass *l, const char *path)
{
	return line_of(pass_text(l, path));
}

char *pass_root_line(struct probe_pass *l, const char *path)
{
	return line_of(pass_root(l, path));
}

static double leading_of(struct probe_pass *l, const char *path, const char *s)
{
	double v = s ? text_leading(s) : MO_NONE_F;

	if (s && v == MO_NONE_F && !text_no_value(s))
		pass_bad(l, path, "it is no number");
	return v;
}

double pass_leading(struct probe_pass *l, const char *path)
{
	return leading_of(l, path, pass_text(l, path));
}

double pass_root_leading(struct probe_pass *l, const char *path)
{
	return leading_of(l, path, pass_root(l, path));
}

int64_t pass_key(struct probe_pass *l, const char *path, const char *text, const char *key)
{
	int64_t v = text_key_int(text, key);
	_cleanup_(mo_freep) char *what = v < 0 ? mo_printf("no number behind %s", key) : NULL;

	if (v >= 0)
		return v;
	pass_bad(l, path, what);
	return MO_NONE;
}

void pass_add_int(struct probe_pass *l, const char *key, const char *path)
{
	reading_add_int(l->probe, key, pass_int(l, path));
}

void pass_add_text(struct probe_pass *l, const char *key, const char *path)
{
	_cleanup_(mo_freep) char *line = pass_line(l, path);
	reading_add_text(l->probe, key, line);
}

char *pass_link(struct probe_pass *l, const char *path)
{
	char target[512];
	ssize_t n = l->dir < 0 ? -1 : readlinkat(l->dir, path, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = 0;
	const char *slash = strrchr(target, '/');
	return mo_strdup(slash ? slash + 1 : target);
}

static int by_version(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

struct pass_names pass_list(struct probe_pass *l, bool from_root, const char *path)
{
	struct pass_names names = { 0 };
	int at = from_root ? l->top : l->dir,
	    fd = at < 0 ? -1 : openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		if (at >= 0 && !means_absent(-errno))
			problem(l, path, strerror(errno));
		mo_close(fd);
		return names;
	}
	l->files++;
	errno = 0;
	for (struct dirent *e; names.n < NAMES_MAX && (e = readdir(dir)); errno = 0)
		if (e->d_name[0] != '.')
			mo_strs_add(&names.items, &names.n, e->d_name);
	if (errno)
		problem(l, path, strerror(errno));
	closedir(dir);
	if (names.n)
		qsort(names.items, names.n, sizeof(*names.items), by_version);
	return names;
}

void pass_names_done(struct pass_names *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->items[i]);
	free(n->items);
	*n = (struct pass_names){ 0 };
}
