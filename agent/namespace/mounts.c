/* See mounts.h. */
#include "agent/namespace/mounts.h"

#include <errno.h>
#include <string.h>

#include "agent/namespace/kernel.h"
#include "agent/namespace/report.h"
#include "agent/namespace/targets.h"
#include "lib/base/file.h"

void mount_copy(const char *source, const char *target, unsigned flags, bool deep, const char *who,
		struct mount *ret)
{
	struct stat st;
	int copy = source[0] == '/' ? kernel_copy_mount(source, deep) : -EINVAL;

	if (copy < 0)
		report_failure(-copy, "open %s on this node as %s", source, who);
	if (mo_stat_fd(copy, &st) < 0)
		report_failure(errno, "look at %s on this node", source);
	*ret = (struct mount){ .source = source,
			       .target = target,
			       .copy = copy,
			       .directory = S_ISDIR(st.st_mode),
			       .flags = flags };
}

void mount_place(struct mount *m)
{
	int r = kernel_set_flags(m->copy, m->flags, true);

	if (r < 0)
		report_failure(-r, "take rights away from what is to be %s", m->target);
	_cleanup_(mo_closep) int target = target_open(m->target, m->directory);

	r = kernel_place(m->copy, target);
	if (r < 0)
		report_failure(-r, "mount %s on %s in the image", m->source, m->target);
	m->copy = mo_close(m->copy);
}

/* A directory's path begins those of what lies in it, and so comes before them. */
static int outer_first(const void *a, const void *b)
{
	return strcmp(((const struct mount *)a)->target, ((const struct mount *)b)->target);
}

void mounts_copy(const struct container_mount *mounts, size_t n, const char *who,
		 struct mounts *ret)
{
	*ret = (struct mounts){ .items = mo_alloc_array(n + 1, sizeof(*ret->items)), .n_items = n };
	for (size_t i = 0; i < n; i++)
		mount_copy(mounts[i].source, mounts[i].target,
			   FLAG_NOSUID | FLAG_NODEV | (mounts[i].readonly ? FLAG_RDONLY : 0), true,
			   who, &ret->items[i]);
	qsort(ret->items, n, sizeof(*ret->items), outer_first);
}

void mounts_place(struct mounts *m)
{
	for (size_t i = 0; i < m->n_items; i++)
		mount_place(&m->items[i]);
	free(m->items);
	*m = (struct mounts){ 0 };
}
