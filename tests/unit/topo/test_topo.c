/* Discovery on root directories made here, on XML exported here, and on the fixtures beside the
 * checkout when they are there. */
#include <errno.h>
#include <hwloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/base/fd.h"
#include "lib/topo/topo.h"

struct bed {
	char dir[64];
	struct nodeinfo info;
	struct mo_error err;
};

static int setup(void **state)
{
	struct bed *b = mo_alloc(sizeof(*b));

	snprintf(b->dir, sizeof(b->dir), "/tmp/moe-topo-XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	mo_desc_init(&nodeinfo_desc, &b->info);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	mo_rm_rf(b->dir);
	mo_desc_done(&nodeinfo_desc, &b->info);
	mo_error_done(&b->err);
	free(b);
	return 0;
}

static void put(struct bed *b, const char *path, const char *fmt, ...) _printf_(3, 4);
static void put(struct bed *b, const char *path, const char *fmt, ...)
{
	_cleanup_(mo_freep) char *full = mo_path(b->dir, "%s", path), *dir = mo_strdup(full);
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*strrchr(dir, '/') = 0;
	assert_int_equal(mo_mkdir_p(dir, 0755, false), 0);
	assert_int_equal(mo_write_file(full, text, strlen(text), 0644, false), 0);
}

static void symbolic(struct bed *b, const char *path, const char *target)
{
	_cleanup_(mo_freep) char *full = mo_path(b->dir, "%s", path), *dir = mo_strdup(full);

	*strrchr(dir, '/') = 0;
	assert_int_equal(mo_mkdir_p(dir, 0755, false), 0);
	assert_int_equal(symlink(target, full), 0);
}

/* Two NUMA nodes of four cpus (two cores with two threads each). */
static void add_cpus(struct bed *b)
{
	put(b, "sys/devices/system/cpu/online", "0-7\n");
	put(b, "sys/devices/system/cpu/possible", "0-7\n");
	put(b, "sys/devices/system/node/online", "0-1\n");
	put(b, "sys/devices/system/node/possible", "0-1\n");
	put(b, "proc/cpuinfo", "processor\t: 0\n");
	for (int i = 0; i < 8; i++) {
		char path[128];
		int core = i / 2;
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/topology/core_id", i);
		put(b, path, "%d\n", core);
		snprintf(path, sizeof(path),
			 "sys/devices/system/cpu/cpu%d/topology/physical_package_id", i);
		put(b, path, "%d\n", i / 4);
		snprintf(path, sizeof(path),
			 "sys/devices/system/cpu/cpu%d/topology/thread_siblings", i);
		put(b, path, "%02x\n", 3 << (core * 2));
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/topology/core_cpus", i);
		put(b, path, "%02x\n", 3 << (core * 2));
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/topology/core_siblings",
			 i);
		put(b, path, "%02x\n", 15 << (i / 4 * 4));
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/topology/package_cpus",
			 i);
		put(b, path, "%02x\n", 15 << (i / 4 * 4));
	}
	for (int i = 0; i < 2; i++) {
		char path[128];
		snprintf(path, sizeof(path), "sys/devices/system/node/node%d/cpumap", i);
		put(b, path, "%02x\n", 15 << (i * 4));
		snprintf(path, sizeof(path), "sys/devices/system/node/node%d/cpulist", i);
		put(b, path, "%d-%d\n", i * 4, i * 4 + 3);
		snprintf(path, sizeof(path), "sys/devices/system/node/node%d/meminfo", i);
		put(b, path, "Node %d MemTotal:       1048576 kB\n", i);
		snprintf(path, sizeof(path), "sys/devices/system/node/node%d/distance", i);
		put(b, path, i ? "21 10\n" : "10 21\n");
	}
}

/* A PCI device below a switch: bus numbers are `at` (root port), at + 1 (bridge), then the device's
 * own. */
static void add_pci(struct bed *b, int at, const char *bdf, const char *numa, const char *cpulist)
{
	char path[256], target[256];

	snprintf(path, sizeof(path),
		 "sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s/numa_node", at, at,
		 at + 1, bdf);
	put(b, path, "%s\n", numa);
	snprintf(path, sizeof(path),
		 "sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s/local_cpulist", at, at,
		 at + 1, bdf);
	put(b, path, "%s\n", cpulist);
	snprintf(path, sizeof(path), "sys/bus/pci/devices/%s", bdf);
	snprintf(target, sizeof(target),
		 "../../../devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s", at, at, at + 1,
		 bdf);
	symbolic(b, path, target);
}

