/* One GPU: what PCI, amdgpu and its RAS files say. gpu_metrics first, because one read of it
 * answers for a dozen files that each ask the GPU's firmware; the files fill in what it does not
 * give. Files and formats: hardware facts 1.3 and 1.8. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/health/gpu_metrics.h"
#include "agent/core/health/ranges.h"
#include "agent/core/health/reading.h"
#include "agent/core/health/sysfs_text.h"
#include "agent/probe/probe_pass.h"

#define BAD_PAGES_BYTES_MAX (1024 * 1024)
#define SENSORS_MAX 8
#define PCI_DEVICES "sys/bus/pci/devices"
#define PCI_VENDOR_AMD 0x1002
#define PCI_VENDOR_NVIDIA 0x10de

static enum maker maker_by_driver(struct probe_pass *l, const char *bdf)
{
	_cleanup_(mo_freep) char *amd = mo_printf("sys/bus/pci/drivers/amdgpu/%s", bdf),
				 *nvidia = mo_printf("proc/driver/nvidia/gpus/%s", bdf);

	return faccessat(l->top, amd, F_OK, 0) == 0      ? MAKER_AMD
	       : faccessat(l->top, nvidia, F_OK, 0) == 0 ? MAKER_NVIDIA
							 : MAKER_OTHER;
}

/* the field's 6 bits, as a device leaves them that does not answer; the kernel's "unknown" is
 * 255 */
#define LINK_WIDTH_ONES 63
static const char dead[] = "all bits are set: the device does not answer on its bus";

/* v: what the file that was read last says. */
static int64_t vendor_or_bad(struct probe_pass *l, const char *path, int64_t v)
{
	if (v == MO_NONE && l->text.len && text_no_value(l->text.data))
		pass_bad(l, path, dead);
	return v;
}

enum maker pci_gpu(struct probe_pass *l, const char *bdf)
{
	_cleanup_(mo_freep) char *vendor_path = mo_printf("sys/bus/pci/devices/%s/vendor", bdf),
				 *class_path = mo_printf("sys/bus/pci/devices/%s/class", bdf);
	int64_t problems = l->problems,
		vendor = vendor_or_bad(l, vendor_path, pass_root_int(l, vendor_path));

	if (vendor != MO_NONE && vendor != PCI_VENDOR_AMD && vendor != PCI_VENDOR_NVIDIA)
		return MAKER_OTHER;
	/* processing accelerator, 3D controller, other display controller; 0x0300 VGA only of
	 * NVIDIA */
	int64_t class = pass_root_int(l, class_path);
	if (vendor == MO_NONE || class == MO_NONE)
		return l->problems > problems ? maker_by_driver(l, bdf) : MAKER_OTHER;
	bool gpu = class >> 8 == 0x1200 || class >> 8 == 0x0302 || class >> 8 == 0x0380 ||
		   (vendor == PCI_VENDOR_NVIDIA && class >> 8 == 0x0300);
	return !gpu ? MAKER_OTHER : vendor == PCI_VENDOR_AMD ? MAKER_AMD : MAKER_NVIDIA;
}

char *driver_version(struct probe_pass *l, const char *module)
{
	_cleanup_(mo_freep) char *version = mo_printf("sys/module/%s/version", module),
				 *srcversion = mo_printf("sys/module/%s/srcversion", module);
	char *line = pass_root_line(l, version);

	return line ? line : pass_root_line(l, srcversion);
}

static void add_driver(struct probe_pass *l)
{
	_cleanup_(mo_freep) char *module = pass_link(l, "driver");
	_cleanup_(mo_freep) char *version = module ? driver_version(l, module) : NULL;
	_cleanup_(mo_freep) char *both =
		module && version ? mo_printf("%s %s", module, version) : NULL;

	reading_add_text(l->probe, "driver", both ? both : module);
}

static void add_aer(struct probe_pass *l, const char *key, const char *path, const char *total)
{
	const char *s = pass_text(l, path);
	reading_add_int(l->probe, key, s ? pass_key(l, path, s, total) : MO_NONE);
}

static double scaled(int64_t v, double scale)
{
	return v == MO_NONE ? MO_NONE_F : (double)v * scale;
}

