/* GPUs and RDMA devices below a root directory, without any vendor library: AMD through the KFD topology (the order in which ROCm numbers them), NVIDIA through
 * /proc/driver/nvidia. A GPU counts only when this process may open its device node, as the runtimes do: so the slot number is the runtime's device number.
 * Formats: hardware facts 1.1 to 1.4 and 1.8. Called by topo.c, in the short-lived discovery helper: a wedged GPU may hold a read for 30 s and more. */
#include "lib/topo/inner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/idset.h"
#include "lib/base/parse.h"

#define FILE_MAX (64 * 1024)
#define ENTRIES_MAX 4096

void finds_done(struct finds *f) {
	for (size_t i = 0; i < f->n_gpus; i++) {
		mo_desc_done(&gpu_slot_desc, &f->gpus[i].slot);
		free(f->gpus[i].path);
	}
	for (size_t i = 0; i < f->n_nics; i++) {
		free(f->nics[i].name);
		free(f->nics[i].path);
	}
	free(f->gpus);
	free(f->nics);
	free(f->driver);
	*f = (struct finds){ 0 };
}

struct found_gpu *finds_add_gpu(struct finds *f) {
	struct found_gpu *g = MO_GROW(f->gpus, f->n_gpus);

	mo_desc_init(&gpu_slot_desc, &g->slot);
	g->slot.index = (int64_t)f->n_gpus - 1;
	return g;
}

/* First line of a small file without blanks at its end; NULL when unreadable. */
static char *read_line(const char *path) {
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (mo_read_file(path, FILE_MAX, &b) < 0 || !b.data)
		return NULL;
	size_t n = strcspn(b.data, "\n");
	while (n > 0 && (b.data[n - 1] == ' ' || b.data[n - 1] == '\t'))
		n--;
	return mo_strndup(b.data, n);
}

static int64_t read_int(const char *path, int64_t otherwise) {
	_cleanup_(mo_freep) char *line = read_line(path);
	int64_t v;

	return line && mo_parse_i64(line, INT64_MIN + 1, INT64_MAX, &v) == 0 ? v : otherwise;
}

/* Value of `key` in "key value" lines (KFD) or "Key:  value" lines (NVIDIA); caller frees, NULL when absent. */
static char *find_value(const char *text, const char *key) {
	size_t n = strlen(key);

	for (const char *p = text; p && *p; p = strchr(p, '\n'), p += p ? 1 : 0) {
		if (strncmp(p, key, n) != 0 || !strchr(" \t:", p[n]))
			continue;
		const char *v = p + n + strspn(p + n, ": \t");
		size_t len = strcspn(v, "\n");
		while (len > 0 && (v[len - 1] == ' ' || v[len - 1] == '\t'))
			len--;
		return mo_strndup(v, len);
	}
	return NULL;
}

static int64_t find_int(const char *text, const char *key, int64_t otherwise) {
	_cleanup_(mo_freep) char *value = find_value(text, key);
	int64_t v;

	return value && mo_parse_i64(value, 0, INT64_MAX, &v) == 0 ? v : otherwise;
}

/* Unsigned 64-bit, beyond what the checked parser takes. 0 = absent or malformed. */
static uint64_t find_u64(const char *text, const char *key) {
	_cleanup_(mo_freep) char *value = find_value(text, key);
	uint64_t v = 0;

	for (const char *p = value; p && *p; p++) {
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return 0;
	}
	return v;
}

char *gpu_model_name(int64_t vendor, int64_t device, const char *model) {
	static const struct { int64_t device; const char *name; } amd[] = {
		{ 0x74a1, "mi300x" }, { 0x74b5, "mi300x" }, { 0x74a0, "mi300a" }, { 0x74a2, "mi308x" }, { 0x74a5, "mi325x" }, { 0x75a0, "mi350x" }, { 0x75a3, "mi355x" },
		{ 0x740f, "mi210" }, { 0x7408, "mi250x" }, { 0x738c, "mi100" }, { 0x66a1, "mi60" },
	};
	if (vendor == 0x1002) {
		for (size_t i = 0; i < ELEMENTSOF(amd); i++)
			if (amd[i].device == device)
				return mo_strdup(amd[i].name);
		return mo_printf("amd-%04llx", (long long)device);
	}
	if (!model || !*model)
		return mo_printf("nvidia-%04llx", (long long)device);
	/* "NVIDIA A100-SXM4-80GB" -> a100, "NVIDIA H100 80GB HBM3" -> h100 */
	if (mo_starts_with(model, "NVIDIA "))
		model += strlen("NVIDIA ");
	char *name = mo_strndup(model, strcspn(model, " -"));
	for (char *p = name; *p; p++)
		if (*p >= 'A' && *p <= 'Z')
			*p = (char)(*p - 'A' + 'a');
	return name;
}

