/* See box_make.h. */
#include "agent/core/stepd/box_make.h"

#include <string.h>

#include "agent/core/bind/env_nic.h"
#include "agent/core/bind/walls.h"

#define DRI "/dev/dri"
#define INFINIBAND "/dev/infiniband"

const char *const device_dirs[] = { DRI, INFINIBAND, NULL };

void device_files_clear(struct device_file **files, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		free((*files)[i].path);
	free(*files);
	*files = NULL;
	*n = 0;
}

char *box_device_dir(const struct spool *s, const char *dir)
{
	return mo_printf("%s%s", s->devices_root ? s->devices_root : "", dir);
}

/* The path below the directory of device files: /dev/dri/renderD128. */
static const char *plain(const struct spool *s, const char *path)
{
	size_t n = s->devices_root ? strlen(s->devices_root) : 0;

	return n && mo_starts_with(path, s->devices_root) ? path + n : path;
}

static bool is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return mo_starts_with(path, dir) && path[n] == '/';
}

static bool has(const struct box *b, const char *source)
{
	for (size_t i = 0; i < b->n_devices; i++)
		if (mo_streq(b->devices[i].source, source))
			return true;
	return false;
}

/* In an image the files lie where the ranks look for them, also those of another root. */
static void add(const struct spool *s, const char *path, struct box *b)
{
	if (has(b, path))
		return;
	struct container_mount *m = MO_ADD(b, devices, &container_mount_desc);
	m->source = mo_strdup(path);
	m->target = mo_strdup(b->root ? plain(s, path) : path);
}

static void add_wall(const struct spool *s, const char *dir, struct box *b)
{
	_cleanup_(mo_freep) char *path = b->root ? mo_strdup(dir) : box_device_dir(s, dir);

	mo_strs_add(&b->walled, &b->n_walled, path);
}

/* Its own, whether they are there or not: without one of them its ranks would count wrongly. */
static void add_gpus(const struct spool *s, struct box *b)
{
	_cleanup_(mo_freep) char *dir = box_device_dir(s, DRI);

	for (size_t i = 0; i < s->launch.n_gpus; i++)
		for (size_t k = 0; k < s->info.n_gpus; k++) {
			const struct gpu_slot *g = &s->info.gpus[k];
			if (g->index != s->launch.gpus[i])
				continue;
			_cleanup_(mo_freep) char *path =
				mo_printf("%s/renderD%lld", dir, (long long)g->render_minor);
			add(s, path, b);
		}
	add_wall(s, DRI, b);
}

static void add_nics(const struct spool *s, struct box *b)
{
	_cleanup_(mo_freep) char *dir = box_device_dir(s, INFINIBAND);

	for (size_t i = 0; i < s->info.n_nics; i++) {
		const struct nic_info *nic = &s->info.nics[i];
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s", dir, nic->uverbs);
		if (env_nic_used(&s->launch, &s->info, nic->name))
			add(s, path, b);
	}
	add_wall(s, INFINIBAND, b);
}

void box_devices(const struct spool *s, const struct device_file *here, size_t n, struct box *ret)
{
	bool gpus = walls_gpus(&s->launch, &s->info), nics = walls_nics(&s->launch, &s->info);

	if (gpus)
		add_gpus(s, ret);
	if (nics)
		add_nics(s, ret);
	for (size_t i = 0; i < n; i++) {
		const char *path = plain(s, here[i].path);
		/* how connections begin is one file for all cards */
		bool all = mo_streq(path, INFINIBAND "/rdma_cm");

		if (is_in(path, DRI)          ? !gpus && ret->root
		    : is_in(path, INFINIBAND) ? nics ? all : ret->root != NULL
					      : ret->root != NULL)
			add(s, here[i].path, ret);
	}
}

bool box_asks(const struct box *b)
{
	return b->root || b->n_walled > 0;
}

static const struct device_file *file_at(const struct device_file *files, size_t n,
					 const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(files[i].path, path))
			return &files[i];
	return NULL;
}

static bool wanted(const struct box *b, const char *path)
{
	for (size_t i = 0; i < b->n_devices; i++)
		if (mo_streq(b->devices[i].target, path))
			return true;
	return false;
}

static bool walled(const struct box *b, const char *path)
{
	for (size_t i = 0; i < b->n_walled; i++)
		if (is_in(path, b->walled[i]))
			return true;
	return false;
}

char *box_judge(const struct box *b, const struct device_file *inside, size_t n_inside,
		const struct device_file *here, size_t n_here)
{
	for (size_t i = 0; i < n_inside; i++)
		if (walled(b, inside[i].path) && !wanted(b, inside[i].path))
			return mo_printf("%s can be opened there, which is not the job's",
					 inside[i].path);
	for (size_t i = 0; i < b->n_devices; i++) {
		const struct container_mount *m = &b->devices[i];
		const struct device_file *seen = file_at(inside, n_inside, m->target),
					 *own = file_at(here, n_here, m->source);

		if (!walled(b, m->target))
			continue;
		if (!seen || !own)
			return mo_printf("%s is missing %s", seen ? m->source : m->target,
					 seen ? "on the node" : "there");
		if (seen->number != own->number)
			return mo_printf("%s is another device there than %s on the node",
					 m->target, m->source);
	}
	return NULL;
}
