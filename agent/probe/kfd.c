/* What the kernel's compute driver (KFD) knows of an AMD GPU: its XGMI links, and the processes
 * that hold its memory. Formats: hardware facts 1.1; amdkfd's kfd_process.c. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_pass.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define NODES "sys/class/kfd/kfd/topology/nodes"
#define PROCESSES "sys/class/kfd/kfd/proc"
#define LINK_XGMI 11
/* PROC_PID_INIT_INO of the kernel */
#define HOST_PIDS "pid:[4026531836]"
#define ENVIRON_BYTES_MAX (2 * 1024 * 1024)
#define FOREIGN_SHOWN 8
#define COMM_BYTES_MAX 64
#define STATUS_BYTES_MAX 65536

/* bdf "": its properties cannot be understood; it may be a GPU */
struct kfd_node {
	int64_t node;
	char bdf[16];
};
struct kfd_nodes {
	struct kfd_node *items;
	size_t n, unknown;
	bool partitions;
};

/* All GPU nodes. The low bits of location_id are the partition, not a function of PCI:
 * partitions of one GPU are one address. */
static struct kfd_nodes read_nodes(struct probe_pass *l)
{
	struct kfd_nodes nodes = { 0 };
	struct pass_names names = pass_list(l, true, NODES);

	for (size_t i = 0; i < names.n; i++) {
		int64_t number, problems = l->problems;
		_cleanup_(mo_freep) char *properties =
			mo_printf("%s/%s/properties", NODES, names.items[i]);
		const char *s = pass_root(l, properties);
		int64_t simds = s ? pass_key(l, properties, s, "simd_count") : MO_NONE,
			location = simds > 0 ? pass_key(l, properties, s, "location_id") : MO_NONE;
		bool unknown = l->problems > problems;
		if (mo_parse_i64(names.items[i], 0, INT32_MAX, &number) < 0 ||
		    (!unknown && simds <= 0))
			continue;
		struct kfd_node *n = MO_GROW(nodes.items, nodes.n);
		*n = (struct kfd_node){ .node = number };
		nodes.unknown += unknown;
		if (unknown)
			continue;
		int64_t domain = text_key_int(s, "domain");
		snprintf(n->bdf, sizeof(n->bdf), "%04x:%02x:%02x.0",
			 domain == MO_NONE ? 0 : (unsigned)domain & 0xffff,
			 (unsigned)(location >> 8) & 0xff, (unsigned)(location >> 3) & 0x1f);
		nodes.partitions |= nodes.n > 1 && mo_streq(n[-1].bdf, n->bdf);
	}
	pass_names_done(&names);
	return nodes;
}

static const struct kfd_node *node_of(const struct kfd_nodes *nodes, int64_t number)
{
	for (size_t i = 0; i < nodes->n; i++)
		if (nodes->items[i].node == number)
			return &nodes->items[i];
	return NULL;
}

/* Other GPUs that this one reaches over XGMI. A node that cannot be understood but has such a
 * link is a GPU; which one matters only where GPUs are partitioned. */
static int64_t count_links(struct probe_pass *l, const struct kfd_nodes *nodes,
			   const struct kfd_node *own)
{
	_cleanup_(mo_freep) char *path = mo_printf("%s/%lld/io_links", NODES, (long long)own->node);
	struct pass_names names = pass_list(l, true, path);
	int64_t n = names.n ? 0 : MO_NONE, problems = l->problems;
	bool unknown = false;

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *file =
			mo_printf("%s/%s/properties", path, names.items[i]);
		const char *s = pass_root(l, file);
		if (!s || pass_key(l, file, s, "type") != LINK_XGMI)
			continue;
		const struct kfd_node *to = node_of(nodes, pass_key(l, file, s, "node_to"));
		bool first_partition =
			to && (to == nodes->items || !*to->bdf || !mo_streq(to[-1].bdf, to->bdf));
		n += first_partition && !mo_streq(to->bdf, own->bdf);
		unknown |= to && !*to->bdf && nodes->partitions;
	}
	pass_names_done(&names);
	if (unknown) {
		l->problems++;
		probe_problem(l->probe,
			      "%s: a GPU that it names cannot be understood (see moe-probe host)",
			      path);
	}
	return l->problems > problems ? MO_NONE : n;
}

