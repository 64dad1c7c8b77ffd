/* Reading for a probe (see look.h). */
#include "agent/probe/look.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/reading.h"
#include "agent/core/sysfs_text.h"
#include "lib/base/fd.h"

#define NAMES_MAX 4096

int look_open(const char *root, struct probe *probe, struct look *ret) {
	*ret = (struct look){ .root = root, .dir = -1, .probe = probe };
	ret->top = open(*root ? root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ret->top < 0 ? -errno : 0;
}

void look_done(struct look *l) {
	l->top = mo_close(l->top);
	l->dir = mo_close(l->dir);
	mo_buf_done(&l->text);
}

bool look_enter(struct look *l, const char *path) {
	l->dir = mo_close(l->dir);
	l->dir = openat(l->top, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return l->dir >= 0;
}

/* Files that other versions of a driver do not have, and values that this device does not give. */
static bool means_absent(int r) {
	return r == -ENOENT || r == -ENOTDIR || r == -EOPNOTSUPP || r == -ENODATA;
}

static const struct mo_buf *read_at(struct look *l, int dir, const char *path, size_t max) {
	mo_buf_reset(&l->text);
	int r = dir < 0 ? -ENOENT : mo_read_file_at(dir, path, max, &l->text);
	l->files += r != -ENOENT;
	if (r < 0) {
		if (!means_absent(r)) {
			l->problems++;
			probe_problem(l->probe, "%s: %s", path, strerror(-r));
		}
		return NULL;
	}
	mo_buf_add(&l->text, "", 0);
	return &l->text;
}

static const char *as_text(const struct mo_buf *b) {
	return b ? b->data ? b->data : "" : NULL;
}

const char *look_text(struct look *l, const char *path) {
	return as_text(read_at(l, l->dir, path, LOOK_FILE_MAX));
}

const char *look_root(struct look *l, const char *path) {
	return as_text(read_at(l, l->top, path, LOOK_FILE_MAX));
}

const struct mo_buf *look_bytes(struct look *l, const char *path, size_t max) {
	return read_at(l, l->dir, path, max);
}

int64_t look_int(struct look *l, const char *path) {
	const char *s = look_text(l, path);
	return s ? text_int(s) : MO_NONE;
}

int64_t look_root_int(struct look *l, const char *path) {
	const char *s = look_root(l, path);
	return s ? text_int(s) : MO_NONE;
}

void look_add_int(struct look *l, const char *key, const char *path) {
	reading_add_int(l->probe, key, look_int(l, path));
}

void look_add_text(struct look *l, const char *key, const char *path) {
	const char *s = look_text(l, path);
	_cleanup_(mo_freep) char *line = s ? text_line(s) : NULL;
	reading_add_text(l->probe, key, line);
}

char *look_link(struct look *l, const char *path) {
	char target[512];
	ssize_t n = l->dir < 0 ? -1 : readlinkat(l->dir, path, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = 0;
	const char *slash = strrchr(target, '/');
	return mo_strdup(slash ? slash + 1 : target);
}

static int by_version(const void *a, const void *b) {
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

struct look_names look_list(struct look *l, bool from_root, const char *path) {
	struct look_names names = { 0 };
	int at = from_root ? l->top : l->dir, fd = at < 0 ? -1 : openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		mo_close(fd);
		return names;
	}
	l->files++;
	for (struct dirent *e; names.n < NAMES_MAX && (e = readdir(dir)); )
		if (e->d_name[0] != '.')
			mo_strs_add(&names.items, &names.n, e->d_name);
	closedir(dir);
	if (names.n)
		qsort(names.items, names.n, sizeof(*names.items), by_version);
	return names;
}

void look_names_done(struct look_names *n) {
	for (size_t i = 0; i < n->n; i++)
		free(n->items[i]);
	free(n->items);
	*n = (struct look_names){ 0 };
}
