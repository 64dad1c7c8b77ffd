/* AMD GPUs below a root directory through the KFD topology, without any vendor library, in the
 * order in which ROCm numbers them. As in the runtime a GPU whose render node this process
 * cannot open does not exist, so that the slot number is the runtime's device number. A
 * partitioned GPU (CPX and others) is several KFD nodes of one unique_id whose location differs
 * only in the low three bits: those number the partition, not a PCI function. Formats: hardware
 * facts 1.1 to 1.3. Called by topo.c, in the short-lived discovery helper: a wedged GPU may hold
 * a read for 30 s and more. */
#include "lib/topo/amd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"
#include "lib/topo/files.h"
#include "lib/topo/pci.h"

#define LINK_PCIE 2
#define LINK_XGMI 11

struct kfd_node {
	int64_t id, location, domain, slot; /* slot: MO_NONE = none */
	char *dir, bdf[24];
	struct mo_buf props;
	bool gpu, twin; /* twin: another GPU has its unique_id */
	uint64_t unique_id;
	size_t parts; /* partitions of its GPU, itself included */
};
struct kfd {
	struct kfd_node *nodes;
	size_t n;
	struct mo_buf text;
};

static void kfd_done(struct kfd *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->nodes[i].dir);
		mo_buf_done(&k->nodes[i].props);
	}
	free(k->nodes);
	mo_buf_done(&k->text);
}

static void read_node(struct finds *f, struct kfd_node *n)
{
	_cleanup_(mo_freep) char *props = mo_path(n->dir, "properties"),
				 *gpu_id = mo_path(n->dir, "gpu_id"),
				 *object = mo_printf("KFD node %lld", (long long)n->id);
	bool ones;
	int r = read_text(f, props, &n->props);
	int64_t id = file_int(f, gpu_id, MO_NONE);

	f->blind |= r == -ECANCELED;
	/* Older dumps have no gpu_id file: a GPU is also what has compute units. */
	n->gpu = id != MO_NONE ? id > 0 : props_int(n->props.data, "simd_count") > 0;
	if (!n->gpu)
		return;
	int64_t location = props_int(n->props.data, "location_id"),
		domain = props_int(n->props.data, "domain");
	if (r < 0 || location < 0 || location > 0xffff) {
		finds_odd(f, object,
			  "%s: the GPU is left out; the numbers of later GPUs may differ from the "
			  "runtime's",
			  r < 0 ? strerror(-r) : "its properties name no PCI address");
		n->gpu = false;
		return;
	}
	n->location = location;
	n->domain = domain >= 0 && domain <= 0xffffff ? domain : 0;
	n->unique_id = props_u64(n->props.data, "unique_id", &ones);
	if (ones)
		finds_odd(f, object, "its unique_id is all ones: it has none");
}

static bool same_gpu(const struct kfd_node *a, const struct kfd_node *b)
{
	return a->gpu && b->gpu && a->unique_id == b->unique_id && a->domain == b->domain &&
	       (a->location & ~7LL) == (b->location & ~7LL);
}

/* Counts partitions and finds what has another GPU's name or address. */
static void group_nodes(struct finds *f, struct kfd *k)
{
	for (size_t i = 0; i < k->n; i++) {
		struct kfd_node *n = &k->nodes[i];
		n->parts = n->gpu;
		for (size_t j = 0; j < k->n; j++)
			n->parts += j != i && same_gpu(n, &k->nodes[j]) &&
				    n->location != k->nodes[j].location;
	}
	for (size_t i = 0; i < k->n; i++) {
		struct kfd_node *n = &k->nodes[i];
		snprintf(n->bdf, sizeof(n->bdf), "%04llx:%02llx:%02llx.%llx", (long long)n->domain,
			 (long long)(n->location >> 8), (long long)(n->location >> 3 & 31),
			 n->parts > 1 ? 0LL : (long long)(n->location & 7));
		for (size_t j = 0; n->gpu && j < i; j++) {
			struct kfd_node *o = &k->nodes[j];
			bool address =
				o->gpu && o->domain == n->domain && o->location == n->location;
			bool name = o->gpu && n->unique_id && o->unique_id == n->unique_id &&
				    (address || !same_gpu(n, o));
			if (name)
				finds_odd(f, n->bdf,
					  "it has the unique_id %016llx of %s: neither is known by "
					  "it",
					  (unsigned long long)n->unique_id, o->bdf);
			if (address)
				finds_odd(f, n->bdf,
					  "KFD nodes %lld and %lld have this one address",
					  (long long)o->id, (long long)n->id);
			n->twin |= name;
			o->twin |= name;
		}
	}
}