/* What the file that was read last says, unless no GPU can have that. */
static void add_possible(struct probe_pass *l, const char *key, const char *path, double v)
{
	const struct reading_range *r = v == MO_NONE_F ? NULL : reading_impossible(key, v);
	_cleanup_(mo_freep) char *text = r ? reading_impossible_text(r, v) : NULL;

	if (text)
		pass_bad(l, path, text);
	else
		reading_add(l->probe, key, v);
}

static void pass_pcie(struct probe_pass *l)
{
	int64_t width = pass_int(l, "current_link_width");

	if (width == LINK_WIDTH_ONES)
		pass_bad(l, "current_link_width", dead);
	else if (width != 255)
		add_possible(l, "pcie_width", "current_link_width", scaled(width, 1));
	int64_t most = pass_int(l, "max_link_width");
	if (most != LINK_WIDTH_ONES && most != 255)
		add_possible(l, "pcie_width_max", "max_link_width", scaled(most, 1));
	add_possible(l, "pcie_speed_gts", "current_link_speed",
		     pass_leading(l, "current_link_speed"));
	add_possible(l, "pcie_speed_max_gts", "max_link_speed", pass_leading(l, "max_link_speed"));
	add_aer(l, "aer_correctable", "aer_dev_correctable", "TOTAL_ERR_COR");
	add_aer(l, "aer_nonfatal", "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL");
	add_aer(l, "aer_fatal", "aer_dev_fatal", "TOTAL_ERR_FATAL");
}

static void pass_metrics(struct probe_pass *l)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const struct mo_buf *b = pass_bytes(l, "gpu_metrics", GPU_METRICS_BYTES_MAX);
	struct gpu_metrics m;

	if (!b)
		return;
	if (gpu_metrics_decode(b->data ? b->data : "", b->len, &m, &err) < 0) {
		l->problems++;
		probe_problem(l->probe, "%s", err.text);
	}
	gpu_metrics_readings(&m, l->probe);
}

/* Unless gpu_metrics gave the reading already. */
static void add_value(struct probe_pass *l, const char *key, const char *path, double scale)
{
	if (!reading_find(l->probe, key))
		add_possible(l, key, path, scaled(pass_int(l, path), scale));
}

static void add_sensor(struct probe_pass *l, const char *key, const char *hwmon, const char *file,
		       double scale)
{
	_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/%s", hwmon, file);

	add_value(l, key, path, scale);
}

static void add_temperatures(struct probe_pass *l, const char *hwmon)
{
	for (int i = 1; i <= SENSORS_MAX; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/temp%d_label", hwmon, i);
		int64_t problems = l->problems;
		_cleanup_(mo_freep) char *label = pass_line(l, path),
					 *input = mo_printf("temp%d_input", i),
					 *crit = mo_printf("temp%d_crit", i);
		if (!label && l->problems == problems)
			break;
		if (mo_streq(label, "junction")) {
			add_sensor(l, "temp_junction_c", hwmon, input, 1e-3);
			add_sensor(l, "temp_junction_crit_c", hwmon, crit, 1e-3);
		} else if (mo_streq(label, "mem")) {
			add_sensor(l, "temp_mem_c", hwmon, input, 1e-3);
			add_sensor(l, "temp_mem_crit_c", hwmon, crit, 1e-3);
		}
	}
}

static void pass_hwmon(struct probe_pass *l)
{
	struct pass_names names = pass_list(l, false, "hwmon");

	for (size_t i = 0; i < names.n; i++) {
		_cleanup_(mo_freep) char *path = mo_printf("hwmon/%s/name", names.items[i]);
		_cleanup_(mo_freep) char *name = pass_line(l, path);
		if (!mo_streq(name, "amdgpu"))
			continue;
		add_temperatures(l, names.items[i]);
		add_sensor(l, "power_w", names.items[i], "power1_average", 1e-6);
		add_sensor(l, "power_w", names.items[i], "power1_input", 1e-6);
		add_sensor(l, "power_cap_w", names.items[i], "power1_cap", 1e-6);
		add_sensor(l, "power_cap_default_w", names.items[i], "power1_cap_default", 1e-6);
		break;
	}
	pass_names_done(&names);
}

