/* What this machine has. CPUs, caches and NUMA nodes come from hwloc (real machine, a root directory or an XML file), GPUs and RDMA devices from sysfs and proc, in an
 * XML from its PCI objects: vendor plugins of hwloc are never loaded, they open the GPUs. Called by moe-discover and moectl. */
#include "lib/topo/inner.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "lib/base/fd.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

#define XML_BYTES_MAX (64 * 1024 * 1024)
#define CPUS_MAX 65536

static void free_topology(hwloc_topology_t *t) {
	if (*t)
		hwloc_topology_destroy(*t);
}

/* hwloc takes a root directory only through the environment. */
static int load(hwloc_topology_t t, const char *root) {
	_cleanup_(mo_freep) char *old = mo_strdup(getenv("HWLOC_FSROOT"));

	if (*root)
		setenv("HWLOC_FSROOT", root, 1);
	int r = hwloc_topology_load(t) < 0 ? -errno : 0;
	if (*root && old)
		setenv("HWLOC_FSROOT", old, 1);
	else if (*root)
		unsetenv("HWLOC_FSROOT");
	return r;
}

static int open_topology(const struct topo_options *o, hwloc_topology_t *ret, struct mo_error *err) {
	static const char *const unwanted[] = { "x86", "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero" };
	_cleanup_(free_topology) hwloc_topology_t t = NULL;
	struct stat st;

	if (hwloc_topology_init(&t) < 0)
		return mo_error_set(err, -ENOMEM, "discovery: hwloc cannot start: %s", strerror(errno));
	for (size_t i = 0; i < ELEMENTSOF(unwanted); i++)
		hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, unwanted[i]);
	if (o->xml) {
		if (stat(o->xml, &st) < 0)
			return mo_error_set(err, -errno, "discovery: %s: %s: give an hwloc XML file", o->xml, strerror(errno));
		if (!S_ISREG(st.st_mode) || st.st_size > XML_BYTES_MAX)
			return mo_error_set(err, -EINVAL, "discovery: %s: it is no regular file of at most 64 MiB: give an hwloc XML file (lstopo --of xml)", o->xml);
		hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
		if (hwloc_topology_set_xml(t, o->xml) < 0)
			return mo_error_set(err, -EINVAL, "discovery: %s: hwloc cannot read it: export it with lstopo --of xml of hwloc 2", o->xml);
	} else if (*o->root) {
		_cleanup_(mo_freep) char *cpus = mo_printf("%s/sys/devices/system/cpu", o->root);
		if (stat(cpus, &st) < 0)
			return mo_error_set(err, -errno, "discovery: %s: %s: the root directory needs a sys tree", cpus, strerror(errno));
	}
	int r = load(t, o->root);
	if (r < 0)
		return mo_error_set(err, r, "discovery: hwloc cannot read %s: %s: %s", o->xml ? o->xml : *o->root ? o->root : "this machine", strerror(-r),
				    o->xml ? "export it with lstopo --of xml of hwloc 2" : "check that its sys tree is readable");
	*ret = t;
	t = NULL;
	return 0;
}

static void from_bitmap(hwloc_const_bitmap_t b, struct mo_idset *ret) {
	for (int i = hwloc_bitmap_first(b); i >= 0 && i < CPUS_MAX; i = hwloc_bitmap_next(b, i))
		mo_idset_add(ret, (size_t)i);
}

static void own_affinity(struct mo_idset *ret) {
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *set = mo_alloc(size);

	if (sched_getaffinity(0, size, set) >= 0)
		for (size_t i = 0; i < CPUS_MAX; i++)
			if (CPU_ISSET_S(i, size, set))
				mo_idset_add(ret, i);
	free(set);
}

/* The cpus this agent may use: those hwloc found usable, its affinity or the fake root's cpuset, and the option. */
static int allowed_cpus(const struct topo_options *o, hwloc_topology_t t, struct mo_idset *ret, struct mo_error *err) {
	_cleanup_(mo_idset_done) struct mo_idset limit = { 0 };

	from_bitmap(hwloc_topology_get_allowed_cpuset(t), ret);
	if (!o->xml && !*o->root)
		own_affinity(&limit);
	if (*o->root) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/sys/fs/cgroup/cpuset.cpus.effective", o->root);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (mo_read_file(path, 65536, &b) == 0 && b.data) {
			b.data[strcspn(b.data, "\n")] = 0;
			if (mo_idset_parse(b.data, &limit) < 0)
				return mo_error_set(err, -EINVAL, "discovery: %s: '%s' is no cpu list", path, b.data);
		}
	}
	if (mo_idset_count(&limit))
		mo_idset_and(ret, &limit);
	if (o->cpus) {
		_cleanup_(mo_idset_done) struct mo_idset option = { 0 };
		if (mo_idset_parse(o->cpus, &option) < 0)
			return mo_error_set(err, -EINVAL, "discovery: '%s' is no cpu list: write one such as 0-7,12", o->cpus);
		mo_idset_and(ret, &option);
	}
	if (!mo_idset_count(ret))
		return mo_error_set(err, -EINVAL, "discovery: none of the cpus '%s' can be used here: give cpus of this machine", o->cpus ? o->cpus : "");
	return 0;
}

