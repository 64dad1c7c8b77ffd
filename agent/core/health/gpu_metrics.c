/* Decoder of gpu_metrics (see gpu_metrics.h). */
#include "agent/core/health/gpu_metrics.h"

#include <errno.h>
#include <string.h>

#include "agent/core/health/ranges.h"
#include "agent/core/health/reading.h"

#define SOURCE "gpu_metrics"
#define LINK_STATUS_MAX 2
#define HEADER_BYTES 4
/* version 1.9: u32 count at 4, then the first attribute */
#define ATTRIBUTES_AT 8

struct place {
	enum gpu_metric metric;
	uint16_t offset;
	uint8_t width, count;
};

/* Fields that lie together in every version that has them; offsets from the first. 1.1 to 1.3
 * (MI100, MI200) agree in what is read here and are one group of their own. */
static const struct place v1_3[] = {
	{ GM_TEMP_HOTSPOT_C, 6, 2, 1 },    { GM_TEMP_MEM_C, 8, 2, 1 },
	{ GM_TEMP_VRSOC_C, 12, 2, 1 },     { GM_GFX_ACTIVITY_PCT, 16, 2, 1 },
	{ GM_UMC_ACTIVITY_PCT, 18, 2, 1 }, { GM_SOCKET_POWER_W, 22, 2, 1 },
	{ GM_ENERGY, 24, 8, 1 },           { GM_SYSTEM_CLOCK_NS, 32, 8, 1 },
	{ GM_GFXCLK_MHZ, 54, 2, 1 },       { GM_SOCCLK_MHZ, 56, 2, 1 },
	{ GM_UCLK_MHZ, 58, 2, 1 },         { GM_THROTTLE_STATUS, 68, 4, 1 },
	{ GM_PCIE_WIDTH, 74, 2, 1 },       { GM_PCIE_SPEED_DGTS, 76, 2, 1 },
};
static const struct place sensors[] = {
	{ GM_TEMP_HOTSPOT_C, 0, 2, 1 },   { GM_TEMP_MEM_C, 2, 2, 1 },
	{ GM_TEMP_VRSOC_C, 4, 2, 1 },     { GM_SOCKET_POWER_W, 6, 2, 1 },
	{ GM_GFX_ACTIVITY_PCT, 8, 2, 1 }, { GM_UMC_ACTIVITY_PCT, 10, 2, 1 },
};
static const struct place memory[] = { { GM_MEM_MAX_BANDWIDTH_GBPS, 0, 8, 1 } };
static const struct place energy[] = { { GM_ENERGY, 0, 8, 1 }, { GM_SYSTEM_CLOCK_NS, 8, 8, 1 } };
static const struct place residency[] = { { GM_ACCUMULATION, 0, 4, 1 }, { GM_PROCHOT, 4, 4, 1 },
					  { GM_PPT, 8, 4, 1 },          { GM_SOCKET_THM, 12, 4, 1 },
					  { GM_VR_THM, 16, 4, 1 },      { GM_HBM_THM, 20, 4, 1 } };
static const struct place throttle[] = { { GM_THROTTLE_STATUS, 0, 4, 1 } };
static const struct place links[] = { { GM_PCIE_WIDTH, 0, 2, 1 },
				      { GM_PCIE_SPEED_DGTS, 2, 2, 1 },
				      { GM_XGMI_WIDTH, 4, 2, 1 },
				      { GM_XGMI_SPEED_GBPS, 6, 2, 1 } };
static const struct place pcie[] = { { GM_PCIE_L0_RECOVERY, 0, 8, 1 },
				     { GM_PCIE_REPLAY, 8, 8, 1 },
				     { GM_PCIE_REPLAY_ROLLOVER, 16, 8, 1 } };
static const struct place naks[] = { { GM_PCIE_NAK_SENT, 0, 4, 1 },
				     { GM_PCIE_NAK_RECEIVED, 4, 4, 1 } };
static const struct place xgmi[] = { { GM_XGMI_READ_KB, 0, 8, 8 }, { GM_XGMI_WRITE_KB, 64, 8, 8 } };
static const struct place xgmi_status[] = { { GM_XGMI_LINK_STATUS, 0, 2, 8 } };
static const struct place clocks[] = { { GM_GFXCLK_MHZ, 0, 2, 8 },
				       { GM_SOCCLK_MHZ, 16, 2, 4 },
				       { GM_UCLK_MHZ, 40, 2, 1 } };

