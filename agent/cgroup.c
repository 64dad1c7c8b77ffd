/* Control groups of steps that no systemd makes. See cgroup.h. */
#include "agent/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <unistd.h>

#include "agent/step_dir.h"
#include "lib/base/fd.h"

/* Else it has none, or that of its unit. */
static bool has_own(const struct step_dir *d)
{
	return d->spool.cgroup && d->spool.cgroup[0] == '/';
}

/* The base gets the controllers of the limits that this node has for steps, if its parent may hand
 * them on: the root may, and a cgroup in which no process is. Else the supervisor says that they
 * are not in force. */
static void hand_on(const struct step_dir *d)
{
	const char *base = d->manager->cgroup_base;
	_cleanup_(mo_freep) char *parent = mo_strndup(base, (size_t)(strrchr(base, '/') - base));
	_cleanup_(mo_freep) char *path = mo_path(parent, "cgroup.subtree_control");
	static const char *const controllers[] = { "+memory", "+pids" };
	const int64_t limits[] = { d->spool.memory_bytes, d->spool.pids };

	for (size_t i = 0; i < ELEMENTSOF(limits); i++) {
		_cleanup_(mo_closep) int fd =
			limits[i] >= 0 ? mo_open_at(AT_FDCWD, path, O_WRONLY, 0) : -1;

		if (fd >= 0)
			mo_write_all(fd, controllers[i], strlen(controllers[i]));
	}
}

/* The base may be removed by a stepd that ends just now: then once more. */
int cgroup_make(const struct step_dir *d)
{
	if (!has_own(d))
		return 0;
	for (int i = 0; i < 3; i++) {
		if (mo_mkdir(d->manager->cgroup_base, 0755) < 0 && errno != EEXIST)
			return -errno;
		hand_on(d);
		if (mo_mkdir(d->spool.cgroup, 0755) == 0 || errno == EEXIST)
			return 0;
	}
	return -errno;
}

void cgroup_remove(const struct step_dir *d)
{
	if (!has_own(d))
		return;
	/* of a step that version 0.1 started */
	_cleanup_(mo_freep) char *ranks = mo_path(d->spool.cgroup, "ranks");
	_cleanup_(mo_freep) char *base =
		mo_strndup(d->spool.cgroup,
			   (size_t)(strrchr(d->spool.cgroup, '/') - d->spool.cgroup));
	mo_remove_at(AT_FDCWD, ranks, AT_REMOVEDIR);
	mo_remove_at(AT_FDCWD, d->spool.cgroup, AT_REMOVEDIR);
	mo_remove_at(AT_FDCWD, base, AT_REMOVEDIR); /* refused while another step is below it */
}

bool cgroup_kill(const struct step_dir *d)
{
	if (!has_own(d))
		return true; /* of a unit: systemd kills it with its main process and removes it */
	_cleanup_(mo_freep) char *kill_path = mo_path(d->spool.cgroup, "cgroup.kill");
	_cleanup_(mo_freep) char *events = mo_path(d->spool.cgroup, "cgroup.events");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (mo_read_file(events, 4096, &b) < 0 || !b.data || !strstr(b.data, "populated 1"))
		return true;
	_cleanup_(mo_closep) int fd = mo_open_at(AT_FDCWD, kill_path, O_WRONLY, 0);
	if (fd >= 0)
		mo_write_all(fd, "1", 1);
	return false;
}

/* This process' cgroup2 directory, NULL when no cgroup2 hierarchy is mounted. */
static char *own_cgroup(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (mo_read_file("/proc/self/cgroup", 64 * 1024, &b) < 0 || !b.data)
		return NULL;
	const char *line = mo_starts_with(b.data, "0::") ? b.data : strstr(b.data, "\n0::");
	for (size_t i = 0; line && i < ELEMENTSOF(mounts); i++) {
		int64_t type;
		if (mo_fs_type(mounts[i], &type) < 0 || type != CGROUP2_SUPER_MAGIC)
			continue;
		const char *path = strstr(line, "::") + 2;
		int n = (int)strcspn(path, "\n");
		return mo_printf("%s%.*s", mounts[i], n == 1 ? 0 : n, path);
	}
	return NULL;
}

char *cgroup_find_base(const struct agent_config *c, struct mo_error *err)
{
	if (mo_streq(c->use_cgroup, "no"))
		return NULL;
	_cleanup_(mo_freep) char *own = own_cgroup();
	/* Several agents may share a machine: the runtime directory tells them apart. */
	uint32_t hash = 2166136261u;
	for (const char *p = c->runtime_dir; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	_cleanup_(mo_freep) char *base =
		own ? mo_printf("%s/moe-agent-%s-%08x", own, c->node, hash) : NULL;
	if (base && mo_access(own, W_OK) == 0) /* made with the first step, gone with the last */
		return TAKE_PTR(base);
	mo_error_set(err, -EACCES, "use_cgroup: %s: %s",
		     own ? own : "no cgroup2 hierarchy is mounted", own ? strerror(errno) : "none");
	return NULL;
}