/* Cpu lists of all objects of a type within cpus, ";" between. */
static char *groups_of(hwloc_topology_t t, hwloc_obj_type_t type, const struct mo_idset *cpus) {
	struct mo_buf text = { 0 };

	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t, type, obj)); ) {
		_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
		from_bitmap(obj->cpuset, &set);
		mo_idset_and(&set, cpus);
		if (!mo_idset_count(&set))
			continue;
		_cleanup_(mo_freep) char *list = mo_idset_format(&set);
		mo_buf_printf(&text, "%s%s", text.len ? ";" : "", list);
	}
	return mo_buf_take(&text);
}

/* SLIT row of a node, in the order of the nodes; "" when the firmware gives none. */
static char *distance_row(hwloc_topology_t t, hwloc_obj_t node, const struct nodeinfo *info) {
	struct hwloc_distances_s *d = NULL;
	unsigned n = 1;
	struct mo_buf text = { 0 };

	if (hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &n, &d, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) < 0 || n == 0 || !d)
		return mo_strdup("");
	int row = hwloc_distances_obj_index(d, node);
	for (size_t i = 0; row >= 0 && i < info->n_numa; i++)
		for (unsigned k = 0; k < d->nbobjs; k++)
			if (d->objs[k] && (int64_t)d->objs[k]->os_index == info->numa[i].id)
				mo_buf_printf(&text, "%s%llu", text.len ? " " : "", (unsigned long long)d->values[(unsigned)row * d->nbobjs + k]);
	hwloc_distances_release(t, d);
	return mo_buf_take(&text);
}

static void read_numa(hwloc_topology_t t, const struct mo_idset *allowed, struct nodeinfo *info) {
	info->mem_bytes = 0;
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, obj)); ) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		struct numa_node *n = MO_ADD(info, numa, &numa_node_desc);
		n->id = obj->os_index;
		from_bitmap(obj->cpuset, &cpus);
		mo_idset_and(&cpus, allowed);
		n->cpus = mo_idset_format(&cpus);
		n->cores = groups_of(t, HWLOC_OBJ_CORE, &cpus);
		if (!*n->cores && *n->cpus)
			mo_str_set(&n->cores, NULL);   /* no core level in a restricted topology: each cpu is one */
		n->l3 = groups_of(t, HWLOC_OBJ_L3CACHE, &cpus);
		n->mem_bytes = (int64_t)obj->attr->numanode.local_memory;
		info->mem_bytes += n->mem_bytes;
	}
	size_t i = 0;
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, obj)); i++)
		info->numa[i].distances = distance_row(t, obj, info);
}

/* Object numbers of the I/O ancestors, from the host bridge down. */
static char *io_path(hwloc_obj_t obj) {
	_cleanup_(mo_freep) char *above = obj->parent && hwloc_obj_type_is_io(obj->parent->type) ? io_path(obj->parent) : NULL;

	return above ? mo_printf("%s/%llu", above, (unsigned long long)obj->gp_index) : mo_printf("%llu", (unsigned long long)obj->gp_index);
}

static int64_t numa_of(hwloc_topology_t t, hwloc_obj_t obj) {
	hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(t, obj);
	int node = place ? hwloc_bitmap_first(place->nodeset) : -1;

	return node >= 0 && hwloc_bitmap_weight(place->nodeset) == 1 ? node : MO_NONE;
}

static int by_address(const void *a, const void *b) {
	const struct found_gpu *x = a, *y = b;

	return strcmp(x->slot.bdf, y->slot.bdf);
}

/* GPUs and RDMA devices of an XML file: PCI objects by vendor and class (never the display adapter of a BMC), in the order of bus addresses. */
static void find_in_xml(hwloc_topology_t t, struct finds *f) {
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_pcidev(t, obj)); ) {
		const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
		bool amd = pci->vendor_id == 0x1002 && (pci->class_id == 0x1200 || pci->class_id == 0x0380);
		bool nvidia = pci->vendor_id == 0x10de && pci->class_id == 0x0302;
		if (!amd && !nvidia)
			continue;
		struct found_gpu *g = finds_add_gpu(f);
		g->slot.vendor = mo_strdup(amd ? "amd" : "nvidia");
		g->slot.model = gpu_model_name(pci->vendor_id, pci->device_id, NULL);
		g->slot.bdf = mo_printf("%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
		g->slot.numa_node = numa_of(t, obj);
		g->path = io_path(obj);
		for (hwloc_obj_t os = obj->io_first_child; os && !g->slot.unique_id; os = os->next_sibling) {
			const char *kib = hwloc_obj_get_info_by_name(os, "RSMIVRAMSize");
			int64_t n;
			mo_str_set(&g->slot.unique_id, hwloc_obj_get_info_by_name(os, amd ? "AMDUUID" : "NVIDIAUUID"));
			if (kib && mo_parse_i64(kib, 1, INT64_MAX / 1024, &n) == 0)
				g->slot.vram_bytes = n * 1024;
		}
	}
	/* hwloc lists devices by place; drivers number them by bus address. */
	if (f->gpus)
		qsort(f->gpus, f->n_gpus, sizeof(*f->gpus), by_address);
	for (size_t i = 0; i < f->n_gpus; i++)
		f->gpus[i].slot.index = (int64_t)i;
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_osdev(t, obj)); ) {
		if (obj->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS || !obj->parent)
			continue;
		struct found_nic *nic = MO_GROW(f->nics, f->n_nics);
		nic->name = mo_strdup(obj->name);
		nic->path = io_path(obj->parent);
		nic->numa_node = numa_of(t, obj);
	}
}