#define PARTS_MAX 10
#define AT(at, group) \
	{ \
		group, ELEMENTSOF(group), at \
	}
struct layout {
	uint8_t format, content;
	struct {
		const struct place *places;
		size_t n;
		uint16_t at;
	} parts[PARTS_MAX];
};
static const struct layout layouts[] = {
	{ 1, 1, { AT(0, v1_3) } },
	{ 1, 2, { AT(0, v1_3) } },
	{ 1, 3, { AT(0, v1_3) } },
	{ 1,
	  4,
	  { AT(4, sensors), AT(24, energy), AT(40, throttle), AT(48, links), AT(80, pcie),
	    AT(104, xgmi), AT(240, clocks) } },
	{ 1,
	  5,
	  { AT(4, sensors), AT(88, energy), AT(104, throttle), AT(112, links), AT(144, pcie),
	    AT(168, naks), AT(176, xgmi), AT(312, clocks) } },
	{ 1,
	  6,
	  { AT(4, sensors), AT(16, energy), AT(32, residency), AT(60, links), AT(96, pcie),
	    AT(120, naks), AT(128, xgmi), AT(264, clocks) } },
	{ 1,
	  7,
	  { AT(4, sensors), AT(16, memory), AT(24, energy), AT(40, residency), AT(68, links),
	    AT(104, pcie), AT(128, naks), AT(136, xgmi), AT(264, xgmi_status), AT(296, clocks) } },
	/* differs only behind what is read here (the size of xcp_stats) */
	{ 1,
	  8,
	  { AT(4, sensors), AT(16, memory), AT(24, energy), AT(40, residency), AT(68, links),
	    AT(104, pcie), AT(128, naks), AT(136, xgmi), AT(264, xgmi_status), AT(296, clocks) } },
};
/* 1.6 as kernels of autumn 2024 had it; later ones moved everything and kept the number, so its
 * size tells */
static const struct layout early_1_6 = { 1,
					 6,
					 { AT(4, sensors), AT(88, energy), AT(104, residency),
					   AT(128, throttle), AT(136, links), AT(168, pcie),
					   AT(192, naks), AT(200, xgmi), AT(336, clocks) } };
#define EARLY_1_6_BYTES 384

/* version 1.9: metric of each attribute id; -1 = of no use here */
static const int8_t attributes[] = {
	GM_TEMP_HOTSPOT_C,
	GM_TEMP_MEM_C,
	GM_TEMP_VRSOC_C,
	GM_SOCKET_POWER_W,
	GM_GFX_ACTIVITY_PCT,
	GM_UMC_ACTIVITY_PCT,
	GM_MEM_MAX_BANDWIDTH_GBPS,
	GM_ENERGY,
	GM_SYSTEM_CLOCK_NS,
	GM_ACCUMULATION,
	GM_PROCHOT,
	GM_PPT,
	GM_SOCKET_THM,
	GM_VR_THM,
	GM_HBM_THM,
	-1 /* gfxclk_lock_status */,
	GM_PCIE_WIDTH,
	GM_PCIE_SPEED_DGTS,
	GM_XGMI_WIDTH,
	GM_XGMI_SPEED_GBPS,
	-1 /* gfx_activity_acc */,
	-1 /* mem_activity_acc */,
	-1 /* pcie_bandwidth_acc */,
	-1 /* pcie_bandwidth_inst */,
	GM_PCIE_L0_RECOVERY,
	GM_PCIE_REPLAY,
	GM_PCIE_REPLAY_ROLLOVER,
	GM_PCIE_NAK_SENT,
	GM_PCIE_NAK_RECEIVED,
	GM_XGMI_READ_KB,
	GM_XGMI_WRITE_KB,
	GM_XGMI_LINK_STATUS,
	-1 /* firmware_timestamp */,
	GM_GFXCLK_MHZ,
};
_Static_assert(ELEMENTSOF(attributes) == 34, "attribute ids 0 to 33");

