/* What this machine has. CPUs, caches and NUMA nodes come from hwloc (real machine, a root
 * directory or an XML file), GPUs and RDMA devices from sysfs and proc, in an XML from its PCI
 * objects: vendor plugins of hwloc are never loaded, they open the GPUs. Called by moe-discover. */

#include "lib/topo/topo.h"

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
#include "lib/topo/amd.h"
#include "lib/topo/nics.h"
#include "lib/topo/nvidia.h"
#include "lib/topo/pair.h"
#include "lib/topo/xml.h"

#define XML_BYTES_MAX (64 * 1024 * 1024)
#define CPUS_MAX 65536

static void free_topology(hwloc_topology_t *t)
{
	if (*t)
		hwloc_topology_destroy(*t);
}

/* hwloc takes a root directory only through the environment. */
static int load(hwloc_topology_t t, const char *root)
{
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

static int open_topology(const struct topo_options *o, hwloc_topology_t *ret, struct mo_error *err)
{
	static const char *const unwanted[] = { "x86",  "opencl", "gl",       "cuda",
						"nvml", "rsmi",   "levelzero" };
	static const hwloc_obj_type_t unread[] = { HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
						   HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE,
						   HWLOC_OBJ_DIE,     HWLOC_OBJ_MISC };
	_cleanup_(free_topology) hwloc_topology_t t = NULL;
	struct stat st;

	if (hwloc_topology_init(&t) < 0)
		return mo_error_set(err, -ENOMEM, "discovery: hwloc cannot start: %s",
				    strerror(errno));
	for (size_t i = 0; i < ELEMENTSOF(unwanted); i++)
		hwloc_topology_set_components(t, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      unwanted[i]);
		/* None of these is used, and each costs reads per cpu. */
#if HWLOC_API_VERSION >= 0x00020800
	hwloc_topology_set_flags(t,
				 HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS);
#endif
	for (size_t i = 0; i < ELEMENTSOF(unread); i++)
		hwloc_topology_set_type_filter(t, unread[i], HWLOC_TYPE_FILTER_KEEP_NONE);
	if (o->xml) {
		if (stat(o->xml, &st) < 0)
			return mo_error_set(err, -errno,
					    "discovery: %s: %s: give an hwloc XML file", o->xml,
					    strerror(errno));
		if (!S_ISREG(st.st_mode) || st.st_size > XML_BYTES_MAX)
			return mo_error_set(err, -EINVAL,
					    "discovery: %s: it is no regular file of at most 64 "
					    "MiB: give an hwloc XML file (lstopo --of xml)",
					    o->xml);
		hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
		if (hwloc_topology_set_xml(t, o->xml) < 0)
			return mo_error_set(err, -EINVAL,
					    "discovery: %s: hwloc cannot read it: export it with "
					    "lstopo --of xml of hwloc 2",
					    o->xml);
	} else if (*o->root) {
		_cleanup_(mo_freep) char *cpus = mo_printf("%s/sys/devices/system/cpu", o->root);
		if (stat(cpus, &st) < 0)
			return mo_error_set(err, -errno,
					    "discovery: %s: %s: the root directory needs a sys "
					    "tree",
					    cpus, strerror(errno));
	}
	int r = load(t, o->root);
	if (r < 0)
		return mo_error_set(err, r, "discovery: hwloc cannot read %s: %s: %s",
				    o->xml     ? o->xml
				    : *o->root ? o->root
					       : "this machine",
				    strerror(-r),
				    o->xml ? "export it with lstopo --of xml of hwloc 2"
					   : "check that its sys tree is readable");
	*ret = t;
	t = NULL;
	return 0;
}

static void from_bitmap(hwloc_const_bitmap_t b, struct mo_idset *ret)
{
	for (int i = hwloc_bitmap_first(b); i >= 0 && i < CPUS_MAX; i = hwloc_bitmap_next(b, i))
		mo_idset_add(ret, (size_t)i);
}

static void own_affinity(struct mo_idset *ret)
{
	size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
	cpu_set_t *set = mo_alloc(size);

	if (sched_getaffinity(0, size, set) >= 0)
		for (size_t i = 0; i < CPUS_MAX; i++)
			if (CPU_ISSET_S(i, size, set))
				mo_idset_add(ret, i);
	free(set);
}

/* The cpus this agent may use: those hwloc found usable, its affinity or the fake root's cpuset,
 * and the option. */
static int allowed_cpus(const struct topo_options *o, hwloc_topology_t t, struct mo_idset *ret,
			struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset limit = { 0 };

	from_bitmap(hwloc_topology_get_allowed_cpuset(t), ret);
	if (!o->xml && !*o->root)
		own_affinity(&limit);
	if (*o->root) {
		_cleanup_(mo_freep) char *path =
			mo_printf("%s/sys/fs/cgroup/cpuset.cpus.effective", o->root);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (mo_read_file(path, 65536, &b) == 0 && b.data) {
			b.data[strcspn(b.data, "\n")] = 0;
			if (mo_idset_parse(b.data, &limit) < 0)
				return mo_error_set(err, -EINVAL,
						    "discovery: %s: '%s' is no cpu list", path,
						    b.data);
		}
	}
	if (mo_idset_count(&limit))
		mo_idset_and(ret, &limit);
	if (o->cpus) {
		_cleanup_(mo_idset_done) struct mo_idset option = { 0 };
		if (mo_idset_parse(o->cpus, &option) < 0)
			return mo_error_set(err, -EINVAL,
					    "discovery: '%s' is no cpu list: write one such as "
					    "0-7,12",
					    o->cpus);
		mo_idset_and(ret, &option);
	}
	if (!mo_idset_count(ret))
		return mo_error_set(err, -EINVAL,
				    "discovery: none of the cpus '%s' can be used here: give cpus "
				    "of this machine",
				    o->cpus ? o->cpus : "");
	return 0;
}

/* Cpu lists of all objects of a type within cpus, ";" between. */
static char *groups_of(hwloc_topology_t t, hwloc_obj_type_t type, const struct mo_idset *cpus)
{
	struct mo_buf text = { 0 };

	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t, type, obj));) {
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
static char *distance_row(hwloc_topology_t t, hwloc_obj_t node, const struct nodeinfo *info)
{
	struct hwloc_distances_s *d = NULL;
	unsigned n = 1;
	struct mo_buf text = { 0 };

	if (hwloc_distances_get_by_type(t, HWLOC_OBJ_NUMANODE, &n, &d,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) < 0 ||
	    n == 0 || !d)
		return mo_strdup("");
	int row = hwloc_distances_obj_index(d, node);
	for (size_t i = 0; row >= 0 && i < info->n_numa; i++)
		for (unsigned k = 0; k < d->nbobjs; k++)
			if (d->objs[k] && (int64_t)d->objs[k]->os_index == info->numa[i].id)
				mo_buf_printf(&text, "%s%llu", text.len ? " " : "",
					      (unsigned long long)
						      d->values[(unsigned)row * d->nbobjs + k]);
	hwloc_distances_release(t, d);
	return mo_buf_take(&text);
}

/* Where devices may be: all cpus of a node, whatever this agent may use of them. */
static struct place *read_places(hwloc_topology_t t, size_t *ret_n)
{
	struct place *places = NULL;

	*ret_n = 0;
	for (hwloc_obj_t obj = NULL;
	     (obj = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, obj));) {
		struct place *p = MO_GROW(places, *ret_n);
		p->id = obj->os_index;
		from_bitmap(obj->complete_cpuset, &p->cpus);
	}
	return places;
}