/* Sums over the blocks; a block that cannot be read makes the sums unknown, because a smaller
 * one would look like a counter that began anew. */
static void pass_ras_counts(struct probe_pass *l)
{
	int64_t sums[RAS_KINDS] = { MO_NONE, MO_NONE, MO_NONE }, counts[RAS_KINDS],
		problems = l->problems;
	struct pass_names names = pass_list(l, false, "ras");

	for (size_t i = 0; i < names.n; i++) {
		const char *end = strstr(names.items[i], "_err_count");
		_cleanup_(mo_freep) char *path = mo_printf("ras/%s", names.items[i]);
		const char *s = end && mo_streq(end, "_err_count") ? pass_text(l, path) : NULL;
		bool good = s && text_ras_counts(s, counts);
		if (s && !good)
			pass_bad(l, path, "no counts of errors in it");
		for (size_t k = 0; good && k < RAS_KINDS; k++) {
			if (counts[k] == MO_NONE)
				continue;
			sums[k] = (sums[k] == MO_NONE ? 0 : sums[k]) +
				  MO_MIN(counts[k], INT64_MAX / 4096);
			_cleanup_(mo_freep) char *key =
				mo_printf("ras_%s.%.*s", ras_kinds[k], (int)(end - names.items[i]),
					  names.items[i]);
			if (counts[k])
				reading_add_int(l->probe, key, counts[k]);
		}
	}
	pass_names_done(&names);
	for (size_t k = 0; l->problems == problems && k < RAS_KINDS; k++) {
		_cleanup_(mo_freep) char *key = mo_printf("ras_%s", ras_kinds[k]);
		reading_add_int(l->probe, key, sums[k]);
	}
}

/* No lines at all is what a healthy GPU says. */
static void pass_bad_pages(struct probe_pass *l)
{
	static const char path[] = "ras/gpu_vram_bad_pages";
	const struct mo_buf *b = pass_bytes(l, path, BAD_PAGES_BYTES_MAX);
	struct bad_pages pages;

	if (!b)
		return;
	if (b->len && (!text_is_text(b->data, b->len) || !text_bad_pages(b->data, &pages))) {
		pass_bad(l, path, "not a list of pages");
		return;
	}
	if (!b->len)
		pages = (struct bad_pages){ 0 };
	reading_add_int(l->probe, "bad_pages_retired", pages.retired);
	reading_add_int(l->probe, "bad_pages_pending", pages.pending);
	reading_add_int(l->probe, "bad_pages_failed", pages.failed);
}

static void pass_ras_events(struct probe_pass *l)
{
	const char *s = pass_text(l, "ras/event_state");
	struct ras_events e;

	if (!s)
		return;
	if (!text_ras_events(s, &e)) {
		pass_bad(l, "ras/event_state", "no counts of events in it");
		return;
	}
	reading_add_int(l->probe, "fatal_events", e.fatal);
	reading_add_int(l->probe, "poison_created", e.created);
	reading_add_int(l->probe, "poison_consumed", e.consumed);
}

/* The GPU's own name: 16 hexadecimal digits. All bits set or none is no name. */
static void pass_identity(struct probe_pass *l)
{
	_cleanup_(mo_freep) char *id = pass_line(l, "unique_id");

	if (!id)
		return;
	if (strlen(id) > 16 || id[strspn(id, "0123456789abcdefABCDEF")])
		pass_bad(l, "unique_id", "it is no name of a GPU");
	else if (id[strspn(id, "0")] && id[strspn(id, "fF")])
		l->probe->identity = TAKE_PTR(id);
}