static uint64_t little_endian(const uint8_t *p, size_t width)
{
	uint64_t v = 0;

	for (size_t i = 0; i < width; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static int64_t element(const uint8_t *p, size_t width, bool is_signed)
{
	uint64_t v = little_endian(p, width),
		 all = width == 8 ? UINT64_MAX : (1ULL << (8 * width)) - 1;

	if (v == all)
		return MO_NONE;
	if (is_signed && v > all / 2)
		return -(int64_t)(all - v) - 1;
	return v > INT64_MAX ? MO_NONE : (int64_t)v;
}

static void read_places(const struct layout *l, const uint8_t *data, size_t n,
			struct gpu_metrics *ret)
{
	for (size_t part = 0; part < PARTS_MAX; part++)
		for (size_t i = 0; i < l->parts[part].n; i++) {
			const struct place *p = &l->parts[part].places[i];
			size_t at = l->parts[part].at + p->offset;
			for (size_t k = 0; k < p->count && at + (k + 1) * p->width <= n; k++)
				ret->value[p->metric][k] =
					element(data + at + k * p->width, p->width, false);
		}
}

/* encoding: instances in bits 0-9, id 10-19, type 20-23, unit 24-31; the values follow without
 * padding. */
static int read_attributes(const uint8_t *data, size_t n, struct gpu_metrics *ret,
			   struct mo_error *err)
{
	/* u8 s8 u16 s16 u32 s32 u64 s64 */
	static const uint8_t widths[] = { 1, 1, 2, 2, 4, 4, 8, 8 };
	size_t at = ATTRIBUTES_AT;

	if (n < ATTRIBUTES_AT)
		return mo_error_set(err, -EPROTO, "gpu_metrics 1.9: no count of attributes");
	uint64_t count = little_endian(data + HEADER_BYTES, 4);
	for (uint64_t i = 0; i < count; i++) {
		if (n - at < 8)
			return mo_error_set(err, -EPROTO,
					    "gpu_metrics 1.9: it ends before attribute %llu of "
					    "%llu",
					    (unsigned long long)i + 1, (unsigned long long)count);
		uint64_t encoding = little_endian(data + at, 8);
		size_t instances = encoding & 0x3ff, id = encoding >> 10 & 0x3ff,
		       type = encoding >> 20 & 0xf;
		at += 8;
		if (type >= ELEMENTSOF(widths))
			return mo_error_set(err, -EPROTO,
					    "gpu_metrics 1.9: attribute %llu has the unknown type "
					    "%zu",
					    (unsigned long long)i + 1, type);
		if (instances * widths[type] > n - at)
			return mo_error_set(err, -EPROTO,
					    "gpu_metrics 1.9: attribute %llu of %llu goes beyond "
					    "its end",
					    (unsigned long long)i + 1, (unsigned long long)count);
		for (size_t k = 0; id < ELEMENTSOF(attributes) && attributes[id] >= 0 &&
				   k < MO_MIN(instances, (size_t)GPU_METRICS_ELEMENTS);
		     k++)
			ret->value[attributes[id]][k] =
				element(data + at + k * widths[type], widths[type], type % 2 == 1);
		at += instances * widths[type];
	}
	return 0;
}

int gpu_metrics_decode(const void *data, size_t n, struct gpu_metrics *ret, struct mo_error *err)
{
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
		return mo_error_set(err, -EPROTO, "gpu_metrics %d.%d: its size says %zu bytes",
				    bytes[2], bytes[3], size);
	for (size_t i = 0; i < ELEMENTSOF(layouts); i++)
		if (layouts[i].format == bytes[2] && layouts[i].content == bytes[3])
			layout =
				bytes[3] == 6 && size == EARLY_1_6_BYTES ? &early_1_6 : &layouts[i];
	if (layout)
		read_places(layout, bytes, there, ret);
	else if (bytes[2] != 1 || bytes[3] != 9)
		return mo_error_set(err, -EPROTO,
				    "gpu_metrics: version %d.%d is not known: use a moectl that is "
				    "as new as the driver",
				    bytes[2], bytes[3]);
	if (n != size)
		mo_error_set(err, -ENODATA,
			     "gpu_metrics %d.%d: its size says %zu bytes, there are %zu", bytes[2],
			     bytes[3], size, n);
	if (!layout) {
		int r = read_attributes(bytes, there, ret, err);
		if (r < 0)
			return r;
	}
	return n == size ? 0 : -ENODATA;
}

int64_t gpu_metrics_mean(const struct gpu_metrics *m, enum gpu_metric metric)
{
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

int64_t gpu_metrics_count(const struct gpu_metrics *m, enum gpu_metric metric, int64_t value)
{
	int64_t n = MO_NONE;

	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++)
		if (m->value[metric][k] != MO_NONE)
			n = (n == MO_NONE ? 0 : n) + (m->value[metric][k] == value);
	return n;
}

static int64_t sum_of(int64_t a, int64_t b)
{
	if (a == MO_NONE || b == MO_NONE)
		return a == MO_NONE ? b : a;
	return a > INT64_MAX - b ? MO_NONE : a + b;
}

static void add(struct probe *p, const char *key, double value)
{
	const struct reading_range *r = value == MO_NONE_F ? NULL : reading_impossible(key, value);
	_cleanup_(mo_freep) char *text = r ? reading_impossible_text(r, value) : NULL;

	if (text)
		probe_problem(p, SOURCE ": %s", text);
	else
		reading_add(p, key, value);
}

static void add_int(struct probe *p, const char *key, int64_t value)
{
	add(p, key, value == MO_NONE ? MO_NONE_F : (double)value);
}

/* Of the XCDs; one whose clock is nonsense makes the mean unknown. */
static void add_clock(struct probe *p, const struct gpu_metrics *m)
{
	static const char key[] = "gfx_clock_mhz";

	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++)
		if (m->value[GM_GFXCLK_MHZ][k] != MO_NONE &&
		    reading_impossible(key, (double)m->value[GM_GFXCLK_MHZ][k])) {
			add_int(p, key, m->value[GM_GFXCLK_MHZ][k]);
			return;
		}
	add_int(p, key, gpu_metrics_mean(m, GM_GFXCLK_MHZ));
}

/* Of all links, both ways, in bytes. */
static void add_traffic(struct probe *p, const struct gpu_metrics *m)
{
	int64_t kb = MO_NONE;

	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++)
		kb = sum_of(kb,
			    sum_of(m->value[GM_XGMI_READ_KB][k], m->value[GM_XGMI_WRITE_KB][k]));
	reading_add(p, "xgmi_bytes", kb == MO_NONE ? MO_NONE_F : (double)kb * 1024);
}