static void kfd_read(struct finds *f, struct kfd *k)
{
	_cleanup_(mo_freep) char *dir = mo_printf("%s/sys/class/kfd/kfd/topology/nodes", f->root);
	size_t n;
	_cleanup_(mo_freep) int64_t *ids = dir_numbers(dir, &n);

	for (size_t i = 0; i < n; i++) {
		struct kfd_node *node = MO_GROW(k->nodes, k->n);
		node->id = ids[i];
		node->slot = MO_NONE;
		node->dir = mo_path(dir, "%lld", (long long)ids[i]);
		read_node(f, node);
	}
	group_nodes(f, k);
}

/* properties of entry `nth` of a directory of the node; NULL unreadable. Borrowed until the next
 * call. */
static const char *entry(const struct finds *f, struct kfd *k, const struct kfd_node *n,
			 const char *what, int64_t nth)
{
	char path[512];

	mo_buf_reset(&k->text);
	if ((size_t)snprintf(path, sizeof(path), "%s/%s/%lld/properties", n->dir, what,
			     (long long)nth) >= sizeof(path))
		return NULL;
	return read_text(f, path, &k->text) < 0 ? NULL : k->text.data;
}

static int64_t kfd_vram(const struct finds *f, struct kfd *k, const struct kfd_node *n)
{
	_cleanup_(mo_freep) char *dir = mo_path(n->dir, "mem_banks");
	size_t n_banks;
	_cleanup_(mo_freep) int64_t *banks = dir_numbers(dir, &n_banks);
	int64_t sum = 0;

	for (size_t i = 0; i < n_banks; i++) {
		const char *text = entry(f, k, n, "mem_banks", banks[i]);
		int64_t heap = props_int(text, "heap_type"),
			bytes = props_int(text, "size_in_bytes");
		if ((heap == 1 || heap == 2) && bytes > 0 && bytes < INT64_MAX - sum)
			sum += bytes;
	}
	return sum ? sum : MO_NONE;
}

/* The NUMA node of the CPU node with the lightest link; KFD counts CPU nodes in the order of the
 * NUMA nodes. */
static int64_t kfd_nearest(const struct finds *f, struct kfd *k, const struct kfd_node *n)
{
	_cleanup_(mo_freep) char *dir = mo_path(n->dir, "io_links");
	size_t n_links;
	_cleanup_(mo_freep) int64_t *links = dir_numbers(dir, &n_links);
	int64_t best = MO_NONE, best_weight = INT64_MAX;

	for (size_t i = 0; i < n_links; i++) {
		const char *text = entry(f, k, n, "io_links", links[i]);
		int64_t to = props_int(text, "node_to"), weight = props_int(text, "weight");
		size_t cpu_index = 0;
		for (size_t j = 0; j < k->n && to >= 0 && weight >= 0 && weight < best_weight;
		     j++) {
			if (k->nodes[j].gpu)
				continue;
			if (k->nodes[j].id == to && cpu_index < f->n_places) {
				best = f->places[cpu_index].id;
				best_weight = weight;
			}
			cpu_index++;
		}
	}
	return best;
}

bool device_opens(struct finds *f, const char *object, const char *path)
{
	int r = 0;

	/* somebody else's machine: its nodes cannot be opened, only be there */
	if (*f->root) {
		_cleanup_(mo_freep) char *below = mo_printf("%s%s", f->root, path),
					 *dev = mo_printf("%s/dev", f->root);
		r = access(dev, F_OK) == 0 && access(below, F_OK) < 0 ? errno : 0;
	} else if (reach(f, path)) {
		int fd = open(path, O_RDWR | O_CLOEXEC);
		r = fd < 0 ? errno : 0;
		mo_close(fd);
	}
	if (r)
		finds_odd(f, object,
			  "%s: %s: the GPU is left out, as the runtime leaves it out; check "
			  "permissions and the device cgroup",
			  path, strerror(r));
	return r == 0;
}

