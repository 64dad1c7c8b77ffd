/* What the kernel's compute driver (KFD) knows of an AMD GPU: its XGMI links, and the processes that hold its memory. Formats: hardware facts 1.1; amdkfd's kfd_process.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/reading.h"
#include "agent/core/sysfs_text.h"
#include "agent/probe/look.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define NODES "sys/class/kfd/kfd/topology/nodes"
#define PROCESSES "sys/class/kfd/kfd/proc"
#define LINK_XGMI 11
#define ENVIRON_BYTES_MAX (2 * 1024 * 1024)
#define FOREIGN_SHOWN 8

struct kfd_node { int64_t node, gpu_id; char bdf[16]; };
struct kfd_nodes { struct kfd_node *items; size_t n; };

/* All GPU nodes. The low bits of location_id are the partition, not a function of PCI: partitions of one GPU are one address. */
static struct kfd_nodes read_nodes(struct look *l) {
	struct kfd_nodes nodes = { 0 };
	struct look_names names = look_list(l, true, NODES);

	for (size_t i = 0; i < names.n; i++) {
		int64_t number;
		_cleanup_(mo_freep) char *properties = mo_printf("%s/%s/properties", NODES, names.items[i]), *id = mo_printf("%s/%s/gpu_id", NODES, names.items[i]);
		const char *s = look_root(l, properties);
		if (!s || mo_parse_i64(names.items[i], 0, INT32_MAX, &number) < 0 || text_key_int(s, "simd_count") <= 0)
			continue;
		int64_t location = text_key_int(s, "location_id"), domain = text_key_int(s, "domain");
		if (location == MO_NONE)
			continue;
		struct kfd_node *n = MO_GROW(nodes.items, nodes.n);
		n->node = number;
		snprintf(n->bdf, sizeof(n->bdf), "%04x:%02x:%02x.0", domain == MO_NONE ? 0 : (unsigned)domain & 0xffff, (unsigned)(location >> 8) & 0xff, (unsigned)(location >> 3) & 0x1f);
		n->gpu_id = look_root_int(l, id);
	}
	look_names_done(&names);
	return nodes;
}

static const struct kfd_node *node_of(const struct kfd_nodes *nodes, int64_t number) {
	for (size_t i = 0; i < nodes->n; i++)
		if (nodes->items[i].node == number)
			return &nodes->items[i];
	return NULL;
}

/* Other GPUs that this one reaches over XGMI. */
static int64_t count_links(struct look *l, const struct kfd_nodes *nodes, const struct kfd_node *own) {
	_cleanup_(mo_freep) char *path = mo_printf("%s/%lld/io_links", NODES, (long long)own->node);
	struct look_names names = look_list(l, true, path);
	int64_t n = names.n ? 0 : MO_NONE;

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *file = mo_printf("%s/%s/properties", path, names.items[i]);
		const char *s = look_root(l, file);
		if (!s || text_key_int(s, "type") != LINK_XGMI)
			continue;
		const struct kfd_node *to = node_of(nodes, text_key_int(s, "node_to"));
		bool first_partition = to && (to == nodes->items || !mo_streq(to[-1].bdf, to->bdf));
		n += to && first_partition && !mo_streq(to->bdf, own->bdf);
	}
	look_names_done(&names);
	return n;
}

static bool has_variable(const struct mo_buf *environment, const char *name) {
	size_t len = strlen(name);

	for (size_t at = 0; at + len < environment->len; at += strlen(environment->data + at) + 1)
		if (strncmp(environment->data + at, name, len) == 0 && environment->data[at + len] == '=')
			return true;
	return false;
}

/* Bytes that a process holds on the GPU's nodes, 0 = none. */
static int64_t held_bytes(struct look *l, const char *pid, const struct kfd_nodes *nodes, const char *bdf) {
	int64_t sum = 0;

	for (size_t i = 0; i < nodes->n; i++) {
		if (!mo_streq(nodes->items[i].bdf, bdf) || nodes->items[i].gpu_id == MO_NONE)
			continue;
		_cleanup_(mo_freep) char *path = mo_printf(PROCESSES "/%s/vram_%lld", pid, (long long)nodes->items[i].gpu_id);
		int64_t v = look_root_int(l, path);
		sum += v == MO_NONE ? 0 : v;
	}
	return sum;
}

/* Whether the process is one of ours: everything that we start carries MOE_STEP. One that has ended but is still in the kernel's list is nobody's. -1 = it may not be looked at. */
static int is_ours(struct look *l, const char *pid) {
	_cleanup_(mo_freep) char *path = mo_printf("proc/%s/environ", pid);
	_cleanup_(mo_buf_done) struct mo_buf environment = { 0 };
	int r = mo_read_file_at(l->top, path, ENVIRON_BYTES_MAX, &environment);

	l->files++;
	if (r == -EACCES || r == -EPERM)
		return -1;
	return r == 0 && has_variable(&environment, "MOE_STEP");
}

static void look_processes(struct look *l, const struct kfd_nodes *nodes, const char *bdf) {
	_cleanup_(mo_buf_done) struct mo_buf shown = { 0 };
	int64_t foreign = 0, hidden = 0, bytes = 0;

	if (faccessat(l->top, PROCESSES, F_OK, 0) < 0)
		return;
	struct look_names pids = look_list(l, true, PROCESSES);

	for (size_t i = 0; i < pids.n; i++) {
		const char *pid = pids.items[i];
		int64_t held = isdigit((unsigned char)*pid) ? held_bytes(l, pid, nodes, bdf) : 0;
		int ours = held ? is_ours(l, pid) : 1;
		hidden += ours < 0;
		if (ours)
			continue;
		_cleanup_(mo_freep) char *path = mo_printf("proc/%s/comm", pid);
		const char *s = look_root(l, path);
		_cleanup_(mo_freep) char *comm = s ? text_line(s) : NULL;
		if (foreign++ < FOREIGN_SHOWN)
			mo_buf_printf(&shown, "%s%s %s", shown.len ? ", " : "", pid, comm ? comm : "(ended)");
		bytes += held;
	}
	if (hidden)
		probe_problem(l->probe, "environ of %lld processes that hold the GPU: Permission denied", (long long)hidden);
	look_names_done(&pids);
	if (hidden)
		return;
	reading_add_int(l->probe, "foreign_pids", foreign);
	reading_add_int(l->probe, "foreign_vram_bytes", bytes);
	reading_add_text(l->probe, "foreign", shown.data);
}

void probe_kfd(struct look *l, const char *bdf) {
	struct kfd_nodes nodes = read_nodes(l);

	for (size_t i = 0; i < nodes.n; i++) {
		if (!mo_streq(nodes.items[i].bdf, bdf))
			continue;
		reading_add_int(l->probe, "xgmi_links", count_links(l, &nodes, &nodes.items[i]));
		look_processes(l, &nodes, bdf);
		break;
	}
	free(nodes.items);
}
