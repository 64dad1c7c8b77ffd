/* The fingerprint of a node: versions and settings that should be the same on all nodes of a
 * cluster. Devices of one kind are reported once; where they differ, every value is given with how
 * many have it. What differs by nature (UUIDs of disks on the command line, serial numbers) is
 * left out. */
#include <string.h>

#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_pass.h"

#define KINDS_MAX 16

/* Values of one item over several devices, in order of appearance. */
struct kinds {
	char *key;
	struct {
		char *value;
		int64_t n;
	} items[KINDS_MAX];
	size_t n;
};
struct items {
	struct kinds *all;
	size_t n;
};

static void item_add(struct items *t, const char *key, const char *value)
{
	struct kinds *k = NULL;

	if (!value || !*value)
		return;
	for (size_t i = 0; i < t->n && !k; i++)
		k = mo_streq(t->all[i].key, key) ? &t->all[i] : NULL;
	if (!k) {
		k = MO_GROW(t->all, t->n);
		k->key = mo_strdup(key);
	}
	for (size_t i = 0; i < k->n; i++) {
		if (!mo_streq(k->items[i].value, value))
			continue;
		k->items[i].n++;
		return;
	}
	if (k->n < KINDS_MAX) {
		k->items[k->n].value = mo_strdup(value);
		k->items[k->n++].n = 1;
	}
}

static void items_tell(struct items *t, struct probe *p)
{
	for (size_t i = 0; i < t->n; i++) {
		struct kinds *k = &t->all[i];
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
		for (size_t j = 0; j < k->n; j++) {
			if (k->n == 1)
				mo_buf_str(&b, k->items[j].value);
			else
				mo_buf_printf(&b, "%s%s (%lld)", j ? ", " : "", k->items[j].value,
					      (long long)k->items[j].n);
			free(k->items[j].value);
		}
		reading_add_text(p, k->key, b.data);
		free(k->key);
	}
	free(t->all);
}

static void add_line(struct probe_pass *l, struct items *t, const char *key, const char *path)
{
	_cleanup_(mo_freep) char *line = pass_root_line(l, path);

	item_add(t, key, line);
}

static void add_number(struct probe_pass *l, struct items *t, const char *key, const char *path)
{
	int64_t v = pass_root_int(l, path);
	_cleanup_(mo_freep) char *text = v == MO_NONE ? NULL : mo_printf("%lld", (long long)v);

	item_add(t, key, text);
}

static void add_module(struct probe_pass *l, struct items *t, const char *module)
{
	_cleanup_(mo_freep) char *version = driver_version(l, module);

	item_add(t, module, version);
}

static void add_cmdline(struct probe_pass *l, struct items *t)
{
	const char *s = pass_root(l, "proc/cmdline");
	_cleanup_(mo_freep) char *line = s ? text_cmdline(s) : NULL;

	item_add(t, "cmdline", line);
}

/* "12" -> 12, in place. */
static char *unquoted(char *s)
{
	size_t n = strlen(s);

	if (n < 2 || (*s != '"' && *s != '\'') || s[n - 1] != *s)
		return s;
	s[n - 1] = 0;
	return s + 1;
}

static void add_settings(struct probe_pass *l, struct items *t)
{
	_cleanup_(mo_freep) char *governor = governors(l);
	const char *s;

	item_add(t, "governor", governor);
	add_number(l, t, "numa_balancing", "proc/sys/kernel/numa_balancing");
	if ((s = pass_root(l, "sys/kernel/mm/transparent_hugepage/enabled"))) {
		_cleanup_(mo_freep) char *thp = text_chosen(s);
		if (!thp)
			pass_bad(l, "sys/kernel/mm/transparent_hugepage/enabled",
				 "nothing is chosen in it");
		item_add(t, "thp", thp);
	}
	if ((s = pass_root(l, "etc/os-release"))) {
		_cleanup_(mo_freep) char *name = text_option(s, "ID"),
					 *version = text_option(s, "VERSION_ID");
		_cleanup_(mo_freep) char *both = mo_printf("%s %s", name ? unquoted(name) : "",
							   version ? unquoted(version) : "");
		if (!name)
			pass_bad(l, "etc/os-release", "no ID in it");
		item_add(t, "os", name ? both : NULL);
	}
}

