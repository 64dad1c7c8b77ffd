/* One GPU: what PCI, amdgpu and its RAS files say. gpu_metrics first, because one read of it answers for a dozen files that each ask the GPU's firmware; the files fill in what it
 * does not give. Files and formats: hardware facts 1.3 and 1.8. */
#include <errno.h>
#include <string.h>

#include "agent/core/gpu_metrics.h"
#include "agent/core/reading.h"
#include "agent/core/sysfs_text.h"
#include "agent/probe/look.h"

#define BAD_PAGES_BYTES_MAX (1024 * 1024)
#define SENSORS_MAX 8
#define PCI_VENDOR_AMD 0x1002
#define PCI_VENDOR_NVIDIA 0x10de

bool pci_is_gpu(struct look *l, const char *bdf) {
	_cleanup_(mo_freep) char *vendor_path = mo_printf("sys/bus/pci/devices/%s/vendor", bdf), *class_path = mo_printf("sys/bus/pci/devices/%s/class", bdf);
	int64_t vendor = look_root_int(l, vendor_path);

	if (vendor != PCI_VENDOR_AMD && vendor != PCI_VENDOR_NVIDIA)
		return false;
	int64_t class = look_root_int(l, class_path);          /* processing accelerator, 3D controller, other display controller; 0x0300 VGA only of NVIDIA */
	return class >> 8 == 0x1200 || class >> 8 == 0x0302 || class >> 8 == 0x0380 || (vendor == PCI_VENDOR_NVIDIA && class >> 8 == 0x0300);
}

char *driver_version(struct look *l, const char *module) {
	_cleanup_(mo_freep) char *version = mo_printf("sys/module/%s/version", module), *srcversion = mo_printf("sys/module/%s/srcversion", module);
	const char *s = look_root(l, version);

	if (!s)
		s = look_root(l, srcversion);
	return s ? text_line(s) : NULL;
}

static void add_driver(struct look *l) {
	_cleanup_(mo_freep) char *module = look_link(l, "driver");
	_cleanup_(mo_freep) char *version = module ? driver_version(l, module) : NULL;
	_cleanup_(mo_freep) char *both = module && version ? mo_printf("%s %s", module, version) : NULL;

	reading_add_text(l->probe, "driver", both ? both : module);
}

static void add_speed(struct look *l, const char *key, const char *path) {
	const char *s = look_text(l, path);
	reading_add(l->probe, key, s ? text_leading(s) : MO_NONE_F);
}

static void add_aer(struct look *l, const char *key, const char *path, const char *total) {
	const char *s = look_text(l, path);
	reading_add_int(l->probe, key, s ? text_key_int(s, total) : MO_NONE);
}

