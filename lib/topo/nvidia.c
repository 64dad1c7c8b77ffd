/* NVIDIA GPUs below a root directory through /proc/driver/nvidia and sysfs, without the vendor's
 * library. Memory sizes are in neither and stay unknown. In the order of bus addresses, which is
 * CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID and, on nodes of equal GPUs, its default. Format:
 * measured (hardware facts 1.8). */
#include "lib/topo/nvidia.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/topo/amd.h"
#include "lib/topo/files.h"
#include "lib/topo/pci.h"

static void add_gpu(struct finds *f, const char *dir, const char *bdf)
{
	_cleanup_(mo_freep) char *info = mo_path(dir, "%s/information", bdf),
				 *device = mo_printf("%s/sys/bus/pci/devices/%s", f->root, bdf),
				 *id = mo_path(device, "device");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = read_text(f, info, &b);

	f->blind |= r == -ECANCELED;
	if (r == -ECANCELED)
		return;
	if (r < 0 || !b.data) {
		finds_odd(f, bdf,
			  "/proc/driver/nvidia/gpus/%s/information: %s: the GPU is left out", bdf,
			  r < 0 ? strerror(-r) : "empty");
		return;
	}
	_cleanup_(mo_freep) char *minor = props_value(b.data, "Device Minor"),
				 *excluded = props_value(b.data, "GPU Excluded"),
				 *model = props_value(b.data, "Model");
	_cleanup_(mo_freep) char *node = mo_printf("/dev/nvidia%s", minor ? minor : "");
	if (mo_streq(excluded, "Yes"))
		return;
	if (minor && !device_opens(f, bdf, node))
		return;
	struct found_gpu *g = finds_add_gpu(f);
	g->slot.vendor = mo_strdup("nvidia");
	g->slot.model = gpu_model_name(0x10de, MO_MAX(file_hex(f, id), 0), model);
	g->slot.bdf = mo_strdup(bdf);
	g->slot.unique_id = props_value(b.data, "GPU UUID");
	g->slot.numa_node = pci_numa(f, bdf, device);
	g->path = pci_path(device);
	if (!g->path)
		finds_odd(f, bdf, "it has no PCI directory: NIC and NUMA node are unknown");
}

void find_nvidia(struct finds *f)
{
	_cleanup_(mo_freep) char *dir = mo_printf("%s/proc/driver/nvidia/gpus", f->root);
	size_t n;
	char **names = dir_names(dir, &n);

	for (size_t i = 0; i < n; i++)
		add_gpu(f, dir, names[i]);
	names_free(names, n);
	if (f->n_gpus) {
		_cleanup_(mo_freep) char *path = mo_printf("%s/sys/module/nvidia/version", f->root);
		_cleanup_(mo_freep) char *version = file_line(f, path, NULL);
		f->driver = version ? mo_printf("nvidia %s", version) : mo_strdup("nvidia");
	}
	find_lost(f, 0x10de,
		  "an NVIDIA GPU that the nvidia driver does not report: no job can use it; check "
		  "that the driver is loaded");
}