static void read_numa(hwloc_topology_t t, const struct mo_idset *allowed, struct nodeinfo *info)
{
	info->mem_bytes = 0;
	for (hwloc_obj_t obj = NULL;
	     (obj = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, obj));) {
		_cleanup_(mo_idset_done) struct mo_idset cpus = { 0 };
		struct numa_node *n = MO_ADD(info, numa, &numa_node_desc);
		n->id = obj->os_index;
		from_bitmap(obj->cpuset, &cpus);
		mo_idset_and(&cpus, allowed);
		n->cpus = mo_idset_format(&cpus);
		n->cores = groups_of(t, HWLOC_OBJ_CORE, &cpus);
		if (!*n->cores && *n->cpus)
			/* no core level in a restricted topology: each cpu is one */
			mo_str_set(&n->cores, NULL);
		n->l3 = groups_of(t, HWLOC_OBJ_L3CACHE, &cpus);
		n->mem_bytes = (int64_t)obj->attr->numanode.local_memory;
		info->mem_bytes += n->mem_bytes;
	}
	size_t i = 0;
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, obj));
	     i++)
		info->numa[i].distances = distance_row(t, obj, info);
}

static void add_fake(const struct topo_options *o, struct nodeinfo *info)
{
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

static int keep_gpus(const char *list, struct nodeinfo *info, struct mo_error *err)
{
	_cleanup_(mo_idset_done) struct mo_idset keep = { 0 };

	if (!list)
		return 0;
	if (mo_idset_parse(list, &keep) < 0)
		return mo_error_set(err, -EINVAL,
				    "discovery: '%s' is no list of GPU slots: write one such as "
				    "0-3",
				    list);
	for (size_t i = info->n_gpus; i-- > 0;)
		if (!mo_idset_has(&keep, (size_t)info->gpus[i].index))
			mo_vec_remove(&gpu_slot_desc, info->gpus, &info->n_gpus, i);
	for (size_t i = info->n_links; i-- > 0;)
		if (!mo_idset_has(&keep, (size_t)info->links[i].from) ||
		    !mo_idset_has(&keep, (size_t)info->links[i].to))
			mo_vec_remove(&gpu_link_desc, info->links, &info->n_links, i);
	return 0;
}

static void name_machine(const struct topo_options *o, hwloc_topology_t t, struct nodeinfo *info)
{
	const char *name =
		o->xml ? hwloc_obj_get_info_by_name(hwloc_get_root_obj(t), "HostName") : NULL;
	struct utsname u;

	if (uname(&u) < 0)
		return;
	mo_str_set(&info->hostname, name ? name : u.nodename);
	mo_str_set(&info->arch, u.machine);
	mo_str_set(&info->kernel, u.release);
	hwloc_obj_t socket = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
	int sockets = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
	mo_str_set(&info->cpu_model,
		   socket ? hwloc_obj_get_info_by_name(socket, "CPUModel") : NULL);
	info->sockets = sockets > 0 ? sockets : MO_NONE;
}

static void find_devices(const struct topo_options *o, hwloc_topology_t t, struct finds *f)
{
	if (o->xml) {
		find_in_xml(t, f);
	} else {
		find_amd(f);
		if (!f->n_gpus)
			find_nvidia(f);
		find_nics(f);
	}
	pair_nics(f);
}

/* Gives what was found to info. */
static void hand_over(struct finds *f, struct nodeinfo *info)
{
	for (size_t i = 0; i < f->n_gpus && i < MO_GPUS_PER_NODE_MAX; i++)
		mo_desc_copy(&gpu_slot_desc, MO_ADD(info, gpus, &gpu_slot_desc), &f->gpus[i].slot);
	for (size_t i = 0; i < f->n_nics && i < MO_GPUS_PER_NODE_MAX; i++)
		mo_desc_copy(&nic_info_desc, MO_ADD(info, nics, &nic_info_desc), &f->nics[i].nic);
	if (f->n_dropped) {
		struct node_finding *last = &f->findings[f->n_findings - 1];
		free(last->text);
		mo_str_set(&last->object, "findings");
		last->text = mo_printf("%zu more of them are not listed", f->n_dropped + 1);
	}
	info->links = TAKE_PTR(f->links);
	info->n_links = f->n_links;
	info->findings = TAKE_PTR(f->findings);
	info->n_findings = f->n_findings;
	f->n_links = f->n_findings = 0;
	info->driver = TAKE_PTR(f->driver);
}

static int discover(const struct topo_options *o, struct nodeinfo *info, struct mo_error *err)
{
	_cleanup_(free_topology) hwloc_topology_t t = NULL;
	_cleanup_(mo_idset_done) struct mo_idset allowed = { 0 };
	_cleanup_(finds_done) struct finds finds = { .root = o->root, .options = o };
	if (o->at)
		snprintf(o->at, o->at_bytes, "%s",
			 o->xml ? o->xml : "/sys/devices/system (CPUs, caches and NUMA nodes)");
	int r = open_topology(o, &t, err);

	if (r == 0)
		r = allowed_cpus(o, t, &allowed, err);
	if (r < 0)
		return r;
	name_machine(o, t, info);
	/* HWLOC_XMLFILE and its like work too */
	info->simulated = o->xml || *o->root || !hwloc_topology_is_thissystem(t);
	info->cpus = (int64_t)mo_idset_count(&allowed);
	read_numa(t, &allowed, info);
	struct place *places = read_places(t, &finds.n_places);
	finds.places = places;
	if (!o->only_fake)
		find_devices(o, t, &finds);
	for (size_t i = 0; i < finds.n_places; i++)
		mo_idset_done(&places[i].cpus);
	free(places);
	hand_over(&finds, info);
	if (!info->n_gpus && !finds.blind)
		add_fake(o, info);
	return keep_gpus(o->gpus, info, err);
}

int topo_discover(const struct topo_options *o, struct nodeinfo *ret, struct mo_error *err)
{
	struct topo_options options = *o;
	struct nodeinfo info;

	if (!options.root)
		options.root = "";
	if (options.fake_gpus < 0 || options.fake_gpus > MO_GPUS_PER_NODE_MAX)
		return mo_error_set(err, -ERANGE, "discovery: %lld fake GPUs: use 0 to %d",
				    (long long)options.fake_gpus, MO_GPUS_PER_NODE_MAX);
	mo_desc_init(&nodeinfo_desc, &info);
	int r = discover(&options, &info, err);
	if (r == 0)
		mo_desc_copy(&nodeinfo_desc, ret, &info);
	mo_desc_done(&nodeinfo_desc, &info);
	return r;
}