static void look_pcie(struct look *l) {
	int64_t width = look_int(l, "current_link_width");

	if (width != 255)                                              /* PCI_EXP_LNKSTA of a device that no longer answers */
		reading_add_int(l->probe, "pcie_width", width);
	look_add_int(l, "pcie_width_max", "max_link_width");
	add_speed(l, "pcie_speed_gts", "current_link_speed");
	add_speed(l, "pcie_speed_max_gts", "max_link_speed");
	add_aer(l, "aer_correctable", "aer_dev_correctable", "TOTAL_ERR_COR");
	add_aer(l, "aer_nonfatal", "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
	add_aer(l, "aer_fatal", "aer_dev_fatal", "TOTAL_ERR_FATAL");
}

static void look_metrics(struct look *l) {
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct mo_buf *b = look_bytes(l, "gpu_metrics", GPU_METRICS_BYTES_MAX);
	struct gpu_metrics m;

	if (!b)
		return;
	if (gpu_metrics_decode(b->data ? b->data : "", b->len, &m, &err) < 0) {
		l->problems++;
		probe_problem(l->probe, "%s", err.text);
	}
	gpu_metrics_readings(&m, l->probe);
}

static double scaled(int64_t v, double scale) {
	return v == MO_NONE ? MO_NONE_F : (double)v * scale;
}

/* A file of hwmon, unless gpu_metrics gave the reading already. */
static void add_sensor(struct look *l, const char *key, const char *hwmon, const char *file, double scale) {
	_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/%s", hwmon, file);

	if (!reading_find(l->probe, key))
		reading_add(l->probe, key, scaled(look_int(l, path), scale));
}

static void add_temperatures(struct look *l, const char *hwmon) {
	for (int i = 1; i <= SENSORS_MAX; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/temp%d_label", hwmon, i);
		const char *s = look_text(l, path);
		if (!s)
			break;
		_cleanup_(mo_freep) char *label = text_line(s), *input = mo_printf("temp%d_input", i), *crit = mo_printf("temp%d_crit", i);
		if (mo_streq(label, "junction")) {
			add_sensor(l, "temp_junction_c", hwmon, input, 1e-3);
			add_sensor(l, "temp_junction_crit_c", hwmon, crit, 1e-3);
		} else if (mo_streq(label, "mem")) {
			add_sensor(l, "temp_mem_c", hwmon, input, 1e-3);
			add_sensor(l, "temp_mem_crit_c", hwmon, crit, 1e-3);
		}
	}
}

static void look_hwmon(struct look *l) {
	struct look_names names = look_list(l, false, "hwmon");

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/name", names.items[i]);
		const char *s = look_text(l, path);
		_cleanup_(mo_freep) char *name = s ? text_line(s) : NULL;
		if (!mo_streq(name, "amdgpu"))
			continue;
		add_temperatures(l, names.items[i]);
		add_sensor(l, "power_w", names.items[i], "power1_average", 1e-6);
		add_sensor(l, "power_w", names.items[i], "power1_input", 1e-6);
		add_sensor(l, "power_cap_w", names.items[i], "power1_cap", 1e-6);
		add_sensor(l, "power_cap_default_w", names.items[i], "power1_cap_default", 1e-6);
		break;
	}
	look_names_done(&names);
}

/* Sums over the blocks; a block that cannot be read makes the sums unknown, because a smaller one would look like a counter that began anew. */
static void look_ras_counts(struct look *l) {
	static const char *const kinds[] = { "ue", "ce", "de" };
	int64_t sums[ELEMENTSOF(kinds)] = { MO_NONE, MO_NONE, MO_NONE }, problems = l->problems;
	struct look_names names = look_list(l, false, "ras");

	for (size_t i = 0; i < names.n; i++) {
		const char *end = strstr(names.items[i], "_err_count");
		_cleanup_(mo_freep) char *path = mo_printf("ras/%s", names.items[i]);
		const char *s = end && mo_streq(end, "_err_count") ? look_text(l, path) : NULL;
		for (size_t k = 0; s && k < ELEMENTSOF(kinds); k++) {
			int64_t v = text_key_int(s, kinds[k]);
			if (v == MO_NONE)
				continue;
			sums[k] = (sums[k] == MO_NONE ? 0 : sums[k]) + v;
			_cleanup_(mo_freep) char *key = mo_printf("ras_%s.%.*s", kinds[k], (int)(end - names.items[i]), names.items[i]);
			if (v)
				reading_add_int(l->probe, key, v);
		}
	}
	look_names_done(&names);
	for (size_t k = 0; l->problems == problems && k < ELEMENTSOF(kinds); k++) {
		_cleanup_(mo_freep) char *key = mo_printf("ras_%s", kinds[k]);
		reading_add_int(l->probe, key, sums[k]);
	}
}

static void look_ras(struct look *l) {
	look_ras_counts(l);
	const struct mo_buf *b = look_bytes(l, "ras/gpu_vram_bad_pages", BAD_PAGES_BYTES_MAX);
	if (b) {
		struct bad_pages pages = text_bad_pages(b->data ? b->data : "");
		reading_add_int(l->probe, "bad_pages_retired", pages.retired);
		reading_add_int(l->probe, "bad_pages_pending", pages.pending);
		reading_add_int(l->probe, "bad_pages_failed", pages.failed);
	}
	const char *s = look_text(l, "ras/event_state");
	if (s) {
		struct ras_events e = text_ras_events(s);
		reading_add_int(l->probe, "fatal_events", e.fatal);
		reading_add_int(l->probe, "poison_created", e.created);
		reading_add_int(l->probe, "poison_consumed", e.consumed);
	}
}