static bool has_variable(const struct mo_buf *environment, const char *name)
{
	size_t len = strlen(name);

	for (size_t at = 0; at + len < environment->len; at += strlen(environment->data + at) + 1)
		if (strncmp(environment->data + at, name, len) == 0 &&
		    environment->data[at + len] == '=')
			return true;
	return false;
}

/* What the driver calls the GPU's nodes; caller frees. */
static int64_t *gpu_ids(struct probe_pass *l, const struct kfd_nodes *nodes, const char *bdf,
			size_t *ret_n)
{
	int64_t *ids = mo_alloc_array(nodes->n + 1, sizeof(*ids));

	*ret_n = 0;
	for (size_t i = 0; i < nodes->n; i++) {
		_cleanup_(mo_freep) char *path =
			mo_streq(nodes->items[i].bdf, bdf)
				? mo_printf("%s/%lld/gpu_id", NODES,
					    (long long)nodes->items[i].node)
				: NULL;
		int64_t id = path ? pass_root_int(l, path) : MO_NONE;

		if (id != MO_NONE)
			ids[(*ret_n)++] = id;
	}
	return ids;
}

/* Bytes that a process holds on the GPU's nodes, 0 = none. */
static int64_t held_bytes(struct probe_pass *l, const char *pid, const int64_t *ids, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		_cleanup_(mo_freep) char *path =
			mo_printf(PROCESSES "/%s/vram_%lld", pid, (long long)ids[i]);
		int64_t v = pass_root_int(l, path);
		sum += v == MO_NONE ? 0 : MO_MIN(v, INT64_MAX / 4096);
	}
	return sum;
}

static bool has_queue(struct probe_pass *l, const char *pid, const int64_t *ids, size_t n)
{
	_cleanup_(mo_freep) char *top = mo_printf(PROCESSES "/%s/queues", pid);
	bool has = false;

	if (faccessat(l->top, top, F_OK, 0) < 0)
		return false;
	struct pass_names queues = pass_list(l, true, top);
	for (size_t i = 0; !has && i < queues.n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/%s/gpuid", top, queues.items[i]);
		int64_t id = pass_root_int(l, path);

		for (size_t k = 0; k < n; k++)
			has |= id == ids[k];
	}
	pass_names_done(&queues);
	return has;
}

/* The driver names processes as the host does; whose own namespace is another one knows nobody by
 * these names, and to whom /proc hides what others run (hidepid) all these seem to have ended. */
static bool pids_are_the_drivers(const struct probe_pass *l)
{
	char space[64];
	ssize_t n = readlinkat(l->top, "proc/self/ns/pid", space, sizeof(space) - 1);

	if (n < 0)
		return errno == ENOENT; /* a made machine */
	space[n] = 0;
	return mo_streq(space, HOST_PIDS) && faccessat(l->top, "proc/1/status", F_OK, 0) == 0;
}

/* No such process any more, or one of which only the exit status is left: not one whose first
 * thread alone has ended. */
static bool has_ended(struct probe_pass *l, const char *pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("proc/%s/status", pid);

	mo_buf_reset(&l->text);
	int r = mo_read_file_at(l->top, path, STATUS_BYTES_MAX, &l->text);
	l->files++;
	if (r == -ENOENT || r == -ESRCH)
		return true;
	if (r < 0) {
		l->problems++;
		probe_problem(l->probe, "%s: %s", path, strerror(-r));
		return false;
	}
	if (l->text.len && strstr(l->text.data, "\nState:\t"))
		return strstr(l->text.data, "\nState:\tZ") &&
		       strstr(l->text.data, "\nThreads:\t1\n");
	pass_bad(l, path, "it has no State");
	return false;
}

/* What processes have left behind that ended: the memory or the queues of this GPU. Says nothing
 * where other processes' ids are not those of the driver. */
static void pass_ended(struct probe_pass *l, const struct pass_names *pids, const int64_t *ids,
		       size_t n_ids)
{
	_cleanup_(mo_buf_done) struct mo_buf shown = { 0 };
	int64_t n = 0, bytes = 0, problems = l->problems;

	for (size_t i = 0; i < pids->n; i++) {
		const char *pid = pids->items[i];

		if (!isdigit((unsigned char)*pid) || !has_ended(l, pid))
			continue;
		int64_t held = held_bytes(l, pid, ids, n_ids);
		if (!held && !has_queue(l, pid, ids, n_ids))
			continue;
		bytes += held;
		if (n++ < FOREIGN_SHOWN)
			mo_buf_printf(&shown, "%s%s", shown.len ? ", " : "", pid);
	}
	if (l->problems > problems)
		return;
	reading_add_int(l->probe, "ended_pids", n);
	if (n == 0)
		return;
	reading_add_text(l->probe, "ended_pids.pid", shown.data);
	reading_add_int(l->probe, "ended_pids.vram_bytes", bytes);
}