static void add_nic(struct bed *b, int at, const char *bdf, const char *name, const char *numa)
{
	char path[256], target[256];

	add_pci(b, at, bdf, numa, "0-7");
	snprintf(path, sizeof(path),
		 "sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s/infiniband/%s/"
		 "node_type",
		 at, at, at + 1, bdf, name);
	put(b, path, "1: CA\n");
	snprintf(path, sizeof(path),
		 "sys/devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s/infiniband/%s/device",
		 at, at, at + 1, bdf, name);
	symbolic(b, path, "../..");
	snprintf(path, sizeof(path), "sys/class/infiniband/%s", name);
	snprintf(target, sizeof(target),
		 "../../devices/pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/%s/infiniband/%s", at,
		 at, at + 1, bdf, name);
	symbolic(b, path, target);
}

static void add_kfd_cpu(struct bed *b, int node)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
	put(b, path, "0\n");
	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/properties", node);
	put(b, path, "cpu_cores_count 4\nsimd_count 0\n");
}

static void add_kfd_gpu(struct bed *b, int node, int location, const char *unique_id, int nearest)
{
	char path[128];

	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
	put(b, path, "%d\n", 1000 + node);
	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/properties", node);
	put(b, path,
	    "cpu_cores_count 0\nsimd_count 1216\ndevice_id 29857\nlocation_id %d\ndomain "
	    "0\ndrm_render_minor %d\nunique_id %s\n",
	    location, 126 + node, unique_id);
	snprintf(path, sizeof(path), "sys/class/kfd/kfd/topology/nodes/%d/mem_banks/0/properties",
		 node);
	put(b, path, "heap_type 1\nsize_in_bytes 206141652992\n");
	for (int to = 0; to < 2; to++) {
		snprintf(path, sizeof(path),
			 "sys/class/kfd/kfd/topology/nodes/%d/io_links/%d/properties", node, to);
		put(b, path, "type 2\nnode_from %d\nnode_to %d\nweight %d\n", node, to,
		    to == nearest ? 20 : 52);
	}
}

static int look(struct bed *b, struct topo_options o)
{
	if (!o.root && !o.xml)
		o.root = b->dir;
	mo_error_done(&b->err);
	return topo_discover(&o, &b->info, &b->err);
}

static void test_cpus(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 4 }), 0);
	assert_true(b->info.simulated);
	assert_int_equal(b->info.cpus, 8);
	assert_int_equal(b->info.n_numa, 2);
	assert_string_equal(b->info.numa[1].cpus, "4-7");
	assert_string_equal(b->info.numa[1].cores, "4-5;6-7");
	assert_string_equal(b->info.numa[0].distances, "10 21");
	assert_int_equal(b->info.numa[0].mem_bytes, 1 << 30);
	assert_int_equal(b->info.n_gpus, 4);
	assert_string_equal(b->info.gpus[0].vendor, "fake");
	assert_int_equal(b->info.gpus[1].numa_node, 0);
	assert_int_equal(b->info.gpus[2].numa_node, 1);
	assert_int_equal(b->info.gpus[3].index, 3);
}

static void test_clipping(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	put(b, "sys/fs/cgroup/cpuset.cpus.effective", "1-6\n");
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 2 }), 0);
	assert_string_equal(b->info.numa[0].cores, "1;2-3");
	assert_int_equal(b->info.cpus, 6);
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 2, .cpus = "0,5-7" }), 0);
	assert_int_equal(b->info.cpus, 2);
	assert_string_equal(b->info.numa[0].cpus, "");
	assert_string_equal(b->info.numa[1].cpus, "5-6");
	/* a node without usable cpus gets no slot */
	assert_int_equal(b->info.gpus[0].numa_node, 1);
	assert_int_equal(look(b, (struct topo_options){ .cpus = "7" }), -EINVAL);
	assert_non_null(strstr(b->err.text, "'7'"));
	assert_int_equal(look(b, (struct topo_options){ .cpus = "a" }), -EINVAL);
	put(b, "sys/fs/cgroup/cpuset.cpus.effective", "1-x\n");
	assert_int_equal(look(b, (struct topo_options){ 0 }), -EINVAL);
	assert_int_equal(b->info.cpus, 2); /* untouched on failure */
}

