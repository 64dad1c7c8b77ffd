/* What of this node an image must fit: devices, limits, space, namespaces. */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/probe/probe_image.h"
#include "lib/base/fd.h"

#define KB INT64_C(1024)
#define GROUP_BUFFER 16384

static int64_t memory(struct probe_pass *l)
{
	const char *s = pass_root(l, "proc/meminfo");
	int64_t kb = s ? pass_key(l, "proc/meminfo", s, "MemTotal") : MO_NONE;

	return kb == MO_NONE ? MO_NONE : kb * KB;
}

/* What moe-stepd, which is started as this process was, may give ranks. */
static int64_t memlock(void)
{
	struct rlimit v;

	if (getrlimit(RLIMIT_MEMLOCK, &v) < 0)
		return MO_NONE;
	return v.rlim_max == RLIM_INFINITY ? INT64_MAX : (int64_t)MO_MIN(v.rlim_max, INT64_MAX - 1);
}

/* The nearest directory of the path that is there: it is made with the first job. */
static void read_space(const char *layers, struct fit_node *n)
{
	_cleanup_(mo_freep) char *path = mo_strdup(layers);
	struct statvfs v;
	int r = path ? mo_space(path, &v) : -ENOENT;

	for (char *slash;
	     path && r < 0 && errno == ENOENT && (slash = strrchr(path, '/')) && slash != path;) {
		*slash = '\0';
		r = mo_space(path, &v);
	}
	n->layers = mo_strdup(layers);
	if (r < 0) {
		n->layers_error =
			mo_strdup(path ? strerror(errno) : "its agent does not say where");
		return;
	}
	n->layers_free = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
	n->layers_readonly = (v.f_flag & ST_RDONLY) != 0;
}

/* Where there is no such directory yet, nothing is said. */
static void read_locks(const char *images, struct fit_node *n)
{
	_cleanup_(mo_closep) int dir =
		images ? mo_open_at(AT_FDCWD, images, O_RDONLY | O_DIRECTORY, 0) : -1;

	if (dir < 0)
		return;
	n->images = mo_strdup(images);
	n->no_locks = mo_flock_lacks(mo_flock(dir));
}

static void read_cards(struct probe_pass *l, struct fit_node *n)
{
	struct pass_names names = pass_list(l, true, "sys/class/infiniband");

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *path =
			mo_printf("sys/class/infiniband/%s", names.items[i]);
		bool entered = pass_enter(l, path);

		*MO_GROW(n->cards, n->n_cards) =
			(struct fit_card){ .name = mo_strdup(names.items[i]),
					   .driver =
						   entered ? pass_link(l, "device/driver") : NULL };
	}
	pass_names_done(&names);
}

void fit_read_node(struct probe_pass *l, const struct image_options *o, struct fit_node *ret)
{
	struct pass_names devices = pass_list(l, true, "sys/bus/pci/devices");

	for (size_t i = 0; i < devices.n; i++)
		ret->amd_gpus += pci_gpu(l, devices.items[i]) == MAKER_AMD;
	pass_names_done(&devices);
	ret->machine = program_own_machine();
	ret->root = mo_uid() == 0;
	ret->amdgpu = pass_root_line(l, "sys/module/amdgpu/version");
	ret->kernel = pass_root_line(l, "proc/sys/kernel/osrelease");
	ret->mem_bytes = memory(l);
	ret->memlock_bytes = memlock();
	read_space(o->layers, ret);
	read_locks(o->images, ret);
	read_cards(l, ret);
	const char *s = pass_root(l, "proc/filesystems");
	ret->overlay = s && strstr(s, "\toverlay\n");
	ret->userns = pass_root_int(l, "proc/sys/user/max_user_namespaces") != 0 &&
		      pass_root_int(l, "proc/sys/kernel/unprivileged_userns_clone") != 0;
	ret->userns_restricted =
		pass_root_int(l, "proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1;
	ret->cgroup2 = o->cgroup;
}

static char *group_name(gid_t gid)
{
	_cleanup_(mo_freep) char *buffer = mo_alloc(GROUP_BUFFER);
	struct group entry, *found = NULL;

	if (getgrgid_r(gid, &entry, buffer, GROUP_BUFFER, &found) != 0 || !found)
		return mo_printf("%u", (unsigned)gid);
	return mo_strdup(found->gr_name);
}

static void add(struct probe_pass *l, const char *path, struct fit_devices *d)
{
	_cleanup_(mo_freep) char *full = mo_printf("%s%s", l->root, path);
	struct stat st;

	if (mo_stat(full, &st) < 0 || S_ISDIR(st.st_mode))
		return;
	d->n++;
	if (mo_access(full, R_OK | W_OK) == 0) {
		d->open++;
	} else if (!d->closed) {
		d->group = group_name(st.st_gid);
		d->closed = mo_printf("%s (group %s, mode %04o)", path, d->group,
				      (unsigned)st.st_mode & 07777);
	}
}

static void add_all(struct probe_pass *l, const char *dir, const char *prefix,
		    struct fit_devices *d)
{
	struct pass_names names = pass_list(l, true, dir + 1);

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%s", names.items[i]);

		if (mo_starts_with(names.items[i], prefix))
			add(l, path, d);
	}
	pass_names_done(&names);
}

void fit_read_devices(struct probe_pass *l, struct fit_node *ret)
{
	add(l, "/dev/kfd", &ret->kfd);
	add_all(l, "/dev/dri", "renderD", &ret->render);
	add_all(l, "/dev/infiniband", "", &ret->rdma);
}