/* PCI ancestors of a device, "pci0000:04/0000:04:01.1/..."; NULL when it has none. */
static char *pci_path(const char *link) {
	_cleanup_(mo_freep) char *real = realpath(link, NULL);
	const char *p = real ? strstr(real, "/devices/pci") : NULL;

	return p ? mo_strdup(p + strlen("/devices/")) : NULL;
}

/* The NUMA node of a PCI device directory: as firmware says, else the one node that has all its local CPUs; MO_NONE unknown. */
static int64_t pci_numa(const char *dir, const struct numa_node *numa, size_t n_numa) {
	_cleanup_(mo_freep) char *node_path = mo_path(dir, "numa_node"), *list_path = mo_path(dir, "local_cpulist");
	int64_t node = read_int(node_path, -1);

	if (node >= 0)
		return node;
	_cleanup_(mo_freep) char *list = read_line(list_path);
	_cleanup_(mo_idset_done) struct mo_idset local = { 0 };
	if (!list || mo_idset_parse(list, &local) < 0 || !mo_idset_count(&local) || n_numa < 2)
		return MO_NONE;                /* with one NUMA node the list says nothing */
	for (size_t i = 0; i < n_numa; i++) {
		_cleanup_(mo_idset_done) struct mo_idset rest = { 0 }, cpus = { 0 };
		if (mo_idset_parse(numa[i].cpus ? numa[i].cpus : "", &cpus) < 0)
			continue;
		mo_idset_copy(&rest, &local);
		mo_idset_andnot(&rest, &cpus);
		if (!mo_idset_count(&rest))
			return numa[i].id;
	}
	return MO_NONE;
}

/* Numbered entries of a directory, ascending. */
static int64_t *numbered(const char *dir, size_t *ret_n) {
	int64_t *ids = NULL;
	DIR *d = opendir(dir);

	*ret_n = 0;
	for (struct dirent *e; d && (e = readdir(d)) && *ret_n < ENTRIES_MAX; ) {
		int64_t id;
		if (mo_parse_i64(e->d_name, 0, INT32_MAX, &id) == 0)
			mo_ints_add(&ids, ret_n, id);
	}
	if (d)
		closedir(d);
	for (size_t i = 1; i < *ret_n; i++)
		for (size_t k = i; k > 0 && ids[k - 1] > ids[k]; k--) {
			int64_t t = ids[k];
			ids[k] = ids[k - 1];
			ids[k - 1] = t;
		}
	return ids;
}

struct kfd_node { int64_t id; char *dir; struct mo_buf props; bool gpu; uint64_t unique_id; };

static struct kfd_node *kfd_read(const char *root, size_t *ret_n) {
	_cleanup_(mo_freep) char *dir = mo_printf("%s/sys/class/kfd/kfd/topology/nodes", root);
	struct kfd_node *nodes = NULL;
	size_t n_ids;
	_cleanup_(mo_freep) int64_t *ids = numbered(dir, &n_ids);

	*ret_n = 0;
	for (size_t i = 0; i < n_ids; i++) {
		struct kfd_node *n = MO_GROW(nodes, *ret_n);
		n->id = ids[i];
		n->dir = mo_path(dir, "%lld", (long long)ids[i]);
		_cleanup_(mo_freep) char *props = mo_path(n->dir, "properties"), *gpu_id = mo_path(n->dir, "gpu_id");
		if (mo_read_file(props, FILE_MAX, &n->props) < 0)
			continue;
		/* Older dumps have no gpu_id file; a GPU is also the node without CPU cores. */
		n->gpu = read_int(gpu_id, find_int(n->props.data, "simd_count", 0)) > 0;
		n->unique_id = find_u64(n->props.data, "unique_id");
	}
	return nodes;
}