/* A partition mode of the driver ("SPX", "NPS1"); NULL unknown. */
static char *mode_of(struct finds *f, const char *bdf, const char *device, const char *file)
{
	char *mode = device_line(f, bdf, device, file);

	if (mode && (!*mode || strlen(mode) > 8 ||
		     strspn(mode, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != strlen(mode))) {
		finds_odd(f, bdf, "%s says '%.40s', which is no mode", file, mode);
		free(mode);
		return NULL;
	}
	return mode;
}

static void set_partition(struct finds *f, const struct kfd_node *n, const char *device,
			  struct gpu_slot *slot)
{
	/* 1 to 4 partitions; CPX has one per chiplet */
	static const char *const modes[] = { "SPX", "DPX", "TPX", "QPX" };

	if (n->parts > 1)
		slot->partition = n->location & 7;
	slot->compute_partition = mode_of(f, n->bdf, device, "current_compute_partition");
	slot->memory_partition = mode_of(f, n->bdf, device, "current_memory_partition");
	if (!slot->compute_partition && n->parts > 1)
		slot->compute_partition = mo_strdup(props_int(n->props.data, "num_xcc") == 1 ||
								    n->parts > ELEMENTSOF(modes)
							    ? "CPX"
							    : modes[n->parts - 1]);
	int said = mo_enum_parse(modes, ELEMENTSOF(modes), slot->compute_partition);
	bool wrong = said >= 0 ? (size_t)said + 1 != n->parts
			       : mo_streq(slot->compute_partition, "CPX") && n->parts < 2;
	if (wrong && (n->parts < 2 || slot->partition == 0))
		finds_odd(f, n->bdf,
			  "current_compute_partition says %s, but KFD has %zu of it: the driver "
			  "may be changing modes",
			  slot->compute_partition, n->parts);
}

static void add_gpu(struct finds *f, struct kfd *k, struct kfd_node *n)
{
	int64_t minor = props_int(n->props.data, "drm_render_minor");
	_cleanup_(mo_freep) char *said = props_value(n->props.data, "drm_render_minor"),
				 *render = mo_printf("/dev/dri/renderD%lld", (long long)minor);
	_cleanup_(mo_freep) char *device = mo_printf("%s/sys/bus/pci/devices/%s", f->root, n->bdf),
				 *total = mo_path(device, "mem_info_vram_total");
	bool ones;

	if (said && minor <= 0) { /* kernels of long ago do not say it */
		finds_odd(f, n->bdf,
			  "it has no render node: it is left out, as the runtime leaves it out");
		return;
	}
	if (minor > 0 && !device_opens(f, n->bdf, render))
		return;
	struct found_gpu *g = finds_add_gpu(f);
	struct gpu_slot *slot = &g->slot;
	n->slot = slot->index;
	slot->vendor = mo_strdup("amd");
	slot->model =
		gpu_model_name(0x1002, MO_MAX(props_int(n->props.data, "device_id"), 0), NULL);
	slot->bdf = mo_strdup(n->bdf);
	slot->render_minor = minor > 0 ? minor : MO_NONE;
	if (n->unique_id && !n->twin)
		slot->unique_id = mo_printf("%016llx", (unsigned long long)n->unique_id);
	uint64_t hive = props_u64(n->props.data, "hive_id", &ones);
	if (hive)
		slot->hive = mo_printf("%016llx", (unsigned long long)hive);
	g->path = pci_path(device);
	if (!g->path && f->has_pci && (n->parts < 2 || !(n->location & 7)))
		finds_odd(f, n->bdf,
			  "it has no PCI directory: its NIC is unknown, its NUMA node is the "
			  "driver's nearest");
	set_partition(f, n, device, slot);
	slot->numa_node = pci_numa(f, n->bdf, device);
	if (slot->numa_node == MO_NONE)
		slot->numa_node = kfd_nearest(f, k, n);
	slot->vram_bytes = kfd_vram(f, k, n);
	if (slot->vram_bytes == MO_NONE) {
		int64_t bytes = file_int(f, total, MO_NONE);
		slot->vram_bytes = bytes > 0 ? bytes / (int64_t)n->parts : MO_NONE;
	}
}

struct path {
	int64_t type, weight;
};

static const struct kfd_node *node_by_id(const struct kfd *k, int64_t id)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->nodes[i].id == id)
			return &k->nodes[i];
	return NULL;
}