static void look_amd(struct look *l, const char *bdf) {
	static const struct { const char *key, *path; } numbers[] = {
		{ "vram_used_bytes", "mem_info_vram_used" }, { "vram_total_bytes", "mem_info_vram_total" }, { "xgmi_error", "xgmi_error" },
	}, instead[] = {
		{ "busy_pct", "gpu_busy_percent" }, { "mem_busy_pct", "mem_busy_percent" }, { "pcie_replay", "pcie_replay_count" },
	}, texts[] = {
		{ "compute_partition", "current_compute_partition" }, { "memory_partition", "current_memory_partition" }, { "vbios", "vbios_version" },
		{ "xgmi_hive", "xgmi_hive_info/xgmi_hive_id" }, { "performance_level", "power_dpm_force_performance_level" },
	};
	const char *s = look_text(l, "unique_id");

	l->probe->identity = s ? text_line(s) : NULL;
	look_metrics(l);
	look_hwmon(l);
	for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
		look_add_int(l, numbers[i].key, numbers[i].path);
	for (size_t i = 0; i < ELEMENTSOF(instead); i++)
		if (!reading_find(l->probe, instead[i].key))
			look_add_int(l, instead[i].key, instead[i].path);
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		look_add_text(l, texts[i].key, texts[i].path);
	if (!reading_find(l->probe, "gfx_clock_mhz") && (s = look_text(l, "pp_dpm_sclk")))
		reading_add_int(l->probe, "gfx_clock_mhz", text_dpm_mhz(s));
	look_ras(l);
	probe_kfd(l, bdf);
}

void probe_nvidia(struct look *l, const char *bdf) {
	_cleanup_(mo_freep) char *path = mo_printf("proc/driver/nvidia/gpus/%s/information", bdf);
	const char *s = look_root(l, path);

	if (!s)
		return;
	_cleanup_(mo_freep) char *model = text_key(s, "Model"), *vbios = text_key(s, "Video BIOS");
	l->probe->identity = text_key(s, "GPU UUID");
	reading_add_text(l->probe, "model", model);
	reading_add_text(l->probe, "vbios", vbios);
}

void probe_gpu(struct look *l, const char *bdf) {
	_cleanup_(mo_freep) char *path = mo_printf("sys/bus/pci/devices/%s", bdf);

	if (!look_enter(l, path)) {
		l->problems++;
		probe_problem(l->probe, "%s: " PROBE_NO_DEVICE, bdf);
		return;
	}
	int64_t vendor = look_int(l, "vendor"), device = look_int(l, "device");
	if (vendor != MO_NONE && device != MO_NONE) {
		_cleanup_(mo_freep) char *id = mo_printf("%04llx:%04llx", (long long)vendor, (long long)device);
		reading_add_text(l->probe, "device_id", id);
	}
	add_driver(l);
	look_pcie(l);
	if (vendor == PCI_VENDOR_AMD)
		look_amd(l, bdf);
	else if (vendor == PCI_VENDOR_NVIDIA)
		probe_nvidia(l, bdf);
}

void probe_sensors(struct look *l, const char *bdf) {
	_cleanup_(mo_freep) char *path = mo_printf("sys/bus/pci/devices/%s", bdf);

	if (!look_enter(l, path)) {
		l->problems++;
		probe_problem(l->probe, "%s: " PROBE_NO_DEVICE, bdf);
		return;
	}
	look_metrics(l);
	if (!reading_find(l->probe, "temp_junction_c"))
		look_hwmon(l);
	if (!reading_find(l->probe, "busy_pct"))
		look_add_int(l, "busy_pct", "gpu_busy_percent");
	look_add_int(l, "vram_used_bytes", "mem_info_vram_used");
}