/* 0 down, 1 up, 2 not in use. */
static void add_links(struct probe *p, const struct gpu_metrics *m)
{
	for (size_t k = 0; k < GPU_METRICS_ELEMENTS; k++) {
		int64_t status = m->value[GM_XGMI_LINK_STATUS][k];
		if (status != MO_NONE && (status < 0 || status > LINK_STATUS_MAX)) {
			probe_problem(p,
				      SOURCE ": the status of XGMI link %zu is %lld, which is none "
					     "(0 to %d)",
				      k, (long long)status, LINK_STATUS_MAX);
			return;
		}
	}
	reading_add_int(p, "xgmi_links_up", gpu_metrics_count(m, GM_XGMI_LINK_STATUS, 1));
}

void gpu_metrics_readings(const struct gpu_metrics *m, struct probe *p)
{
	static const struct {
		const char *key;
		enum gpu_metric metric;
	} same[] = {
		{ "temp_junction_c", GM_TEMP_HOTSPOT_C },
		{ "temp_mem_c", GM_TEMP_MEM_C },
		{ "temp_vrsoc_c", GM_TEMP_VRSOC_C },
		{ "power_w", GM_SOCKET_POWER_W },
		{ "busy_pct", GM_GFX_ACTIVITY_PCT },
		{ "mem_busy_pct", GM_UMC_ACTIVITY_PCT },
		{ "throttle_status", GM_THROTTLE_STATUS },
		{ "metrics_counter", GM_ACCUMULATION },
		{ "prochot_residency", GM_PROCHOT },
		{ "ppt_residency", GM_PPT },
		{ "socket_thm_residency", GM_SOCKET_THM },
		{ "vr_thm_residency", GM_VR_THM },
		{ "hbm_thm_residency", GM_HBM_THM },
		{ "pcie_l0_recovery", GM_PCIE_L0_RECOVERY },
		{ "pcie_replay", GM_PCIE_REPLAY },
	};
	for (size_t i = 0; i < ELEMENTSOF(same); i++)
		add_int(p, same[i].key, m->value[same[i].metric][0]);
	add_int(p, "pcie_nak",
		sum_of(m->value[GM_PCIE_NAK_SENT][0], m->value[GM_PCIE_NAK_RECEIVED][0]));
	add_clock(p, m);
	add_links(p, m);
	add_traffic(p, m);
	reading_contradictions(p, SOURCE);
	reading_add(p, "energy_j",
		    m->value[GM_ENERGY][0] == MO_NONE ? MO_NONE_F
						      : (double)m->value[GM_ENERGY][0] * 15.259e-6);
	if (m->format == MO_NONE)
		return;
	_cleanup_(mo_freep) char *version = mo_printf("%d.%d", (int)m->format, (int)m->content);
	reading_add_text(p, "gpu_metrics_version", version);
}
