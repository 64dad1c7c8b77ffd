/* The binary file gpu_metrics of amdgpu: little endian, header {u16 structure_size, u8 format,
 * u8 content}, then the layout of that version. Versions 1.1 to 1.8 are structs, 1.9 is a list
 * of described attributes. Nothing is trusted: a field is read only when it lies within the
 * structure's own size and within what was read; all bits set means that the firmware does not
 * give it. Pure. Called by moe-probe; fuzzed. Source of the tables: the field order of the
 * kernel's drivers/gpu/drm/amd/include/kgd_pp_interface.h (struct gpu_metrics_v1_1 ... v1_8, of
 * 2025) with natural alignment. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/health.h"

#define GPU_METRICS_BYTES_MAX 65535 /* structure_size is 16 bits */
#define GPU_METRICS_ELEMENTS 8      /* arrays of one element per XCD or XGMI link */

enum gpu_metric {
	GM_TEMP_HOTSPOT_C,
	GM_TEMP_MEM_C,
	GM_TEMP_VRSOC_C,
	GM_SOCKET_POWER_W,
	GM_GFX_ACTIVITY_PCT,
	GM_UMC_ACTIVITY_PCT,
	GM_MEM_MAX_BANDWIDTH_GBPS,
	GM_ENERGY, /* units of 15.259 uJ */
	GM_SYSTEM_CLOCK_NS,
	/* 1.4 and 1.5: bits, at this moment; later versions have residencies instead */
	GM_THROTTLE_STATUS,
	/* residencies count in steps of ACCUMULATION */
	GM_ACCUMULATION,
	GM_PROCHOT,
	GM_PPT,
	GM_SOCKET_THM,
	GM_VR_THM,
	GM_HBM_THM,
	GM_PCIE_WIDTH,
	GM_PCIE_SPEED_DGTS, /* tenths of GT/s */
	GM_XGMI_WIDTH,
	GM_XGMI_SPEED_GBPS,
	GM_PCIE_L0_RECOVERY,
	GM_PCIE_REPLAY,
	GM_PCIE_REPLAY_ROLLOVER,
	GM_PCIE_NAK_SENT,
	GM_PCIE_NAK_RECEIVED,
	GM_XGMI_READ_KB,
	GM_XGMI_WRITE_KB,
	GM_XGMI_LINK_STATUS, /* per link: 1 up, 0 down */
	GM_GFXCLK_MHZ,       /* per XCD */
	GM_SOCCLK_MHZ,
	GM_UCLK_MHZ,
	_GPU_METRIC_N
};
struct gpu_metrics {
	int64_t format, content;
	/* MO_NONE = not given; scalars are element 0 */
	int64_t value[_GPU_METRIC_N][GPU_METRICS_ELEMENTS];
};

/* 0; -ENODATA: less than a header, or not as many bytes as the structure says (what is there is
 * decoded); -EPROTO: an unknown version or a malformed list of attributes (what was read before
 * is kept). ret is always filled; err says what was wrong with the bytes. */
int gpu_metrics_decode(const void *data, size_t n, struct gpu_metrics *ret, struct mo_error *err);
/* of the elements that are given; MO_NONE when none is */
int64_t gpu_metrics_mean(const struct gpu_metrics *m, enum gpu_metric metric);
/* elements with this value; MO_NONE when none is given */
int64_t gpu_metrics_count(const struct gpu_metrics *m, enum gpu_metric metric, int64_t value);
/* Appends what the metrics give under the keys of docs/health.md (area gpu); what no GPU can
 * have (ranges.h) becomes a problem of the probe instead. */
void gpu_metrics_readings(const struct gpu_metrics *m, struct probe *p);
