/* Decoder of gpu_metrics (see gpu_metrics.h). */
#include "agent/core/gpu_metrics.h"

#include <errno.h>
#include <string.h>

#include "agent/core/reading.h"

#define HEADER_BYTES 4
#define ATTRIBUTES_AT 8                        /* version 1.9: u32 count at 4, then the first attribute */

struct place { enum gpu_metric metric; uint16_t offset; uint8_t width, count; };

/* 1.1 to 1.3 (MI100, MI200) agree in what is read here */
static const struct place v1_3[] = {
	{ GM_TEMP_HOTSPOT_C, 6, 2, 1 }, { GM_TEMP_MEM_C, 8, 2, 1 }, { GM_TEMP_VRSOC_C, 12, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 16, 2, 1 }, { GM_UMC_ACTIVITY_PCT, 18, 2, 1 },
	{ GM_SOCKET_POWER_W, 22, 2, 1 }, { GM_ENERGY, 24, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 32, 8, 1 }, { GM_GFXCLK_MHZ, 54, 2, 1 }, { GM_SOCCLK_MHZ, 56, 2, 1 }, { GM_UCLK_MHZ, 58, 2, 1 },
	{ GM_THROTTLE_STATUS, 68, 4, 1 }, { GM_PCIE_WIDTH, 74, 2, 1 }, { GM_PCIE_SPEED_DGTS, 76, 2, 1 },
};
static const struct place v1_4[] = {
	{ GM_TEMP_HOTSPOT_C, 4, 2, 1 }, { GM_TEMP_MEM_C, 6, 2, 1 }, { GM_TEMP_VRSOC_C, 8, 2, 1 }, { GM_SOCKET_POWER_W, 10, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 12, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 14, 2, 1 }, { GM_ENERGY, 24, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 32, 8, 1 }, { GM_THROTTLE_STATUS, 40, 4, 1 }, { GM_PCIE_WIDTH, 48, 2, 1 },
	{ GM_PCIE_SPEED_DGTS, 50, 2, 1 }, { GM_XGMI_WIDTH, 52, 2, 1 }, { GM_XGMI_SPEED_GBPS, 54, 2, 1 }, { GM_PCIE_L0_RECOVERY, 80, 8, 1 }, { GM_PCIE_REPLAY, 88, 8, 1 },
	{ GM_PCIE_REPLAY_ROLLOVER, 96, 8, 1 }, { GM_XGMI_READ_KB, 104, 8, 8 }, { GM_XGMI_WRITE_KB, 168, 8, 8 }, { GM_GFXCLK_MHZ, 240, 2, 8 }, { GM_SOCCLK_MHZ, 256, 2, 4 },
	{ GM_UCLK_MHZ, 280, 2, 1 },
};
static const struct place v1_5[] = {
	{ GM_TEMP_HOTSPOT_C, 4, 2, 1 }, { GM_TEMP_MEM_C, 6, 2, 1 }, { GM_TEMP_VRSOC_C, 8, 2, 1 }, { GM_SOCKET_POWER_W, 10, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 12, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 14, 2, 1 }, { GM_ENERGY, 88, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 96, 8, 1 }, { GM_THROTTLE_STATUS, 104, 4, 1 }, { GM_PCIE_WIDTH, 112, 2, 1 },
	{ GM_PCIE_SPEED_DGTS, 114, 2, 1 }, { GM_XGMI_WIDTH, 116, 2, 1 }, { GM_XGMI_SPEED_GBPS, 118, 2, 1 }, { GM_PCIE_L0_RECOVERY, 144, 8, 1 }, { GM_PCIE_REPLAY, 152, 8, 1 },
	{ GM_PCIE_REPLAY_ROLLOVER, 160, 8, 1 }, { GM_PCIE_NAK_SENT, 168, 4, 1 }, { GM_PCIE_NAK_RECEIVED, 172, 4, 1 }, { GM_XGMI_READ_KB, 176, 8, 8 }, { GM_XGMI_WRITE_KB, 240, 8, 8 },
	{ GM_GFXCLK_MHZ, 312, 2, 8 }, { GM_SOCCLK_MHZ, 328, 2, 4 }, { GM_UCLK_MHZ, 352, 2, 1 },
};
/* 1.6 as kernels of autumn 2024 had it; later ones moved everything and kept the number, so its size tells */
#define EARLY_1_6_BYTES 384
static const struct place v1_6_early[] = {
	{ GM_TEMP_HOTSPOT_C, 4, 2, 1 }, { GM_TEMP_MEM_C, 6, 2, 1 }, { GM_TEMP_VRSOC_C, 8, 2, 1 }, { GM_SOCKET_POWER_W, 10, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 12, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 14, 2, 1 }, { GM_ENERGY, 88, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 96, 8, 1 }, { GM_ACCUMULATION, 104, 4, 1 }, { GM_PROCHOT, 108, 4, 1 }, { GM_PPT, 112, 4, 1 },
	{ GM_SOCKET_THM, 116, 4, 1 }, { GM_VR_THM, 120, 4, 1 }, { GM_HBM_THM, 124, 4, 1 }, { GM_THROTTLE_STATUS, 128, 4, 1 }, { GM_PCIE_WIDTH, 136, 2, 1 }, { GM_PCIE_SPEED_DGTS, 138, 2, 1 },
	{ GM_XGMI_WIDTH, 140, 2, 1 }, { GM_XGMI_SPEED_GBPS, 142, 2, 1 }, { GM_PCIE_L0_RECOVERY, 168, 8, 1 }, { GM_PCIE_REPLAY, 176, 8, 1 }, { GM_PCIE_REPLAY_ROLLOVER, 184, 8, 1 },
	{ GM_PCIE_NAK_SENT, 192, 4, 1 }, { GM_PCIE_NAK_RECEIVED, 196, 4, 1 }, { GM_XGMI_READ_KB, 200, 8, 8 }, { GM_XGMI_WRITE_KB, 264, 8, 8 }, { GM_GFXCLK_MHZ, 336, 2, 8 },
	{ GM_SOCCLK_MHZ, 352, 2, 4 }, { GM_UCLK_MHZ, 376, 2, 1 },
};
static const struct place v1_6[] = {
	{ GM_TEMP_HOTSPOT_C, 4, 2, 1 }, { GM_TEMP_MEM_C, 6, 2, 1 }, { GM_TEMP_VRSOC_C, 8, 2, 1 }, { GM_SOCKET_POWER_W, 10, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 12, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 14, 2, 1 }, { GM_ENERGY, 16, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 24, 8, 1 }, { GM_ACCUMULATION, 32, 4, 1 }, { GM_PROCHOT, 36, 4, 1 }, { GM_PPT, 40, 4, 1 },
	{ GM_SOCKET_THM, 44, 4, 1 }, { GM_VR_THM, 48, 4, 1 }, { GM_HBM_THM, 52, 4, 1 }, { GM_PCIE_WIDTH, 60, 2, 1 }, { GM_PCIE_SPEED_DGTS, 62, 2, 1 }, { GM_XGMI_WIDTH, 64, 2, 1 },
	{ GM_XGMI_SPEED_GBPS, 66, 2, 1 }, { GM_PCIE_L0_RECOVERY, 96, 8, 1 }, { GM_PCIE_REPLAY, 104, 8, 1 }, { GM_PCIE_REPLAY_ROLLOVER, 112, 8, 1 }, { GM_PCIE_NAK_SENT, 120, 4, 1 },
	{ GM_PCIE_NAK_RECEIVED, 124, 4, 1 }, { GM_XGMI_READ_KB, 128, 8, 8 }, { GM_XGMI_WRITE_KB, 192, 8, 8 }, { GM_GFXCLK_MHZ, 264, 2, 8 }, { GM_SOCCLK_MHZ, 280, 2, 4 },
	{ GM_UCLK_MHZ, 304, 2, 1 },
};
/* 1.8 differs only behind what is read here (the size of xcp_stats) */
static const struct place v1_7[] = {
	{ GM_TEMP_HOTSPOT_C, 4, 2, 1 }, { GM_TEMP_MEM_C, 6, 2, 1 }, { GM_TEMP_VRSOC_C, 8, 2, 1 }, { GM_SOCKET_POWER_W, 10, 2, 1 }, { GM_GFX_ACTIVITY_PCT, 12, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 14, 2, 1 }, { GM_MEM_MAX_BANDWIDTH_GBPS, 16, 8, 1 }, { GM_ENERGY, 24, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 32, 8, 1 }, { GM_ACCUMULATION, 40, 4, 1 },
	{ GM_PROCHOT, 44, 4, 1 }, { GM_PPT, 48, 4, 1 }, { GM_SOCKET_THM, 52, 4, 1 }, { GM_VR_THM, 56, 4, 1 }, { GM_HBM_THM, 60, 4, 1 }, { GM_PCIE_WIDTH, 68, 2, 1 },
	{ GM_PCIE_SPEED_DGTS, 70, 2, 1 }, { GM_XGMI_WIDTH, 72, 2, 1 }, { GM_XGMI_SPEED_GBPS, 74, 2, 1 }, { GM_PCIE_L0_RECOVERY, 104, 8, 1 }, { GM_PCIE_REPLAY, 112, 8, 1 },
	{ GM_PCIE_REPLAY_ROLLOVER, 120, 8, 1 }, { GM_PCIE_NAK_SENT, 128, 4, 1 }, { GM_PCIE_NAK_RECEIVED, 132, 4, 1 }, { GM_XGMI_READ_KB, 136, 8, 8 }, { GM_XGMI_WRITE_KB, 200, 8, 8 },
	{ GM_XGMI_LINK_STATUS, 264, 2, 8 }, { GM_GFXCLK_MHZ, 296, 2, 8 }, { GM_SOCCLK_MHZ, 312, 2, 4 }, { GM_UCLK_MHZ, 336, 2, 1 },
};
static const struct layout { uint8_t format, content; const struct place *places; size_t n; } layouts[] = {
	{ 1, 1, v1_3, ELEMENTSOF(v1_3) }, { 1, 2, v1_3, ELEMENTSOF(v1_3) }, { 1, 3, v1_3, ELEMENTSOF(v1_3) }, { 1, 4, v1_4, ELEMENTSOF(v1_4) }, { 1, 5, v1_5, ELEMENTSOF(v1_5) }, { 1, 6, v1_6, ELEMENTSOF(v1_6) }, { 1, 7, v1_7, ELEMENTSOF(v1_7) }, { 1, 8, v1_7, ELEMENTSOF(v1_7) },
}, early_1_6 = { 1, 6, v1_6_early, ELEMENTSOF(v1_6_early) };