static int64_t kfd_vram(const struct kfd_node *n) {
	_cleanup_(mo_freep) char *dir = mo_path(n->dir, "mem_banks");
	size_t n_banks;
	_cleanup_(mo_freep) int64_t *banks = numbered(dir, &n_banks);
	int64_t sum = 0;

	for (size_t i = 0; i < n_banks; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%lld/properties", (long long)banks[i]);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (mo_read_file(path, FILE_MAX, &b) < 0)
			continue;
		int64_t heap = find_int(b.data, "heap_type", 0), bytes = find_int(b.data, "size_in_bytes", 0);
		if ((heap == 1 || heap == 2) && bytes < INT64_MAX - sum)
			sum += bytes;
	}
	return sum ? sum : MO_NONE;
}

/* The CPU node with the lightest link; KFD counts CPU nodes in the order of the NUMA nodes. */
static int64_t kfd_nearest(const struct kfd_node *n, const struct kfd_node *nodes, size_t n_nodes, const struct numa_node *numa, size_t n_numa) {
	_cleanup_(mo_freep) char *dir = mo_path(n->dir, "io_links");
	size_t n_links;
	_cleanup_(mo_freep) int64_t *links = numbered(dir, &n_links);
	int64_t best = MO_NONE, best_weight = INT64_MAX;

	for (size_t i = 0; i < n_links; i++) {
		_cleanup_(mo_freep) char *path = mo_path(dir, "%lld/properties", (long long)links[i]);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (mo_read_file(path, FILE_MAX, &b) < 0)
			continue;
		int64_t to = find_int(b.data, "node_to", -1), weight = find_int(b.data, "weight", INT64_MAX);
		size_t cpu_index = 0;
		for (size_t k = 0; k < n_nodes && weight < best_weight; k++) {
			if (nodes[k].gpu)
				continue;
			if (nodes[k].id == to && cpu_index < n_numa) {
				best = numa[cpu_index].id;
				best_weight = weight;
			}
			cpu_index++;
		}
	}
	return best;
}