static void test_amd(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	add_kfd_cpu(b, 0);
	add_kfd_cpu(b, 1);
	add_kfd_gpu(b, 2, 0x3 << 8, "17847028647664215990", 0);
	add_kfd_gpu(b, 3, 0x13 << 8, "6575147083618228034", 1);
	add_kfd_gpu(b, 10, 0x23 << 8, "7", 1); /* after 3, not after 1 */
	add_pci(b, 0x01, "0000:03:00.0", "1", "4-7");
	add_pci(b, 0x11, "0000:13:00.0", "-1", "0-1"); /* only the list says it */
	/* only the link weight says it */
	add_pci(b, 0x21, "0000:23:00.0", "-1", "0-7");
	add_nic(b, 0x11, "0000:14:00.0", "mlx5_0", "0");
	add_nic(b, 0x01, "0000:04:00.0", "mlx5_1", "1");
	put(b, "sys/module/amdgpu/version", "6.16.13\n");
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 2 }), 0);
	assert_int_equal(b->info.n_gpus, 3);
	assert_string_equal(b->info.driver, "amdgpu 6.16.13");
	const struct gpu_slot *g = b->info.gpus;
	assert_string_equal(g[0].vendor, "amd");
	assert_string_equal(g[0].model, "mi300x");
	assert_string_equal(g[0].bdf, "0000:03:00.0");
	assert_string_equal(g[0].unique_id, "f7ad61ff583ee7b6");
	assert_true(g[0].vram_bytes == 206141652992);
	assert_int_equal(g[0].numa_node, 1);
	assert_int_equal(g[1].numa_node, 0);
	assert_int_equal(g[2].numa_node, 1);
	assert_string_equal(g[0].nic, "mlx5_1");
	assert_string_equal(g[1].nic, "mlx5_0");
	/* no common switch: of the same NUMA node */
	assert_string_equal(g[2].nic, "mlx5_1");
	assert_int_equal(look(b, (struct topo_options){ .gpus = "1-5" }), 0);
	assert_int_equal(b->info.n_gpus, 2);
	/* slots keep their numbers */
	assert_int_equal(b->info.gpus[0].index, 1);
	assert_int_equal(look(b, (struct topo_options){ .gpus = "?" }), -EINVAL);
	assert_int_equal(look(b, (struct topo_options){ .only_fake = true, .fake_gpus = 1 }), 0);
	assert_string_equal(b->info.gpus[0].vendor, "fake");
}

/* What is left out is not opened: a FIFO there would hold the test. */
static void test_left_out(void **state)
{
	struct bed *b = *state;
	static char gpu[] = "/sys/bus/pci/devices/0000:03:00.0",
		    node[] = "/sys/class/kfd/kfd/topology/nodes/3",
		    nic[] = "/sys/class/infiniband/mlx5_1";
	char *out[] = { gpu, node, nic }, at[256] = "";
	_cleanup_(mo_freep) char *numa = mo_path(b->dir, "%s/numa_node", gpu),
				 *props = mo_path(b->dir, "%s/properties", node),
				 *fw = mo_path(b->dir, "%s/fw_ver", nic);

	add_cpus(b);
	add_kfd_cpu(b, 0);
	add_kfd_cpu(b, 1);
	add_kfd_gpu(b, 2, 0x3 << 8, "17847028647664215990", 0);
	add_kfd_gpu(b, 3, 0x13 << 8, "6575147083618228034", 1);
	add_pci(b, 0x01, "0000:03:00.0", "1", "4-7");
	add_pci(b, 0x11, "0000:13:00.0", "0", "0-3");
	add_nic(b, 0x01, "0000:04:00.0", "mlx5_1", "1");
	assert_int_equal(unlink(numa) | unlink(props), 0);
	assert_int_equal(mkfifo(numa, 0600) | mkfifo(props, 0600) | mkfifo(fw, 0600), 0);
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 2,
							.leave_out = out,
							.n_leave_out = 3,
							.at = at,
							.at_bytes = sizeof(at) }),
			 0);
	assert_int_equal(b->info.n_gpus, 1);
	assert_string_equal(b->info.gpus[0].bdf, "0000:03:00.0");
	assert_int_equal(b->info.gpus[0].numa_node, 0); /* by its links */
	assert_string_equal(b->info.gpus[0].nic, "mlx5_1");
	/* whoever left it out says so; and the other GPU is not called lost */
	for (size_t i = 0; i < b->info.n_findings; i++)
		assert_string_not_equal(b->info.findings[i].object, "0000:13:00.0");
	assert_true(mo_starts_with(at, "/sys/"));
	assert_true(b->info.nics[0].fw == NULL && b->info.nics[0].numa_node == MO_NONE);
	/* without the only GPU that is seen: no fake ones in its place */
	out[0] = (char *)"/sys/class/kfd/kfd/topology/nodes/2";
	assert_int_equal(look(b, (struct topo_options){ .fake_gpus = 2,
							.leave_out = out,
							.n_leave_out = 3 }),
			 0);
	assert_int_equal(b->info.n_gpus, 0);
}

