/* Starting a step's supervisor: as a transient systemd service (unit.c), or the one in reserve (reserve.c), or by a double fork of moe-stepd itself. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/manager.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

#define START_DEADLINE_US 20000000

/* Whoever gets the lock has proof that no stepd lives; else one does after all. */
static void start_failed(struct step_dir *d, const char *text) {
	_cleanup_(mo_freep) char *lock = mo_path(d->path, "lock");
	d->lock_fd = mo_lock_file(lock);
	if (d->lock_fd >= 0)
		step_dir_lost(d, text);
	else
		step_dir_connect(d);
}

void step_started(struct step_dir *d, const char *problem) {
	_cleanup_(mo_freep) char *text = problem ? mo_printf("the supervisor could not be started: %s (see %s/stepd.log)", problem, d->path) : NULL;
	if (text)
		start_failed(d, text);
	else
		step_dir_connect(d);
}

static void on_starter(void *arg, int status, const char *out, size_t n, const char *problem) {
	struct step_dir *d = arg;
	d->starter = NULL; /* frees itself */
	step_started(d, problem);
}

/* The base may be removed by a stepd that ends just now: then once more. */
static int make_cgroup(const struct step_dir *d) {
	for (int i = 0; i < 3; i++) {
		if (mkdir(d->manager->cgroup_base, 0755) < 0 && errno != EEXIST)
			return -errno;
		if (mkdir(d->spool.cgroup, 0755) == 0 || errno == EEXIST)
			return 0;
	}
	return -errno;
}

void step_cgroup_remove(const struct step_dir *d) {
	if (!d->spool.cgroup || d->spool.cgroup[0] != '/')
		return;
	_cleanup_(mo_freep) char *ranks = mo_path(d->spool.cgroup, "ranks"); /* of a step that version 0.1 started */
	_cleanup_(mo_freep) char *base = mo_strndup(d->spool.cgroup, (size_t)(strrchr(d->spool.cgroup, '/') - d->spool.cgroup));
	rmdir(ranks);
	rmdir(d->spool.cgroup);
	rmdir(base); /* refused while another step is below it */
}

void step_start_plain(struct step_dir *d) {
	struct manager *m = d->manager;
	char *argv[] = {(char *)"moe-stepd", (char *)"--dir", d->path, NULL};
	int r = helper_start(m->loop, m->stepd_path, argv, START_DEADLINE_US, 4096, on_starter, d, &d->starter);
	_cleanup_(mo_freep) char *text = r < 0 ? mo_printf("%s: %s", m->stepd_path, strerror(-r)) : NULL;
	if (text)
		start_failed(d, text);
}

void step_start(struct step_dir *d) {
	struct manager *m = d->manager;
	_cleanup_(mo_error_done) struct mo_error err = {0};
	d->lock_fd = mo_close(d->lock_fd); /* held since an earlier stepd was proved dead */
	d->quiet_since_us = 0;
	if (d->spool.cgroup && d->spool.cgroup[0] == '/' && make_cgroup(d) < 0)
		mo_log(MO_WARNING, NULL, NULL, "%s: %s; the step runs without a cgroup", d->spool.cgroup, strerror(errno));
	if (m->units) {
		int r = units_start(m->units, d, &err);
		if (r < 0)
			start_failed(d, mo_error_text(&err, r));
	} else if (!reserve_take(m->reserve, d))
		step_start_plain(d);
}

/* This process' cgroup2 directory, NULL when no cgroup2 hierarchy is mounted. */
static char *own_cgroup(void) {
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	_cleanup_(mo_buf_done) struct mo_buf b = {0};
	if (mo_read_file("/proc/self/cgroup", 64 * 1024, &b) < 0 || !b.data)
		return NULL;
	const char *line = mo_starts_with(b.data, "0::") ? b.data : strstr(b.data, "\n0::");
	for (size_t i = 0; line && i < ELEMENTSOF(mounts); i++) {
		struct statfs fs;
		if (statfs(mounts[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		const char *path = strstr(line, "::") + 2;
		int n = (int)strcspn(path, "\n");
		return mo_printf("%s%.*s", mounts[i], n == 1 ? 0 : n, path);
	}
	return NULL;
}

char *cgroup_find_base(const struct agent_config *c, struct mo_error *err) {
	if (mo_streq(c->use_cgroup, "no"))
		return NULL;
	_cleanup_(mo_freep) char *own = own_cgroup();
	/* Several agents may share a machine: the runtime directory tells them apart. */
	uint32_t hash = 2166136261u;
	for (const char *p = c->runtime_dir; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619u;
	_cleanup_(mo_freep) char *base = own ? mo_printf("%s/moe-agent-%s-%08x", own, c->node, hash) : NULL;
	if (base && access(own, W_OK) == 0) /* made with the first step, gone with the last */
		return TAKE_PTR(base);
	mo_error_set(err, -EACCES, "use_cgroup: %s: %s", own ? own : "no cgroup2 hierarchy is mounted", own ? strerror(errno) : "none");
	return NULL;
}