/* version 1.9: metric of each attribute id; -1 = of no use here */
static const int8_t attributes[] = {
	GM_TEMP_HOTSPOT_C, GM_TEMP_MEM_C, GM_TEMP_VRSOC_C, GM_SOCKET_POWER_W, GM_GFX_ACTIVITY_PCT, GM_UMC_ACTIVITY_PCT, GM_MEM_MAX_BANDWIDTH_GBPS, GM_ENERGY, GM_SYSTEM_CLOCK_NS,
	GM_ACCUMULATION, GM_PROCHOT, GM_PPT, GM_SOCKET_THM, GM_VR_THM, GM_HBM_THM, -1 /* gfxclk_lock_status */, GM_PCIE_WIDTH, GM_PCIE_SPEED_DGTS, GM_XGMI_WIDTH, GM_XGMI_SPEED_GBPS,
	-1 /* gfx_activity_acc */, -1 /* mem_activity_acc */, -1 /* pcie_bandwidth_acc */, -1 /* pcie_bandwidth_inst */, GM_PCIE_L0_RECOVERY, GM_PCIE_REPLAY, GM_PCIE_REPLAY_ROLLOVER,
	GM_PCIE_NAK_SENT, GM_PCIE_NAK_RECEIVED, GM_XGMI_READ_KB, GM_XGMI_WRITE_KB, GM_XGMI_LINK_STATUS, -1 /* firmware_timestamp */, GM_GFXCLK_MHZ,
};
_Static_assert(ELEMENTSOF(attributes) == 34, "attribute ids 0 to 33");