static bool may_open(const char *root, const char *path) {
	if (*root)
		return true;                   /* somebody else's machine: nothing of it can be opened */
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void add_kfd_gpu(const char *root, const struct kfd_node *n, const struct kfd_node *nodes, size_t n_nodes, const struct numa_node *numa, size_t n_numa, struct finds *f) {
	int64_t minor = find_int(n->props.data, "drm_render_minor", 0), location = find_int(n->props.data, "location_id", 0);
	_cleanup_(mo_freep) char *render = mo_printf("/dev/dri/renderD%lld", (long long)minor);
	size_t partitions = 0;

	if (minor > 0 && !may_open(root, render))
		return;                        /* the runtime skips it too */
	for (size_t i = 0; i < n_nodes; i++)
		partitions += nodes[i].gpu && n->unique_id && nodes[i].unique_id == n->unique_id;
	if (partitions > 1)
		location &= ~7LL;              /* the low bits number the partition there, not a PCI function */
	struct found_gpu *g = finds_add_gpu(f);
	g->slot.vendor = mo_strdup("amd");
	g->slot.model = gpu_model_name(0x1002, find_int(n->props.data, "device_id", 0), NULL);
	g->slot.bdf = mo_printf("%04llx:%02llx:%02llx.%llx", (long long)find_int(n->props.data, "domain", 0), (long long)(location >> 8 & 255), (long long)(location >> 3 & 31), (long long)(location & 7));
	if (n->unique_id)
		g->slot.unique_id = mo_printf("%016llx", (unsigned long long)n->unique_id);
	_cleanup_(mo_freep) char *device = mo_printf("%s/sys/bus/pci/devices/%s", root, g->slot.bdf);
	_cleanup_(mo_freep) char *total = mo_path(device, "mem_info_vram_total");
	g->path = pci_path(device);
	g->slot.numa_node = pci_numa(device, numa, n_numa);
	if (g->slot.numa_node == MO_NONE)
		g->slot.numa_node = kfd_nearest(n, nodes, n_nodes, numa, n_numa);
	g->slot.vram_bytes = kfd_vram(n);
	if (g->slot.vram_bytes == MO_NONE)
		g->slot.vram_bytes = read_int(total, MO_NONE);
}

static void find_amd(const char *root, const struct numa_node *numa, size_t n_numa, struct finds *f) {
	size_t n;
	struct kfd_node *nodes = kfd_read(root, &n);

	for (size_t i = 0; i < n; i++)
		if (nodes[i].gpu && f->n_gpus < ENTRIES_MAX)
			add_kfd_gpu(root, &nodes[i], nodes, n, numa, n_numa, f);
	for (size_t i = 0; i < n; i++) {
		free(nodes[i].dir);
		mo_buf_done(&nodes[i].props);
	}
	free(nodes);
	if (!f->n_gpus)
		return;
	_cleanup_(mo_freep) char *path = mo_printf("%s/sys/module/amdgpu/version", root);
	_cleanup_(mo_freep) char *version = read_line(path);
	f->driver = version ? mo_printf("amdgpu %s", version) : mo_strdup("amdgpu");
}

static int by_name(const void *a, const void *b) {
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a directory, sorted. */
static char **names_of(const char *dir, size_t *ret_n) {
	char **names = NULL;
	DIR *d = opendir(dir);

	*ret_n = 0;
	for (struct dirent *e; d && (e = readdir(d)) && *ret_n < ENTRIES_MAX; )
		if (e->d_name[0] != '.')
			mo_strs_add(&names, ret_n, e->d_name);
	if (d)
		closedir(d);
	if (names)
		qsort(names, *ret_n, sizeof(*names), by_name);
	return names;
}

static void names_free(char **names, size_t n) {
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* In the order of bus addresses, which is CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID and, on nodes of equal GPUs, its default. */
static void find_nvidia(const char *root, const struct numa_node *numa, size_t n_numa, struct finds *f) {
	_cleanup_(mo_freep) char *dir = mo_printf("%s/proc/driver/nvidia/gpus", root);
	size_t n;
	char **names = names_of(dir, &n);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *info = mo_path(dir, "%s/information", names[i]), *device = mo_printf("%s/sys/bus/pci/devices/%s", root, names[i]);
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		if (mo_read_file(info, FILE_MAX, &b) < 0 || !b.data)
			continue;
		_cleanup_(mo_freep) char *minor = find_value(b.data, "Device Minor"), *excluded = find_value(b.data, "GPU Excluded"), *model = find_value(b.data, "Model");
		_cleanup_(mo_freep) char *node = mo_printf("/dev/nvidia%s", minor ? minor : "");
		if (mo_streq(excluded, "Yes") || (minor && !may_open(root, node)))
			continue;
		struct found_gpu *g = finds_add_gpu(f);
		g->slot.vendor = mo_strdup("nvidia");
		g->slot.model = gpu_model_name(0x10de, 0, model);
		g->slot.bdf = mo_strdup(names[i]);
		g->slot.unique_id = find_value(b.data, "GPU UUID");
		g->slot.numa_node = pci_numa(device, numa, n_numa);
		g->path = pci_path(device);
	}
	names_free(names, n);
	if (!f->n_gpus)
		return;
	_cleanup_(mo_freep) char *path = mo_printf("%s/sys/module/nvidia/version", root);
	_cleanup_(mo_freep) char *version = read_line(path);
	f->driver = version ? mo_printf("nvidia %s", version) : mo_strdup("nvidia");
}

void find_gpus(const char *root, const struct numa_node *numa, size_t n_numa, struct finds *f) {
	find_amd(root, numa, n_numa, f);
	if (!f->n_gpus)
		find_nvidia(root, numa, n_numa, f);
}

void find_nics(const char *root, struct finds *f) {
	_cleanup_(mo_freep) char *dir = mo_printf("%s/sys/class/infiniband", root);
	size_t n;
	char **names = names_of(dir, &n);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *link = mo_path(dir, "%s", names[i]), *numa = mo_path(link, "device/numa_node");
		struct found_nic *nic = MO_GROW(f->nics, f->n_nics);
		nic->name = mo_strdup(names[i]);
		nic->path = pci_path(link);
		nic->numa_node = read_int(numa, -1);
	}
	names_free(names, n);
}