static void test_partitions_share_one_device(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	add_kfd_cpu(b, 0);
	for (int i = 0; i < 4; i++)
		add_kfd_gpu(b, 2 + i, 0x300 + i, "99", 0);
	add_pci(b, 0x01, "0000:03:00.0", "1", "4-7");
	assert_int_equal(look(b, (struct topo_options){ 0 }), 0);
	assert_int_equal(b->info.n_gpus, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(b->info.gpus[i].bdf, "0000:03:00.0");
		assert_int_equal(b->info.gpus[i].numa_node, 1);
	}
}

static void test_two_gpus_one_switch_take_two_nics(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	add_kfd_cpu(b, 0);
	add_kfd_gpu(b, 2, 0x3 << 8, "1", 0);
	add_kfd_gpu(b, 3, 0x5 << 8, "2", 0);
	add_pci(b, 0x01, "0000:03:00.0", "0", "0-3");
	add_pci(b, 0x01, "0000:05:00.0", "0", "0-3");
	add_nic(b, 0x01, "0000:04:00.0", "ionic_0", "0");
	add_nic(b, 0x01, "0000:06:00.0", "ionic_1", "0");
	add_nic(b, 0x11, "0000:14:00.0", "ionic_2", "0");
	assert_int_equal(look(b, (struct topo_options){ 0 }), 0);
	assert_string_equal(b->info.gpus[0].nic, "ionic_0");
	assert_string_equal(b->info.gpus[1].nic, "ionic_1");
}

static void test_nvidia(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	add_pci(b, 0x01, "0000:03:00.0", "0", "0-3");
	put(b, "proc/driver/nvidia/gpus/0000:03:00.0/information",
	    "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t GPU-1234\nBus Location: \t "
	    "0000:03:00.0\nDevice Minor: \t 0\nGPU Excluded:\t No\n");
	put(b, "proc/driver/nvidia/gpus/0000:02:00.0/information",
	    "Model: NVIDIA A100-SXM4-80GB\nGPU UUID: GPU-2\nDevice Minor: 1\n");
	put(b, "proc/driver/nvidia/gpus/0000:04:00.0/information",
	    "Model: NVIDIA H200\nGPU Excluded: Yes\nDevice Minor: 2\n");
	put(b, "proc/driver/nvidia/gpus/0000:05:00.0/other", "x");
	put(b, "sys/module/nvidia/version", "580.159.04\n");
	assert_int_equal(look(b, (struct topo_options){ 0 }), 0);
	assert_int_equal(b->info.n_gpus, 2);
	assert_string_equal(b->info.gpus[0].model, "a100");
	assert_true(b->info.gpus[0].numa_node == MO_NONE);
	assert_string_equal(b->info.gpus[1].model, "h200");
	assert_string_equal(b->info.gpus[1].unique_id, "GPU-1234");
	assert_int_equal(b->info.gpus[1].numa_node, 0);
	assert_string_equal(b->info.driver, "nvidia 580.159.04");
}

static void test_damaged_files(void **state)
{
	struct bed *b = *state;

	add_cpus(b);
	add_kfd_cpu(b, 0);
	/* no properties at all: ignored */
	put(b, "sys/class/kfd/kfd/topology/nodes/2/gpu_id", "5\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/3/gpu_id", "6\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/3/properties",
	    "location_id 768\nunique_id x\ndevice_id\n\n\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/4/gpu_id", "7\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/4/properties",
	    "location_id 99999999999999999999\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/3/mem_banks/0/properties",
	    "heap_type 1\nsize_in_bytes -5\n");
	put(b, "sys/class/kfd/kfd/topology/nodes/junk/properties", "x");
	assert_int_equal(look(b, (struct topo_options){ 0 }), 0);
	assert_int_equal(b->info.n_gpus, 1);
	assert_string_equal(b->info.gpus[0].model, "amd-0000");
	assert_null(b->info.gpus[0].unique_id);
	assert_true(b->info.gpus[0].vram_bytes == MO_NONE && b->info.gpus[0].numa_node == MO_NONE);
}

