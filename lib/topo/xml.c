/* GPUs and RDMA devices of an hwloc XML file: its PCI objects, and what the exporting machine's
 * plugins (rsmi, nvml) said of them. Called by topo.c. */
#include "lib/topo/xml.h"

#include <hwloc.h>
#include <string.h>

#include "lib/base/parse.h"
#include "lib/topo/nics.h"
#include "lib/topo/pci.h"

/* Object numbers of the I/O ancestors, from the host bridge down. */
static char *io_path(hwloc_obj_t obj)
{
	_cleanup_(mo_freep) char *above = obj->parent && hwloc_obj_type_is_io(obj->parent->type)
						  ? io_path(obj->parent)
						  : NULL;

	return above ? mo_printf("%s/%llu", above, (unsigned long long)obj->gp_index)
		     : mo_printf("%llu", (unsigned long long)obj->gp_index);
}

static int64_t numa_of(hwloc_topology_t t, hwloc_obj_t obj)
{
	hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(t, obj);
	int node = place ? hwloc_bitmap_first(place->nodeset) : -1;

	return node >= 0 && hwloc_bitmap_weight(place->nodeset) == 1 ? node : MO_NONE;
}

/* As the driver numbers them where the file says it (rsmi of every GPU), else by bus address.
 * hwloc lists devices by place. */
static int by_number(const void *a, const void *b)
{
	const struct found_gpu *x = a, *y = b;

	if (x->slot.index != y->slot.index)
		return x->slot.index < y->slot.index ? -1 : 1;
	return strcmp(x->slot.bdf, y->slot.bdf);
}

static const char *name_of_state(const char *number)
{
	static const char *const names[] = { "NOP",   "DOWN",   "INIT",
					     "ARMED", "ACTIVE", "ACTIVE_DEFER" };
	int64_t n;

	return number && mo_parse_i64(number, 0, ELEMENTSOF(names) - 1, &n) == 0 ? names[n] : NULL;
}

/* hwloc keeps the state of ports and their addresses, but neither rates nor the kinds of
 * addresses. */
static void describe_nic(hwloc_obj_t obj, struct nic_info *nic)
{
	hwloc_obj_t pci = obj->parent;

	if (pci->type != HWLOC_OBJ_PCI_DEVICE)
		return;
	nic->bdf = mo_printf("%04x:%02x:%02x.%x", pci->attr->pcidev.domain, pci->attr->pcidev.bus,
			     pci->attr->pcidev.dev, pci->attr->pcidev.func);
	nic->family = mo_strdup(nic_family(pci->attr->pcidev.vendor_id, "", nic->name));
	nic->link_layer = pci->attr->pcidev.class_id == 0x0207 ? mo_strdup("InfiniBand") : NULL;
	for (hwloc_obj_t os = pci->io_first_child; os && !nic->netdev; os = os->next_sibling)
		if (os->type == HWLOC_OBJ_OS_DEVICE &&
		    os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
			nic->netdev = mo_strdup(os->name);
	for (int64_t port = 1; port <= 8; port++) {
		_cleanup_(mo_freep) char *key = mo_printf("Port%lldState", (long long)port);
		const char *state = name_of_state(hwloc_obj_get_info_by_name(obj, key));
		if (state && (!nic->state ||
			      (mo_streq(state, "ACTIVE") && !mo_streq(nic->state, "ACTIVE")))) {
			mo_str_set(&nic->state, state);
			nic->port = port;
		}
	}
}

/* What plugins of the exporting machine said of a GPU. Returns its number at the driver; MO_NONE
 * unknown. */
static int64_t describe_gpu(hwloc_obj_t pci, bool amd, struct gpu_slot *slot)
{
	int64_t number = MO_NONE, n;

	for (hwloc_obj_t os = pci->io_first_child; os; os = os->next_sibling) {
		const char *kib = hwloc_obj_get_info_by_name(os, "RSMIVRAMSize"),
			   *hive = hwloc_obj_get_info_by_name(os, "XGMIHiveID");
		const char *id = hwloc_obj_get_info_by_name(os, amd ? "AMDUUID" : "NVIDIAUUID");
		if (id)
			mo_str_set(&slot->unique_id, id);
		if (hive && strspn(hive, "0") != strlen(hive))
			mo_str_set(&slot->hive, hive);
		if (kib && mo_parse_i64(kib, 1, INT64_MAX / 1024, &n) == 0)
			slot->vram_bytes = n * 1024;
		if (os->name && mo_starts_with(os->name, "rsmi") &&
		    mo_parse_i64(os->name + strlen("rsmi"), 0, INT32_MAX, &n) == 0)
			number = n;
	}
	return number;
}

/* GPUs and RDMA devices of an XML file: PCI objects by vendor and class (never the display
 * adapter of a BMC). */
void find_in_xml(hwloc_topology_t t, struct finds *f)
{
	bool numbered = true;

	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_pcidev(t, obj));) {
		const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
		bool amd = pci->vendor_id == 0x1002;
		if (!gpu_class(pci->vendor_id, pci->class_id))
			continue;
		struct found_gpu *g = finds_add_gpu(f);
		g->slot.vendor = mo_strdup(amd ? "amd" : "nvidia");
		g->slot.model = gpu_model_name(pci->vendor_id, pci->device_id, NULL);
		g->slot.bdf =
			mo_printf("%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
		g->slot.numa_node = numa_of(t, obj);
		g->path = io_path(obj);
		g->slot.index = describe_gpu(obj, amd, &g->slot);
		numbered &= g->slot.index != MO_NONE;
	}
	for (size_t i = 0; i < f->n_gpus && !numbered; i++)
		f->gpus[i].slot.index = 0;
	if (f->gpus)
		qsort(f->gpus, f->n_gpus, sizeof(*f->gpus), by_number);
	for (size_t i = 0; i < f->n_gpus; i++)
		f->gpus[i].slot.index = (int64_t)i;
	for (hwloc_obj_t obj = NULL; (obj = hwloc_get_next_osdev(t, obj));) {
		if (obj->attr->osdev.type != HWLOC_OBJ_OSDEV_OPENFABRICS || !obj->parent)
			continue;
		struct found_nic *nic = finds_add_nic(f);
		nic->nic.name = mo_strdup(obj->name);
		nic->path = io_path(obj->parent);
		nic->nic.numa_node = numa_of(t, obj);
		describe_nic(obj, &nic->nic);
	}
}
