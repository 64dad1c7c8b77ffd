/* The host: CPUs, memory, limits, clock, disks, and whether its GPUs are all there. Files:
 * hardware facts 1.6 and 3. What is no file (the clock, the free space of /dev/shm) is reported of
 * this machine only, never below a root. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_pass.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"

#define PCI "sys/bus/pci/devices"
#define KB 1024.0

static void add_count(struct probe_pass *l, const char *key, const char *path)
{
	const char *s = pass_root(l, path);
	int64_t n = s ? text_list_count(s) : MO_NONE;

	if (s && n <= 0)
		pass_bad(l, path, "it is no list of CPUs");
	else
		reading_add_int(l->probe, key, n);
}

static void add_chosen(struct probe_pass *l, const char *key, const char *path)
{
	const char *s = pass_root(l, path);
	_cleanup_(mo_freep) char *word = s ? text_chosen(s) : NULL;

	if (s && !word)
		pass_bad(l, path, "nothing is chosen in it");
	reading_add_text(l->probe, key, word);
}

char *governors(struct probe_pass *l)
{
	struct pass_names cpus = pass_list(l, true, "sys/devices/system/cpu");
	struct {
		char *name;
		int64_t n;
	} kinds[8] = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	size_t n = 0, first = 0;

	for (size_t i = 0; i < cpus.n; i++) {
		if (!mo_starts_with(cpus.items[i], "cpu") || cpus.items[i][3] < '0' ||
		    cpus.items[i][3] > '9')
			continue;
		_cleanup_(mo_freep) char *path =
			mo_printf("sys/devices/system/cpu/%s/cpufreq/scaling_governor",
				  cpus.items[i]);
		_cleanup_(mo_freep) char *name = pass_root_line(l, path);
		size_t k = 0;
		while (name && k < n && !mo_streq(kinds[k].name, name))
			k++;
		if (!name || k >= ELEMENTSOF(kinds))
			continue;
		if (k == n)
			kinds[n++].name = TAKE_PTR(name);
		kinds[k].n++;
	}
	pass_names_done(&cpus);
	for (size_t k = 1; k < n; k++)
		first = kinds[k].n > kinds[first].n ? k : first;
	for (size_t k = 0; k < n; k++)
		if (k == first)
			mo_buf_str(&b, kinds[k].name);
	for (size_t k = 0; k < n; k++)
		if (k != first)
			mo_buf_printf(&b, ", %lld %s", (long long)kinds[k].n, kinds[k].name);
	for (size_t k = 0; k < n; k++)
		free(kinds[k].name);
	return n ? mo_buf_take(&b) : NULL;
}

static void pass_cpus(struct probe_pass *l)
{
	_cleanup_(mo_freep) char *governor = governors(l);
	const char *s;

	add_count(l, "cpus_online", "sys/devices/system/cpu/online");
	add_count(l, "cpus_present", "sys/devices/system/cpu/present");
	reading_add_text(l->probe, "governor", governor);
	int64_t smt = pass_root_int(l, "sys/devices/system/cpu/smt/active");
	reading_add_text(l->probe, "smt", smt == MO_NONE ? NULL : smt ? "on" : "off");
	reading_add(l->probe, "load1", pass_root_leading(l, "proc/loadavg"));
	reading_add_int(l->probe, "numa_balancing",
			pass_root_int(l, "proc/sys/kernel/numa_balancing"));
	reading_add_int(l->probe, "swappiness", pass_root_int(l, "proc/sys/vm/swappiness"));
	/* moe-stepd is started as the agent is, and so is this */
	reading_add_text(l->probe, "step_namespace", mo_uid() == 0 ? "own" : "none");
	add_chosen(l, "thp", "sys/kernel/mm/transparent_hugepage/enabled");
	if ((s = pass_root(l, "proc/cmdline"))) {
		_cleanup_(mo_freep) char *line = text_cmdline(s);
		_cleanup_(mo_freep) char *iommu = line ? text_option(line, "iommu") : NULL;
		reading_add_text(l->probe, "cmdline", line);
		reading_add_text(l->probe, "iommu", iommu ? iommu : "default");
	}
}