static void add_fake(const struct topo_options *o, struct nodeinfo *info) {
	size_t usable = 0;

	for (size_t i = 0; i < info->n_numa; i++)
		usable += info->numa[i].cpus && *info->numa[i].cpus;
	for (int64_t i = 0; i < o->fake_gpus; i++) {
		struct gpu_slot *slot = MO_ADD(info, gpus, &gpu_slot_desc);
		size_t nth = usable ? (size_t)i * usable / (size_t)o->fake_gpus : 0;
		slot->index = i;
		slot->vendor = mo_strdup("fake");
		slot->model = mo_strdup("fake");
		for (size_t k = 0; k < info->n_numa; k++)
			if (info->numa[k].cpus && *info->numa[k].cpus && nth-- == 0)
				slot->numa_node = info->numa[k].id;
	}
}

static int keep_gpus(const char *list, struct nodeinfo *info, struct mo_error *err) {
	_cleanup_(mo_idset_done) struct mo_idset keep = { 0 };

	if (!list)
		return 0;
	if (mo_idset_parse(list, &keep) < 0)
		return mo_error_set(err, -EINVAL, "discovery: '%s' is no list of GPU slots: write one such as 0-3", list);
	for (size_t i = info->n_gpus; i-- > 0; )
		if (!mo_idset_has(&keep, (size_t)info->gpus[i].index))
			mo_vec_remove(&gpu_slot_desc, info->gpus, &info->n_gpus, i);
	return 0;
}

static void name_machine(const struct topo_options *o, hwloc_topology_t t, struct nodeinfo *info) {
	const char *name = o->xml ? hwloc_obj_get_info_by_name(hwloc_get_root_obj(t), "HostName") : NULL;
	struct utsname u;

	if (uname(&u) < 0)
		return;
	mo_str_set(&info->hostname, name ? name : u.nodename);
	mo_str_set(&info->arch, u.machine);
	mo_str_set(&info->kernel, u.release);
}

static int discover(const struct topo_options *o, struct nodeinfo *info, struct mo_error *err) {
	_cleanup_(free_topology) hwloc_topology_t t = NULL;
	_cleanup_(mo_idset_done) struct mo_idset allowed = { 0 };
	_cleanup_(finds_done) struct finds finds = { 0 };
	int r = open_topology(o, &t, err);

	if (r == 0)
		r = allowed_cpus(o, t, &allowed, err);
	if (r < 0)
		return r;
	name_machine(o, t, info);
	info->simulated = o->xml || *o->root || !hwloc_topology_is_thissystem(t);   /* HWLOC_XMLFILE and its like work too */
	info->cpus = (int64_t)mo_idset_count(&allowed);
	read_numa(t, &allowed, info);
	if (!o->only_fake && o->xml)
		find_in_xml(t, &finds);
	else if (!o->only_fake)
		find_gpus(o->root, info->numa, info->n_numa, &finds);
	if (!o->only_fake && !o->xml && finds.n_gpus)
		find_nics(o->root, &finds);
	pair_nics(&finds);
	for (size_t i = 0; i < finds.n_gpus && i < MO_GPUS_PER_NODE_MAX; i++)
		mo_desc_copy(&gpu_slot_desc, MO_ADD(info, gpus, &gpu_slot_desc), &finds.gpus[i].slot);
	mo_str_set(&info->driver, finds.driver);
	if (!info->n_gpus)
		add_fake(o, info);
	return keep_gpus(o->gpus, info, err);
}

int topo_discover(const struct topo_options *o, struct nodeinfo *ret, struct mo_error *err) {
	struct topo_options options = *o;
	struct nodeinfo info;

	if (!options.root)
		options.root = "";
	if (options.fake_gpus < 0 || options.fake_gpus > MO_GPUS_PER_NODE_MAX)
		return mo_error_set(err, -ERANGE, "discovery: %lld fake GPUs: use 0 to %d", (long long)options.fake_gpus, MO_GPUS_PER_NODE_MAX);
	mo_desc_init(&nodeinfo_desc, &info);
	int r = discover(&options, &info, err);
	if (r == 0)
		mo_desc_copy(&nodeinfo_desc, ret, &info);
	mo_desc_done(&nodeinfo_desc, &info);
	return r;
}
