/* GPUs by their PCI ids: names for the catalogue, and those on the bus that no driver reports.
 * Called by the parts of lib/topo. */
#include "lib/topo/pci.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/topo/files.h"

char *gpu_model_name(int64_t vendor, int64_t device, const char *model)
{
	static const struct {
		int64_t device;
		const char *name;
	} amd[] = {
		{ 0x74a1, "mi300x" }, { 0x74b5, "mi300x" }, { 0x74a0, "mi300a" },
		{ 0x74a2, "mi308x" }, { 0x74a5, "mi325x" }, { 0x75a0, "mi350x" },
		{ 0x75a3, "mi355x" }, { 0x740f, "mi210" },  { 0x7408, "mi250x" },
		{ 0x738c, "mi100" },  { 0x66a1, "mi60" },
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
		*p = (char)tolower((unsigned char)*p);
	return name;
}

/* Processing accelerators and display-less controllers: never the display adapter of a BMC. */
bool gpu_class(int64_t vendor, int64_t class)
{
	return (vendor == 0x1002 && (class == 0x1200 || class == 0x0380)) ||
	       (vendor == 0x10de && class == 0x0302);
}

void find_lost(struct finds *f, int64_t vendor, const char *why)
{
	_cleanup_(mo_freep) char *dir = mo_printf("%s/sys/bus/pci/devices", f->root);
	size_t n;
	char **names = dir_names(dir, &n);

	for (size_t i = 0; i < n && !f->blind; i++) {
		_cleanup_(mo_freep) char *id = mo_path(dir, "%s/vendor", names[i]),
					 *class = mo_path(dir, "%s/class", names[i]);
		bool found =
			file_hex(f, id) != vendor || !gpu_class(vendor, file_hex(f, class) >> 8);
		for (size_t k = 0; k < f->n_gpus && !found; k++)
			found = mo_streq(f->gpus[k].slot.bdf, names[i]);
		/* one that has a finding of its own was seen by the driver */
		for (size_t k = 0; k < f->n_findings && !found; k++)
			found = mo_streq(f->findings[k].object, names[i]);
		if (!found)
			finds_odd(f, names[i], "%s", why);
	}
	names_free(names, n);
}