/* What a program can get on a NUMA node: free pages, and those of files that the kernel gives up
 * for it. Data sets fill nodes with file pages, which is no shortage. */
static double free_of(const char *meminfo, const char *node)
{
	static const char *const kinds[] = { "MemFree", "Active(file)", "Inactive(file)",
					     "SReclaimable" };
	double sum = 0;

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		_cleanup_(mo_freep) char *key = mo_printf("Node %s %s", node, kinds[i]);
		int64_t kb = text_key_int(meminfo, key);
		if (i == 0 && kb == MO_NONE)
			return MO_NONE_F;
		sum += kb == MO_NONE ? 0 : (double)kb * KB;
	}
	return sum;
}

/* Nodes without are memory of another kind (CXL, high bandwidth memory), whose size is its own. */
static bool has_cpus(struct probe_pass *l, const char *node)
{
	_cleanup_(mo_freep) char *path = mo_printf("sys/devices/system/node/%s/cpulist", node);
	const char *s = pass_root(l, path);
	int64_t n = s ? text_list_count(s) : MO_NONE;

	if (s && n == MO_NONE)
		pass_bad(l, path, "it is no list of CPUs");
	return n > 0;
}

static void pass_memory(struct probe_pass *l)
{
	struct pass_names nodes = pass_list(l, true, "sys/devices/system/node");
	const char *s = pass_root(l, "proc/meminfo");
	int64_t total = s ? pass_key(l, "proc/meminfo", s, "MemTotal") : MO_NONE;
	double least = MO_NONE_F;

	reading_add(l->probe, "mem_total_bytes", total == MO_NONE ? MO_NONE_F : (double)total * KB);
	for (size_t i = 0; i < nodes.n; i++) {
		if (!mo_starts_with(nodes.items[i], "node") || nodes.items[i][4] < '0' ||
		    nodes.items[i][4] > '9')
			continue;
		_cleanup_(mo_freep) char *path = mo_printf("sys/devices/system/node/%s/meminfo",
							   nodes.items[i]),
					 *key = mo_printf("numa_free_bytes.%s", nodes.items[i] + 4),
					 *total_key =
						 mo_printf("Node %s MemTotal", nodes.items[i] + 4);
		if (!(s = pass_root(l, path)))
			continue;
		int64_t node_total = pass_key(l, path, s, total_key);
		/* a node without memory has none to lose */
		if (node_total == 0)
			continue;
		double v = free_of(s, nodes.items[i] + 4);
		if (v == MO_NONE_F)
			pass_bad(l, path, "no free memory in it");
		reading_add(l->probe, key, v);
		if (node_total != MO_NONE && has_cpus(l, nodes.items[i])) {
			_cleanup_(mo_freep) char *own_key =
				mo_printf("numa_total_bytes.%s", nodes.items[i] + 4);
			reading_add(l->probe, own_key, (double)node_total * KB);
		}
		least = v != MO_NONE_F && (least == MO_NONE_F || v < least) ? v : least;
	}
	pass_names_done(&nodes);
	reading_add(l->probe, "numa_free_min_bytes", least);
}

/* Limits of the process that starts ranks; below a root those of the recorded machine's shell. */
static void pass_limits(struct probe_pass *l, int64_t pid)
{
	_cleanup_(mo_freep) char *path = pid == MO_NONE || *l->root
						 ? mo_strdup("proc/self/limits")
						 : mo_printf("proc/%lld/limits", (long long)pid);
	const char *s = pass_root(l, path);

	if (!s)
		return;
	if (text_limit(s, "Max open files") == MO_NONE_F)
		pass_bad(l, path, "no limits in it");
	reading_add(l->probe, "memlock_bytes", text_limit(s, "Max locked memory"));
	reading_add(l->probe, "nofile", text_limit(s, "Max open files"));
	reading_add(l->probe, "nproc", text_limit(s, "Max processes"));
}