static void test_bad_options(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_freep) char *absent = mo_path(b->dir, "absent");

	assert_int_equal(look(b, (struct topo_options){ .root = absent }), -ENOENT);
	assert_int_equal(look(b, (struct topo_options){ .xml = absent }), -ENOENT);
	assert_int_equal(look(b, (struct topo_options){ .xml = "/dev/null" }), -EINVAL);
	put(b, "bad.xml", "<topology><object type=\"Machine\"");
	_cleanup_(mo_freep) char *path = mo_path(b->dir, "bad.xml");
	assert_int_equal(look(b, (struct topo_options){ .xml = path }), -EINVAL);
	assert_non_null(strstr(b->err.text, "bad.xml"));
	assert_int_equal(look(b, (struct topo_options){ .root = "", .fake_gpus = 257 }), -ERANGE);
}

static void test_xml(void **state)
{
	struct bed *b = *state;
	_cleanup_(mo_freep) char *path = mo_path(b->dir, "t.xml");
	hwloc_topology_t t;

	assert_int_equal(hwloc_topology_init(&t), 0);
	assert_int_equal(hwloc_topology_set_synthetic(t, "pack:2 [numa(memory=1073741824)] l3:2 "
							 "core:2 pu:2"),
			 0);
	assert_int_equal(hwloc_topology_load(t), 0);
	assert_int_equal(hwloc_topology_export_xml(t, path, 0), 0);
	hwloc_topology_destroy(t);
	assert_int_equal(look(b, (struct topo_options){ .xml = path, .fake_gpus = 2 }), 0);
	assert_true(b->info.simulated);
	assert_int_equal(b->info.cpus, 16);
	assert_string_equal(b->info.numa[1].l3, "8-11;12-15");
	assert_string_equal(b->info.numa[0].cores, "0-1;2-3;4-5;6-7");
}

static void test_this_machine(void **state)
{
	struct bed *b = *state;

	assert_int_equal(look(b, (struct topo_options){ .root = "", .fake_gpus = 1 }), 0);
	assert_false(b->info.simulated);
	assert_true(b->info.cpus >= 1 && b->info.n_numa >= 1 && b->info.n_gpus >= 1);
	assert_null(getenv("HWLOC_FSROOT"));
}

/* GPU order is not NUMA order there. */
static void test_published_fixture(void **state)
{
	struct bed *b = *state;
	static const char path[] = "../shared/data/hardware/synthetic/hwloc/8x-mi355x-nps2.xml",
			  tioga[] = "../shared/data/hardware/hwloc-real/tioga-1x7A53-8xMI250X.xml";
	static const int64_t want[] = { 1, 1, 0, 0, 3, 3, 2, 2 },
			     real[] = { 3, 3, 1, 1, 0, 0, 2, 2 };

	if (access(path, R_OK) < 0)
		return;
	assert_int_equal(look(b, (struct topo_options){ .xml = path }), 0);
	assert_int_equal(b->info.n_gpus, 8);
	for (size_t i = 0; i < 8; i++) {
		_cleanup_(mo_freep) char *nic = mo_printf("ionic_%zu", i);
		assert_string_equal(b->info.gpus[i].model, "mi355x");
		assert_string_equal(b->info.gpus[i].nic, nic);
		assert_int_equal(b->info.gpus[i].numa_node, want[i]);
		assert_true(b->info.gpus[i].vram_bytes == 309220868096);
	}
	assert_int_equal(look(b, (struct topo_options){ .xml = tioga }), 0);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(b->info.gpus[i].numa_node, real[i]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_cpus),
		T(test_clipping),
		T(test_amd),
		T(test_left_out),
		T(test_partitions_share_one_device),
		T(test_two_gpus_one_switch_take_two_nics),
		T(test_nvidia),
		T(test_damaged_files),
		T(test_bad_options),
		T(test_xml),
		T(test_this_machine),
		T(test_published_fixture),
	};
	return cmocka_run_group_tests_name("topo", tests, NULL, NULL);
}