static uint64_t little_endian(const uint8_t *p, size_t width) {
	uint64_t v = 0;

	for (size_t i = 0; i < width; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static int64_t element(const uint8_t *p, size_t width, bool is_signed) {
	uint64_t v = little_endian(p, width), all = width == 8 ? UINT64_MAX : (1ULL << (8 * width)) - 1;

	if (v == all)
		return MO_NONE;
	if (is_signed && v > all / 2)
		return -(int64_t)(all - v) - 1;
	return v > INT64_MAX ? MO_NONE : (int64_t)v;
}

static void read_places(const struct layout *l, const uint8_t *data, size_t n, struct gpu_metrics *ret) {
	for (size_t i = 0; i < l->n; i++) {
		const struct place *p = &l->places[i];
		for (size_t k = 0; k < p->count && p->offset + (k + 1) * p->width <= n; k++)
			ret->value[p->metric][k] = element(data + p->offset + k * p->width, p->width, false);
	}
}

/* encoding: instances in bits 0-9, id 10-19, type 20-23, unit 24-31; the values follow without padding. */
static int read_attributes(const uint8_t *data, size_t n, struct gpu_metrics *ret, struct mo_error *err) {
	static const uint8_t widths[] = { 1, 1, 2, 2, 4, 4, 8, 8 };          /* u8 s8 u16 s16 u32 s32 u64 s64 */
	size_t at = ATTRIBUTES_AT;

	if (n < ATTRIBUTES_AT)
		return mo_error_set(err, -EPROTO, "gpu_metrics 1.9: no count of attributes");
	uint64_t count = little_endian(data + HEADER_BYTES, 4);
	for (uint64_t i = 0; i < count; i++) {
		if (n - at < 8)
			return mo_error_set(err, -EPROTO, "gpu_metrics 1.9: it ends before attribute %llu of %llu", (unsigned long long)i + 1, (unsigned long long)count);
		uint64_t encoding = little_endian(data + at, 8);
		size_t instances = encoding & 0x3ff, id = encoding >> 10 & 0x3ff, type = encoding >> 20 & 0xf;
		at += 8;
		if (type >= ELEMENTSOF(widths))
			return mo_error_set(err, -EPROTO, "gpu_metrics 1.9: attribute %llu has the unknown type %zu", (unsigned long long)i + 1, type);
		if (instances * widths[type] > n - at)
			return mo_error_set(err, -EPROTO, "gpu_metrics 1.9: attribute %llu of %llu goes beyond its end", (unsigned long long)i + 1, (unsigned long long)count);
		for (size_t k = 0; id < ELEMENTSOF(attributes) && attributes[id] >= 0 && k < MO_MIN(instances, (size_t)GPU_METRICS_ELEMENTS); k++)
			ret->value[attributes[id]][k] = element(data + at + k * widths[type], widths[type], type % 2 == 1);
		at += instances * widths[type];
	}
	return 0;
}

int gpu_metrics_decode(const void *data, size_t n, struct gpu_metrics *ret, struct mo_error *err) {
	const uint8_t *bytes = data;
	const struct layout *layout = NULL;

	*ret = (struct gpu_metrics){ .format = MO_NONE, .content = MO_NONE };
	for (size_t i = 0; i < _GPU_METRIC_N; i++)
		for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++)
			ret->value[i][k] = MO_NONE;
	if (n < HEADER_BYTES)
		return mo_error_set(err, -ENODATA, "gpu_metrics: %zu bytes are no header", n);
	size_t size = little_endian(bytes, 2), there = MO_MIN(size, n);
	ret->format = bytes[2];
	ret->content = bytes[3];
	if (size < HEADER_BYTES)
		return mo_error_set(err, -EPROTO, "gpu_metrics %d.%d: its size says %zu bytes", bytes[2], bytes[3], size);
	for (size_t i = 0; i < ELEMENTSOF(layouts); i++)
		if (layouts[i].format == bytes[2] && layouts[i].content == bytes[3])
			layout = bytes[3] == 6 && size == EARLY_1_6_BYTES ? &early_1_6 : &layouts[i];
	if (layout)
		read_places(layout, bytes, there, ret);
	else if (bytes[2] != 1 || bytes[3] != 9)
		return mo_error_set(err, -EPROTO, "gpu_metrics: version %d.%d is not known: use a moectl that is as new as the driver", bytes[2], bytes[3]);
	if (n != size)
		mo_error_set(err, -ENODATA, "gpu_metrics %d.%d: its size says %zu bytes, there are %zu", bytes[2], bytes[3], size, n);
	if (!layout) {
		int r = read_attributes(bytes, there, ret, err);
		if (r < 0)
			return r;
	}
	return n == size ? 0 : -ENODATA;
}

int64_t gpu_metrics_mean(const struct gpu_metrics *m, enum gpu_metric metric) {
	double sum = 0;
	int64_t n = 0;

	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++) {
		if (m->value[metric][k] == MO_NONE)
			continue;
		sum += (double)m->value[metric][k];
		n++;
	}
	return n ? (int64_t)(sum / (double)n) : MO_NONE;
}

