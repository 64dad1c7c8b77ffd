/* What the step's namespace is asked to have: moe-namespace reads it from the file `box` of the
 * step's directory. What it made is read back from outside, by the root of its process, before
 * anything of the job is forked: a rank that saw the device files of another job would run on its
 * GPUs, and one that saw more than its own would count them wrongly. */
#include "agent/stepd/box.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/core/stepd/box_image.h"
#include "agent/core/stepd/box_make.h"
#include "lib/base/fd.h"
#include "lib/wire/encode.h"

struct files {
	struct device_file *items;
	size_t n;
};

static void files_done(struct files *f)
{
	device_files_clear(&f->items, &f->n);
}

/* Adds the device at `seen`, if it is one, under the name `path`. */
static void add(struct files *f, const char *seen, const char *path)
{
	struct stat st;

	if (mo_stat(seen, &st) == 0 && S_ISCHR(st.st_mode))
		*MO_GROW(f->items, f->n) =
			(struct device_file){ .path = mo_strdup(path), .number = st.st_rdev };
}

/* Adds the devices in a directory, as that root has it, whose names begin so. 0, or a negative
 * errno; there need not be such a directory. */
static int add_all(struct files *f, const char *root, const char *dir, const char *prefix)
{
	_cleanup_(mo_freep) char *top = mo_printf("%s%s", root, dir);
	_cleanup_(mo_dir_freep) struct mo_dir *d = mo_dir_open(AT_FDCWD, top, 0);
	const char *name;

	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((name = mo_dir_next(d))) {
		_cleanup_(mo_freep) char *seen = mo_path(top, "%s", name),
					 *path = mo_path(dir, "%s", name);
		if (mo_starts_with(name, prefix))
			add(f, seen, path);
	}
	return -errno;
}

/* Of the node, all that a rank may need. What cannot be listed will be missing. */
static void find(const struct stepd *s, struct files *ret)
{
	_cleanup_(mo_freep) char *dev = box_device_dir(&s->spool, "/dev");

	for (size_t i = 0; device_dirs[i]; i++) {
		_cleanup_(mo_freep) char *dir = box_device_dir(&s->spool, device_dirs[i]);
		(void)add_all(ret, "", dir, "");
	}
	(void)add_all(ret, "", dev, "kfd");
	(void)add_all(ret, "", dev, "nvidia");
}

static int fill_image(const struct stepd *s, struct box *b, struct mo_error *err)
{
	const char *there[BOX_NODE_FILES_MAX + 1] = { NULL };
	_cleanup_(mo_freep) int64_t *groups = NULL;
	size_t n = 0, n_groups = 0;

	for (size_t i = 0; box_node_files[i]; i++)
		if (mo_access(box_node_files[i], F_OK) == 0)
			there[n++] = box_node_files[i];
	for (int i = 0; i < s->who.n_groups; i++)
		*MO_GROW(groups, n_groups) = s->who.groups[i];
	const struct box_terms t = { .step_dir = s->dir,
				     .uid = s->who.uid,
				     .gid = s->who.gid,
				     .groups = groups,
				     .n_groups = n_groups,
				     .user = s->who.user,
				     .home = s->who.home,
				     .unprivileged = mo_uid() != 0,
				     .there = there };

	return box_image(&s->spool, &t, b, err);
}

int box_of(const struct stepd *s, struct box **ret, struct mo_error *err)
{
	_cleanup_(files_done) struct files here = { 0 };
	struct box *b = mo_alloc(sizeof(*b));
	int r = 0;

	mo_desc_init(&box_desc, b);
	b->shm_bytes = 0;
	if (s->spool.launch.container)
		r = fill_image(s, b, err);
	find(s, &here);
	box_devices(&s->spool, here.items, here.n, b);
	if (r == 0 && box_asks(b)) {
		*ret = b;
		return 0;
	}
	mo_desc_free(&box_desc, b);
	return r;
}

int box_write(const struct stepd *s)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "box");

	wire_encode(&box_desc, s->box, &b);
	return mo_write_file(path, b.data, b.len, 0400, false);
}

char *box_verify(const struct stepd *s, pid_t maker)
{
	_cleanup_(files_done) struct files here = { 0 }, inside = { 0 };
	_cleanup_(mo_freep) char *root = mo_printf("/proc/%d/root", (int)maker);

	find(s, &here);
	for (size_t i = 0; i < s->box->n_walled; i++) {
		int r = add_all(&inside, root, s->box->walled[i], "");
		if (r < 0)
			return mo_printf("%s cannot be read back: %s", s->box->walled[i],
					 strerror(-r));
	}
	return box_judge(s->box, inside.items, inside.n, here.items, here.n);
}