static void add_gpu(struct probe_pass *l, struct items *t, const char *bdf)
{
	_cleanup_(mo_freep) char *path = mo_printf("sys/bus/pci/devices/%s", bdf),
				 *firmware = mo_printf("%s/fw_version", path),
				 *vbios = mo_printf("%s/vbios_version", path),
				 *information =
					 mo_printf("proc/driver/nvidia/gpus/%s/information", bdf);
	struct pass_names files = pass_list(l, true, firmware);
	const char *s;

	add_line(l, t, "vbios", vbios);
	for (size_t i = 0; i < files.n; i++) {
		const char *end = strstr(files.items[i], "_fw_version");
		_cleanup_(mo_freep) char *file = mo_printf("%s/%s", firmware, files.items[i]),
					 *key = mo_printf("gpu_fw.%.*s",
							  end ? (int)(end - files.items[i]) : 0,
							  files.items[i]);
		if (end)
			add_line(l, t, key, file);
	}
	pass_names_done(&files);
	if ((s = pass_root(l, information))) {
		_cleanup_(mo_freep) char *bios = text_key(s, "Video BIOS"),
					 *gsp = text_key(s, "GPU Firmware");
		if (!bios && !gsp)
			pass_bad(l, information, "no versions in it");
		item_add(t, "vbios", bios);
		item_add(t, "gpu_fw.gsp", gsp);
	}
}

static void add_nic(struct probe_pass *l, struct items *t, const char *nic)
{
	_cleanup_(mo_freep) char *path = mo_printf("sys/class/infiniband/%s", nic);

	if (!pass_enter(l, path))
		return;
	_cleanup_(mo_freep) char *driver = pass_link(l, "device/driver"),
				 *fw = mo_printf("%s/fw_ver", path);
	/* mlx5_core -> mlx5, bnxt_en -> bnxt; without a driver the card's name without its
	 * number */
	const char *of = driver ? driver : nic, *end = strchr(of, '_');
	_cleanup_(mo_freep) char *key =
		mo_printf("nic_fw.%.*s", end ? (int)(end - of) : (int)strlen(of), of);
	add_line(l, t, key, fw);
	struct pass_names nets = pass_list(l, false, "device/net");
	if (nets.n) {
		_cleanup_(mo_freep) char *mtu =
			mo_printf("%s/device/net/%s/mtu", path, nets.items[0]);
		add_number(l, t, "mtu", mtu);
	}
	pass_names_done(&nets);
}

void probe_stack(struct probe_pass *l)
{
	struct items t = { 0 };
	struct pass_names devices = pass_list(l, true, "sys/bus/pci/devices"),
			  nics = pass_list(l, true, "sys/class/infiniband");

	add_line(l, &t, "kernel", "proc/sys/kernel/osrelease");
	add_module(l, &t, "amdgpu");
	add_module(l, &t, "nvidia");
	add_line(l, &t, "rocm", "opt/rocm/.info/version");
	add_line(l, &t, "bios", "sys/class/dmi/id/bios_version");
	add_line(l, &t, "machine", "sys/class/dmi/id/product_name");
	add_cmdline(l, &t);
	add_settings(l, &t);
	for (size_t i = 0; i < devices.n; i++)
		if (pci_gpu(l, devices.items[i]) != MAKER_OTHER)
			add_gpu(l, &t, devices.items[i]);
	for (size_t i = 0; i < nics.n; i++)
		add_nic(l, &t, nics.items[i]);
	pass_names_done(&devices);
	pass_names_done(&nics);
	items_tell(&t, l->probe);
}