static void miss_node(struct finds *f, int64_t id)
{
	_cleanup_(mo_freep) char *object = mo_printf("KFD node %lld", (long long)id);

	for (size_t i = 0; i < f->n_findings; i++)
		if (mo_streq(f->findings[i].object, object))
			return;
	finds_odd(f, object, "links lead to it, but it is not there: a GPU may have left the bus");
}

/* What one node's links say about the way to each slot. A direct link (io) goes before a path
 * over others (p2p). */
static void read_links(struct finds *f, struct kfd *k, const struct kfd_node *n, const char *what,
		       struct path *row)
{
	_cleanup_(mo_freep) char *dir = mo_path(n->dir, "%s", what);
	size_t n_links;
	_cleanup_(mo_freep) int64_t *links = dir_numbers(dir, &n_links);

	for (size_t i = 0; i < n_links; i++) {
		const char *text = entry(f, k, n, what, links[i]);
		int64_t to = props_int(text, "node_to"), type = props_int(text, "type"),
			weight = props_int(text, "weight");
		const struct kfd_node *peer = node_by_id(k, to);
		if (!peer && to >= 0)
			miss_node(f, to);
		if (peer && peer->slot != MO_NONE && peer->slot != n->slot &&
		    !row[peer->slot].type && (type == LINK_PCIE || type == LINK_XGMI))
			row[peer->slot] = (struct path){ type, weight };
	}
}

static void find_links(struct finds *f, struct kfd *k)
{
	_cleanup_(mo_freep) struct path *paths =
		mo_alloc_array(MO_MAX(f->n_gpus * f->n_gpus, (size_t)1), sizeof(*paths));

	for (size_t i = 0; i < k->n; i++) {
		if (k->nodes[i].slot == MO_NONE)
			continue;
		read_links(f, k, &k->nodes[i], "io_links",
			   paths + (size_t)k->nodes[i].slot * f->n_gpus);
		read_links(f, k, &k->nodes[i], "p2p_links",
			   paths + (size_t)k->nodes[i].slot * f->n_gpus);
	}
	for (size_t a = 0; a < f->n_gpus; a++)
		for (size_t b = 0; b < f->n_gpus && f->n_links < MO_GPU_LINKS_MAX; b++) {
			struct path p = paths[a * f->n_gpus + b], back = paths[b * f->n_gpus + a];
			if (!p.type || (a > b && back.type == p.type && back.weight == p.weight))
				/* the way back is shown only where it differs */
				continue;
			struct gpu_link *link = MO_ADD(f, links, &gpu_link_desc);
			link->from = (int64_t)a;
			link->to = (int64_t)b;
			link->type = mo_strdup(p.type == LINK_XGMI ? "xgmi" : "pcie");
			link->weight = p.weight;
		}
}

void find_amd(struct finds *f)
{
	_cleanup_(kfd_done) struct kfd k = { 0 };

	_cleanup_(mo_freep) char *pci = mo_printf("%s/sys/bus/pci/devices", f->root);
	f->has_pci = access(pci, F_OK) == 0;
	kfd_read(f, &k);
	for (size_t i = 0; i < k.n; i++) {
		if (k.nodes[i].gpu && f->n_gpus >= MO_GPUS_PER_NODE_MAX) {
			finds_odd(f, "gpus", "more than %d GPUs: the rest is left out",
				  MO_GPUS_PER_NODE_MAX);
			break;
		}
		if (k.nodes[i].gpu)
			add_gpu(f, &k, &k.nodes[i]);
	}
	find_links(f, &k);
	if (f->n_gpus && !f->has_pci)
		finds_odd(f, "pci",
			  "there is no /sys/bus/pci/devices: NICs are unknown, NUMA nodes are the "
			  "driver's nearest");
	if (f->n_gpus) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/sys/module/amdgpu/version", f->root);
		_cleanup_(mo_freep) char *version = file_line(f, path, NULL);
		f->driver = version ? mo_printf("amdgpu %s", version) : mo_strdup("amdgpu");
	}
	find_lost(f, 0x1002,
		  "an AMD GPU that the driver (KFD) does not report: no job can use it; look for "
		  "amdgpu in the kernel log");
}