/* Whether the process is one of ours: everything that we start carries MOE_STEP. One that has
 * ended but is still in the kernel's list is nobody's. -1 = its state may not be read. */
static int is_ours(struct probe_pass *l, const char *pid)
{
	_cleanup_(mo_freep) char *path = mo_printf("proc/%s/environ", pid);
	_cleanup_(mo_buf_done) struct mo_buf environment = { 0 };
	int r = mo_read_file_at(l->top, path, ENVIRON_BYTES_MAX, &environment);

	l->files++;
	if (r == -EACCES || r == -EPERM)
		return -1;
	return r == 0 && has_variable(&environment, "MOE_STEP");
}

static void pass_processes(struct probe_pass *l, const struct kfd_nodes *nodes, const char *bdf)
{
	_cleanup_(mo_buf_done) struct mo_buf shown = { 0 };
	int64_t foreign = 0, hidden = 0, bytes = 0, problems = l->problems;

	if (faccessat(l->top, PROCESSES, F_OK, 0) < 0)
		return;
	struct pass_names pids = pass_list(l, true, PROCESSES);
	size_t n_ids;
	_cleanup_(mo_freep) int64_t *ids = gpu_ids(l, nodes, bdf, &n_ids);

	for (size_t i = 0; i < pids.n; i++) {
		const char *pid = pids.items[i];
		int64_t held = isdigit((unsigned char)*pid) ? held_bytes(l, pid, ids, n_ids) : 0;
		int ours = held ? is_ours(l, pid) : 1;
		hidden += ours < 0;
		if (ours)
			continue;
		_cleanup_(mo_freep) char *path = mo_printf("proc/%s/comm", pid);
		/* a process calls itself what it likes */
		_cleanup_(mo_buf_done) struct mo_buf name = { 0 };
		bool there = mo_read_file_at(l->top, path, COMM_BYTES_MAX, &name) == 0 && name.len;
		_cleanup_(mo_freep) char *comm =
			there ? text_clean(name.data, name.len - (name.data[name.len - 1] == '\n'),
					   COMM_BYTES_MAX)
			      : NULL;
		l->files++;
		if (foreign++ < FOREIGN_SHOWN)
			mo_buf_printf(&shown, "%s%s %s", shown.len ? ", " : "", pid,
				      comm ? comm : "(ended)");
		bytes += held;
	}
	if (hidden)
		probe_problem(l->probe,
			      "environ of %lld processes that hold the GPU: Permission denied",
			      (long long)hidden);
	bool whole = l->problems == problems;
	if (whole && !hidden) {
		reading_add_int(l->probe, "foreign_pids", foreign);
		reading_add_int(l->probe, "foreign_vram_bytes", bytes);
		reading_add_text(l->probe, "foreign", shown.data);
	}
	if (whole && pids_are_the_drivers(l))
		pass_ended(l, &pids, ids, n_ids);
	pass_names_done(&pids);
}

void probe_kfd(struct probe_pass *l, const char *bdf)
{
	/* of all GPUs: the host's probe names those that cannot be understood */
	l->others = true;
	struct kfd_nodes nodes = read_nodes(l);
	const struct kfd_node *own = NULL;

	l->others = false;
	for (size_t i = 0; i < nodes.n && !own; i++)
		own = mo_streq(nodes.items[i].bdf, bdf) ? &nodes.items[i] : NULL;
	if (own) {
		reading_add_int(l->probe, "xgmi_links", count_links(l, &nodes, own));
		pass_processes(l, &nodes, bdf);
	} else if (nodes.unknown) {
		l->problems++;
		probe_problem(l->probe,
			      NODES ": %zu cannot be understood, and this GPU is none of the "
				    "others (see moe-probe host)",
			      nodes.unknown);
	}
	free(nodes.items);
}