static void pass_shm(struct probe_pass *l)
{
	const char *s;
	struct statvfs v;

	if (*l->root) {
		s = pass_root(l, "proc/mounts");
		if (s && !strstr(s, " / ") && !strstr(s, " /proc "))
			pass_bad(l, "proc/mounts", "no mounts in it");
		reading_add_int(l->probe, "shm_bytes",
				s ? text_mount_size(s, "/dev/shm") : MO_NONE);
	} else if (statvfs("/dev/shm", &v) == 0) {
		reading_add(l->probe, "shm_bytes", (double)v.f_blocks * (double)v.f_frsize);
		reading_add(l->probe, "shm_free_bytes", (double)v.f_bavail * (double)v.f_frsize);
	}
}

static void pass_disk(struct probe_pass *l, const char *disk)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s%s", l->root, disk),
				 *free_key = mo_printf("disk_free_bytes.%s", disk),
				 *ro_key = mo_printf("disk_readonly.%s", disk);
	struct statvfs v;

	if (statvfs(path, &v) < 0) {
		l->problems++;
		probe_problem(l->probe, "%s: %s", disk, strerror(errno));
		return;
	}
	reading_add(l->probe, free_key, (double)v.f_bavail * (double)v.f_frsize);
	reading_add_int(l->probe, ro_key, (v.f_flag & ST_RDONLY) != 0);
}

static void pass_clock(struct probe_pass *l)
{
	struct timex t = { .modes = 0 };

	if (*l->root)
		return;
	int state = adjtimex(&t);
	if (state < 0) {
		probe_problem(l->probe, "adjtimex: %s", strerror(errno));
		return;
	}
	reading_add_int(l->probe, "clock_synced", state != TIME_ERROR && !(t.status & STA_UNSYNC));
	reading_add(l->probe, "clock_offset_ms",
		    (double)(t.offset < 0 ? -t.offset : t.offset) /
			    (t.status & STA_NANO ? 1e6 : 1e3));
	reading_add(l->probe, "clock_maxerror_ms", (double)t.maxerror / 1e3);
}

static void pass_edac(struct probe_pass *l)
{
	struct pass_names names = pass_list(l, true, "sys/devices/system/edac/mc");
	int64_t ue = MO_NONE, ce = MO_NONE, problems = l->problems;

	for (size_t i = 0; i < names.n; i++) {
		if (!mo_starts_with(names.items[i], "mc"))
			continue;
		_cleanup_(mo_freep) char *ue_path =
						 mo_printf("sys/devices/system/edac/mc/%s/ue_count",
							   names.items[i]),
					 *ce_path =
						 mo_printf("sys/devices/system/edac/mc/%s/ce_count",
							   names.items[i]);
		int64_t u = pass_root_int(l, ue_path), c = pass_root_int(l, ce_path);
		ue = u == MO_NONE ? ue : (ue == MO_NONE ? 0 : ue) + u;
		ce = c == MO_NONE ? ce : (ce == MO_NONE ? 0 : ce) + c;
	}
	pass_names_done(&names);
	/* a smaller sum would look like a counter that began anew */
	if (l->problems > problems)
		return;
	reading_add_int(l->probe, "edac_ue", ue);
	reading_add_int(l->probe, "edac_ce", ce);
}

/* Whether the runtimes can open the GPU: libhsakmt leaves out one whose render node it cannot
 * open, and every index behind it shifts. */