int64_t gpu_metrics_count(const struct gpu_metrics *m, enum gpu_metric metric, int64_t value) {
	int64_t n = MO_NONE;

	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++)
		if (m->value[metric][k] != MO_NONE)
			n = (n == MO_NONE ? 0 : n) + (m->value[metric][k] == value);
	return n;
}

static int64_t sum_of(int64_t a, int64_t b) {
	if (a == MO_NONE || b == MO_NONE)
		return a == MO_NONE ? b : a;
	return a > INT64_MAX - b ? MO_NONE : a + b;
}

void gpu_metrics_readings(const struct gpu_metrics *m, struct probe *p) {
	static const struct { const char *key; enum gpu_metric metric; } same[] = {
		{ "temp_junction_c", GM_TEMP_HOTSPOT_C }, { "temp_mem_c", GM_TEMP_MEM_C }, { "temp_vrsoc_c", GM_TEMP_VRSOC_C }, { "power_w", GM_SOCKET_POWER_W },
		{ "busy_pct", GM_GFX_ACTIVITY_PCT }, { "mem_busy_pct", GM_UMC_ACTIVITY_PCT }, { "throttle_status", GM_THROTTLE_STATUS }, { "metrics_counter", GM_ACCUMULATION },
		{ "prochot_residency", GM_PROCHOT }, { "ppt_residency", GM_PPT }, { "socket_thm_residency", GM_SOCKET_THM }, { "vr_thm_residency", GM_VR_THM },
		{ "hbm_thm_residency", GM_HBM_THM }, { "pcie_l0_recovery", GM_PCIE_L0_RECOVERY }, { "pcie_replay", GM_PCIE_REPLAY },
	};
	for (size_t i = 0; i < ELEMENTSOF(same); i++)
		reading_add_int(p, same[i].key, m->value[same[i].metric][0]);
	reading_add_int(p, "pcie_nak", sum_of(m->value[GM_PCIE_NAK_SENT][0], m->value[GM_PCIE_NAK_RECEIVED][0]));
	reading_add_int(p, "gfx_clock_mhz", gpu_metrics_mean(m, GM_GFXCLK_MHZ));
	reading_add_int(p, "xgmi_links_up", gpu_metrics_count(m, GM_XGMI_LINK_STATUS, 1));
	reading_add(p, "energy_j", m->value[GM_ENERGY][0] == MO_NONE ? MO_NONE_F : (double)m->value[GM_ENERGY][0] * 15.259e-6);
	if (m->format == MO_NONE)
		return;
	_cleanup_(mo_freep) char *version = mo_printf("%d.%d", (int)m->format, (int)m->content);
	reading_add_text(p, "gpu_metrics_version", version);
}