/* "SPX", "NPS1" */
static void add_mode(struct probe_pass *l, const char *key, const char *path)
{
	_cleanup_(mo_freep) char *mode = pass_line(l, path);

	if (mode && mode[strspn(mode, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")])
		pass_bad(l, path, "it is no mode");
	else
		reading_add_text(l->probe, key, mode);
}

static void pass_vram(struct probe_pass *l)
{
	int64_t total = pass_int(l, "mem_info_vram_total");

	add_possible(l, "vram_total_bytes", "mem_info_vram_total", scaled(total, 1));
	int64_t used = pass_int(l, "mem_info_vram_used");
	if (used != MO_NONE && total > 0 && used > total)
		pass_bad(l, "mem_info_vram_used", "more than mem_info_vram_total");
	else
		reading_add_int(l->probe, "vram_used_bytes", used);
}

static void pass_amd(struct probe_pass *l, const char *bdf)
{
	static const struct {
		const char *key, *path;
	} texts[] = {
		{ "vbios", "vbios_version" },
		{ "xgmi_hive", "xgmi_hive_info/xgmi_hive_id" },
		{ "performance_level", "power_dpm_force_performance_level" },
	};
	const char *s;

	pass_identity(l);
	pass_metrics(l);
	pass_hwmon(l);
	pass_vram(l);
	pass_add_int(l, "xgmi_error", "xgmi_error");
	add_value(l, "busy_pct", "gpu_busy_percent", 1);
	add_value(l, "mem_busy_pct", "mem_busy_percent", 1);
	add_value(l, "pcie_replay", "pcie_replay_count", 1);
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		pass_add_text(l, texts[i].key, texts[i].path);
	add_mode(l, "compute_partition", "current_compute_partition");
	add_mode(l, "memory_partition", "current_memory_partition");
	if (!reading_find(l->probe, "gfx_clock_mhz") && (s = pass_text(l, "pp_dpm_sclk"))) {
		add_possible(l, "gfx_clock_mhz", "pp_dpm_sclk", scaled(text_dpm_mhz(s), 1));
		if (!strchr(s, ':'))
			pass_bad(l, "pp_dpm_sclk", "no clocks in it");
	}
	reading_contradictions(l->probe, "its sensors");
	pass_ras_counts(l);
	pass_bad_pages(l);
	pass_ras_events(l);
	probe_kfd(l, bdf);
}

void probe_nvidia(struct probe_pass *l, const char *bdf)
{
	_cleanup_(mo_freep) char *path = mo_printf("proc/driver/nvidia/gpus/%s/information", bdf);
	const char *s = pass_root(l, path);

	if (!s)
		return;
	_cleanup_(mo_freep) char *model = text_key(s, "Model"), *vbios = text_key(s, "Video BIOS"),
				 *uuid = text_key(s, "GPU UUID");
	if (!model || !uuid)
		pass_bad(l, path, "no Model or no GPU UUID in it");
	l->probe->identity = uuid ? text_clean(uuid, strlen(uuid), TEXT_LINE_MAX - 3) : NULL;
	reading_add_text(l->probe, "model", model);
	reading_add_text(l->probe, "vbios", vbios);
}

void probe_gpu(struct probe_pass *l, const char *bdf)
{
	if (!pass_device(l, PCI_DEVICES, bdf))
		return;
	int64_t vendor = vendor_or_bad(l, "vendor", pass_int(l, "vendor")),
		device = pass_int(l, "device");
	if (vendor != MO_NONE && device != MO_NONE) {
		_cleanup_(mo_freep) char *id =
			mo_printf("%04llx:%04llx", (long long)vendor, (long long)device);
		reading_add_text(l->probe, "device_id", id);
	}
	add_driver(l);
	pass_pcie(l);
	switch (vendor == PCI_VENDOR_AMD      ? MAKER_AMD
		: vendor == PCI_VENDOR_NVIDIA ? MAKER_NVIDIA
		: vendor == MO_NONE           ? maker_by_driver(l, bdf)
					      : MAKER_OTHER) {
	case MAKER_AMD: pass_amd(l, bdf); break;
	case MAKER_NVIDIA: probe_nvidia(l, bdf); break;
	default: break;
	}
}

void probe_sensors(struct probe_pass *l, const char *bdf)
{
	if (!pass_device(l, PCI_DEVICES, bdf))
		return;
	pass_metrics(l);
	if (!reading_find(l->probe, "temp_junction_c"))
		pass_hwmon(l);
	add_value(l, "busy_pct", "gpu_busy_percent", 1);
	add_value(l, "mem_busy_pct", "mem_busy_percent", 1);
	pass_vram(l);
	reading_contradictions(l->probe, "its sensors");
}