static bool renderable(struct probe_pass *l, int64_t minor)
{
	_cleanup_(mo_freep) char *path = mo_printf("dev/dri/renderD%lld", (long long)minor);
	_cleanup_(mo_closep) int fd = openat(l->top, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	l->files++;
	return fd >= 0;
}

/* The driver's topology names a GPU whose PCI directory is gone. gpu: domain and location_id
 * without the partition. */
static bool off_the_bus(const struct probe_pass *l, int64_t gpu)
{
	_cleanup_(mo_freep) char *path =
		mo_printf(PCI "/%04x:%02x:%02x.0", (unsigned)(gpu >> 32) & 0xffff,
			  (unsigned)(gpu >> 8) & 0xff, (unsigned)(gpu >> 3) & 0x1f);

	return faccessat(l->top, path, F_OK, 0) < 0 && errno == ENOENT;
}

/* GPUs that KFD lists, partitions of one GPU counted once; and those of them whose render nodes
 * all open. Nothing is said where a node cannot be understood: it may be a GPU. */
static void count_kfd(struct probe_pass *l)
{
	static const char top[] = "sys/class/kfd/kfd/topology/nodes";
	struct pass_names names = pass_list(l, true, top);
	int64_t n = 0, off = 0, closed = 0, last = MO_NONE, last_closed = MO_NONE,
		problems = l->problems;

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s/properties", top, names.items[i]);
		const char *s = pass_root(l, path);
		if (!s || pass_key(l, path, s, "simd_count") <= 0)
			continue;
		int64_t domain = text_key_int(s, "domain"),
			location = pass_key(l, path, s, "location_id"),
			minor = pass_key(l, path, s, "drm_render_minor");
		if (location == MO_NONE || minor == MO_NONE)
			continue;
		int64_t gpu =
			(domain == MO_NONE ? 0 : domain & 0xffff) << 32 | (location & 0xfffffff8);
		n += gpu != last;
		/* old drivers do not say the domain: it may be on another bus */
		off += gpu != last && domain >= 0 && domain <= 0xffff && off_the_bus(l, gpu);
		last = gpu;
		if (renderable(l, minor) || gpu == last_closed)
			continue;
		closed++;
		last_closed = gpu;
	}
	if (names.n && l->problems == problems) {
		reading_add_int(l->probe, "gpus_kfd", n);
		reading_add_int(l->probe, "gpus_renderable", n - closed);
		reading_add_int(l->probe, "gpus_off_bus", off);
	}
	pass_names_done(&names);
}

/* GPUs on the PCI bus, and how long a short question to the driver takes: the generation of KFD
 * and the metrics of each GPU that is not left out. */
static void pass_gpus(struct probe_pass *l, const struct host_options *o)
{
	int64_t problems = l->problems;
	struct pass_names names = pass_list(l, true, PCI);
	int64_t n = 0, asked = 0, unknown = l->problems - problems, began;
	struct pass_names gpus = { 0 };

	for (size_t i = 0; i < names.n; i++) {
		problems = l->problems;
		if (pci_gpu(l, names.items[i]) == MAKER_OTHER) {
			unknown += l->problems - problems; /* it may be a GPU */
			continue;
		}
		n++;
		if (mo_enum_parse((const char *const *)o->left_out, o->n_left_out, names.items[i]) <
		    0)
			mo_strs_add(&gpus.items, &gpus.n, names.items[i]);
	}
	if (names.n && !unknown)
		reading_add_int(l->probe, "gpus_pci", n);
	count_kfd(l);
	began = mo_clock_mono_ns();
	asked += pass_root_int(l, "sys/class/kfd/kfd/topology/generation_id") != MO_NONE;
	for (size_t i = 0; i < gpus.n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf(PCI "/%s/gpu_metrics", gpus.items[i]);
		asked += pass_touch(l, path);
	}
	if (asked)
		reading_add(l->probe, "driver_canary_ms",
			    (double)(mo_clock_mono_ns() - began) / 1e6);
	pass_names_done(&gpus);
	pass_names_done(&names);
}

void probe_host(struct probe_pass *l, const struct host_options *o)
{
	pass_cpus(l);
	pass_memory(l);
	pass_limits(l, o->limits_of);
	pass_shm(l);
	for (size_t i = 0; i < o->n_disks; i++)
		pass_disk(l, o->disks[i]);
	pass_clock(l);
	pass_edac(l);
	pass_gpus(l, o);
}
