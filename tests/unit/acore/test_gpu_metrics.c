/* gpu_metrics: every version with values at the documented offsets, and every kind of damage.
 * Layouts are written here a second time, by hand, from the sizes and offsets of hardware facts
 * 1.5, so that a slip in the decoder's tables shows. The files of
 * ../shared/data/hardware/gpu_metrics are read when they are there. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

#include "agent/core/health/gpu_metrics.h"
#include "agent/core/health/reading.h"
#include "lib/base/fd.h"

#define SAMPLES MO_SOURCE_DIR "/../shared/data/hardware/gpu_metrics/"

static uint8_t blob[4096];

static void put(size_t at, size_t width, uint64_t v)
{
	for (size_t i = 0; i < width; i++)
		blob[at + i] = (uint8_t)(v >> (8 * i));
}

static size_t begin(size_t size, int content)
{
	memset(blob, 0xff, sizeof(blob));
	put(0, 2, size);
	blob[2] = 1;
	blob[3] = (uint8_t)content;
	return size;
}

static int decode(size_t n, struct gpu_metrics *m, const char *complaint)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int r = gpu_metrics_decode(blob, n, m, &err);

	if (complaint) {
		assert_non_null(err.text);
		assert_non_null(strstr(err.text, complaint));
	} else {
		assert_null(err.text);
	}
	return r;
}

struct expected {
	int content;
	size_t size, energy, accumulation, thm, pcie_width, replay, nak, gfxclk, links;
};
static const struct expected versions[] = {
	{ 4, 288, 24, 0, 0, 48, 88, 0, 240, 0 },
	{ 5, 360, 88, 0, 0, 112, 152, 168, 312, 0 },
	{ 6, 384, 88, 104, 116, 136, 176, 192, 336, 0 }, /* as Linux 6.11 had it */
	{ 6, 1664, 16, 32, 44, 60, 104, 120, 264, 0 },
	{ 6, 312, 16, 32, 44, 60, 104, 120, 264, 0 }, /* mainline: without xcp_stats */
	{ 7, 2208, 24, 40, 52, 68, 112, 128, 296, 264 },
	{ 8, 344, 24, 40, 52, 68, 112, 128, 296, 264 },
	{ 8, 3872, 24, 40, 52, 68, 112, 128, 296, 264 },
};

static void every_version(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(versions); i++) {
		const struct expected *e = &versions[i];
		struct gpu_metrics m;
		size_t n = begin(e->size, e->content);
		put(4, 2, 61);
		put(10, 2, 705);
		put(e->energy, 8, 1000000);
		put(e->pcie_width, 2, 16);
		put(e->pcie_width + 2, 2, 320);
		put(e->replay, 8, 812);
		for (size_t k = 0; k < 8; k++)
			put(e->gfxclk + 2 * k, 2, 2000 + 10 * k);
		if (e->accumulation)
			put(e->accumulation, 4, 5000);
		if (e->thm)
			put(e->thm, 4, 77);
		if (e->nak) {
			put(e->nak, 4, 400);
			put(e->nak + 4, 4, 30);
		}
		for (size_t k = 0; e->links && k < 8; k++)
			put(e->links + 2 * k, 2, k < 7 ? k != 3 : 0xffff);
		assert_int_equal(decode(n, &m, NULL), 0);
		assert_int_equal(m.content, e->content);
		assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 61);
		assert_int_equal(m.value[GM_SOCKET_POWER_W][0], 705);
		assert_int_equal(m.value[GM_TEMP_MEM_C][0], MO_NONE);
		assert_int_equal(m.value[GM_ENERGY][0], 1000000);
		assert_int_equal(m.value[GM_PCIE_WIDTH][0], 16);
		assert_int_equal(m.value[GM_PCIE_SPEED_DGTS][0], 320);
		assert_int_equal(m.value[GM_PCIE_REPLAY][0], 812);
		assert_int_equal(m.value[GM_ACCUMULATION][0], e->accumulation ? 5000 : MO_NONE);
		assert_int_equal(m.value[GM_SOCKET_THM][0], e->thm ? 77 : MO_NONE);
		assert_int_equal(m.value[GM_PCIE_NAK_SENT][0], e->nak ? 400 : MO_NONE);
		assert_int_equal(m.value[GM_PCIE_NAK_RECEIVED][0], e->nak ? 30 : MO_NONE);
		assert_int_equal(gpu_metrics_mean(&m, GM_GFXCLK_MHZ), 2035);
		assert_int_equal(gpu_metrics_count(&m, GM_XGMI_LINK_STATUS, 1),
				 e->links ? 6 : MO_NONE);
	}
}

/* MI200: what it does not count is unknown. */
static void version_1_3(void **state)
{
	struct gpu_metrics m;
	size_t n = begin(120, 3);

	put(6, 2, 61);
	put(22, 2, 480);
	put(54, 2, 1700);
	put(68, 4, 5);
	put(74, 2, 16);
	put(76, 2, 160);
	assert_int_equal(decode(n, &m, NULL), 0);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 61);
	assert_int_equal(m.value[GM_SOCKET_POWER_W][0], 480);
	assert_int_equal(gpu_metrics_mean(&m, GM_GFXCLK_MHZ), 1700);
	assert_int_equal(m.value[GM_THROTTLE_STATUS][0], 5);
	assert_int_equal(m.value[GM_PCIE_WIDTH][0], 16);
	assert_int_equal(m.value[GM_PCIE_SPEED_DGTS][0], 160);
	assert_int_equal(m.value[GM_ACCUMULATION][0], MO_NONE);
	assert_int_equal(m.value[GM_PCIE_REPLAY][0], MO_NONE);
}

static void all_ones_is_nothing(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(versions); i++) {
		struct gpu_metrics m;
		struct probe p;
		mo_desc_init(&probe_desc, &p);
		size_t n = begin(versions[i].size, versions[i].content);
		assert_int_equal(decode(n, &m, NULL), 0);
		gpu_metrics_readings(&m, &p);
		assert_int_equal(p.n_readings, 1); /* gpu_metrics_version */
		assert_string_equal(p.readings[0].key, "gpu_metrics_version");
		mo_desc_done(&probe_desc, &p);
	}
}

/* Of every version: a value that no GPU has is no value, the others stay, and the probe says which
 * and what it was. */
static void what_no_gpu_has_is_no_value(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		const char *key, *says;
	} bad[] = {
		{ 4, 65000, "temp_junction_c",
		  "gpu_metrics: temp_junction_c is 65000 C, which no GPU has (-40 to 200)" },
		{ 6, 300, "temp_mem_c", "temp_mem_c is 300 C" },
		{ 8, 32768, "temp_vrsoc_c", "temp_vrsoc_c is 32768 C" },
		{ 10, 40000, "power_w", "power_w is 40000 W" },
		{ 12, 101, "busy_pct", "busy_pct is 101 %" },
		{ 14, 65534, "mem_busy_pct", "mem_busy_pct is 65534 %" },
		{ 10, 0, "power_w", "busy_pct is 99 and power_w is 0" },
	};
	for (size_t i = 0; i < ELEMENTSOF(versions) * ELEMENTSOF(bad); i++) {
		const struct expected *e = &versions[i / ELEMENTSOF(bad)];
		size_t b = i % ELEMENTSOF(bad);
		struct gpu_metrics m;
		struct probe p;
		size_t n = begin(e->size, e->content);
		const uint64_t good[] = { 61, 55, 60, 705, 99, 30 };
		for (size_t k = 0; k < ELEMENTSOF(good); k++)
			put(4 + 2 * k, 2, good[k]);
		put(e->gfxclk, 2, 2000);
		put(bad[b].at, 2, bad[b].value);
		mo_desc_init(&probe_desc, &p);
		assert_int_equal(decode(n, &m, NULL), 0);
		gpu_metrics_readings(&m, &p);
		assert_null(reading_find(&p, bad[b].key));
		assert_non_null(strstr(p.problem, bad[b].says));
		/* five of the six, the clock, the version */
		assert_int_equal(p.n_readings, 7);
		mo_desc_done(&probe_desc, &p);
	}
}

static void readings_of(struct probe *p, size_t n)
{
	struct gpu_metrics m;

	mo_desc_init(&probe_desc, p);
	assert_int_equal(decode(n, &m, NULL), 0);
	gpu_metrics_readings(&m, p);
}

static void clocks_links_and_counts_that_cannot_be(void **state)
{
	const struct expected *e = &versions[6];
	struct probe p;
	size_t n = begin(e->size, e->content);

	put(12, 2, 100);
	put(e->gfxclk, 2, 0); /* busy without a clock */
	put(e->replay, 8, 2000000000000);
	put(e->links, 2, 1);
	put(e->links + 2, 2, 0x1234);
	readings_of(&p, n);
	assert_null(reading_find(&p, "gfx_clock_mhz"));
	assert_null(reading_find(&p, "pcie_replay"));
	assert_null(reading_find(&p, "xgmi_links_up"));
	assert_non_null(strstr(p.problem, "busy_pct is 100 and gfx_clock_mhz is 0"));
	assert_non_null(strstr(p.problem, "pcie_replay is 2000000000000, which"));
	assert_non_null(strstr(p.problem, "the status of XGMI link 1 is 4660"));
	mo_desc_done(&probe_desc, &p);
	begin(e->size, e->content);
	put(12, 2, 0);
	put(e->gfxclk, 2, 0); /* asleep */
	put(e->gfxclk + 2, 2, 100);
	readings_of(&p, n);
	assert_int_equal(reading_value(&p, "gfx_clock_mhz"), 50);
	assert_null(p.problem);
	mo_desc_done(&probe_desc, &p);
	/* one XCD of which is nonsense */
	put(e->gfxclk + 4, 2, 60000);
	readings_of(&p, n);
	assert_null(reading_find(&p, "gfx_clock_mhz"));
	assert_non_null(strstr(p.problem, "gfx_clock_mhz is 60000 MHz"));
	mo_desc_done(&probe_desc, &p);
}

/* Each length of each version: never more is read than is there, and what is there stays right. */
static void truncated_anywhere(void **state)
{
	for (size_t i = 0; i < ELEMENTSOF(versions); i++) {
		const struct expected *e = &versions[i];
		for (size_t n = 0; n < e->size; n++) {
			struct gpu_metrics m;
			begin(e->size, e->content);
			put(4, 2, 61);
			put(e->replay, 8, 812);
			/* so that ASan sees a read beyond */
			uint8_t *heap = mo_alloc(n ? n : 1);
			memcpy(heap, blob, n);
			assert_int_equal(gpu_metrics_decode(heap, n, &m, NULL), -ENODATA);
			free(heap);
			assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], n >= 6 ? 61 : MO_NONE);
			assert_int_equal(m.value[GM_PCIE_REPLAY][0],
					 n >= e->replay + 8 ? 812 : MO_NONE);
		}
	}
}

static void structure_size_limits_too(void **state)
{
	struct gpu_metrics m;

	begin(1664, 6);
	/* the driver says 100 bytes, 1664 come */
	put(0, 2, 100);
	put(4, 2, 61);
	put(104, 8, 812);
	assert_int_equal(decode(1664, &m, "its size says 100 bytes, there are 1664"), -ENODATA);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 61);
	assert_int_equal(m.value[GM_PCIE_REPLAY][0], MO_NONE);
	put(0, 2, 3);
	assert_int_equal(decode(1664, &m, "its size says 3 bytes"), -EPROTO);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], MO_NONE);
}

static void unknown_versions(void **state)
{
	struct gpu_metrics m;

	begin(64, 99);
	assert_int_equal(decode(64, &m, "version 1.99 is not known"), -EPROTO);
	assert_int_equal(m.content, 99);
	begin(64, 4);
	blob[2] = 2;
	assert_int_equal(decode(64, &m, "version 2.4 is not known"), -EPROTO);
	assert_int_equal(decode(0, &m, "0 bytes are no header"), -ENODATA);
}

static size_t attribute(size_t at, unsigned id, unsigned type, unsigned instances, size_t width,
			uint64_t first)
{
	put(at, 8, instances | (uint64_t)id << 10 | (uint64_t)type << 20 | 7ULL << 24);
	for (size_t k = 0; k < instances; k++)
		put(at + 8 + k * width, width, first + k);
	return at + 8 + instances * width;
}

static void attributes_of_1_9(void **state)
{
	struct gpu_metrics m;

	begin(0, 9);
	size_t n = attribute(8, 0, 2, 1, 2, 61);
	n = attribute(n, 500, 6, 3, 8, 1);    /* a newer driver's attribute */
	n = attribute(n, 1, 3, 1, 2, 0xfffb); /* -5 degrees, signed */
	n = attribute(n, 9, 4, 1, 4, 123456);
	n = attribute(n, 31, 2, 8, 2, 1);    /* 1 2 3 ...: one is up */
	n = attribute(n, 33, 2, 40, 2, 100); /* more elements than are kept */
	n = attribute(n, 25, 6, 1, 8, 812);
	put(0, 2, n);
	put(4, 4, 7);
	assert_int_equal(decode(n, &m, NULL), 0);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 61);
	assert_int_equal(m.value[GM_TEMP_MEM_C][0], -5);
	assert_int_equal(m.value[GM_ACCUMULATION][0], 123456);
	assert_int_equal(gpu_metrics_count(&m, GM_XGMI_LINK_STATUS, 1), 1);
	assert_int_equal(gpu_metrics_mean(&m, GM_GFXCLK_MHZ), 103);
	assert_int_equal(m.value[GM_PCIE_REPLAY][0], 812);

	put(4, 4, 0xffffffff); /* a count that is a lie */
	assert_int_equal(decode(n, &m, "it ends before attribute 8"), -EPROTO);
	assert_int_equal(m.value[GM_PCIE_REPLAY][0], 812);
	put(4, 4, 7);
	put(8, 8, 1 | 9ULL << 20);
	assert_int_equal(decode(n, &m, "attribute 1 has the unknown type 9"), -EPROTO);
	put(8, 8, 1023 | 6ULL << 20);
	assert_int_equal(decode(n, &m, "attribute 1 of 7 goes beyond its end"), -EPROTO);
	put(0, 2, 6);
	assert_int_equal(decode(6, &m, "no count of attributes"), -EPROTO);
}

static void readings(void **state)
{
	struct gpu_metrics m;
	struct probe p;

	mo_desc_init(&probe_desc, &p);
	size_t n = begin(1664, 6);
	put(120, 4, 400);
	put(124, 4, 30);
	put(36, 4, 1);
	put(32, 4, 900);
	put(16, 8, 1000000);
	assert_int_equal(decode(n, &m, NULL), 0);
	gpu_metrics_readings(&m, &p);
	assert_true(reading_value(&p, "pcie_nak") == 430);
	assert_true(reading_value(&p, "prochot_residency") == 1);
	assert_true(reading_value(&p, "metrics_counter") == 900);
	assert_true(reading_value(&p, "energy_j") > 15.258 &&
		    reading_value(&p, "energy_j") < 15.260);
	assert_string_equal(reading_text(&p, "gpu_metrics_version"), "1.6");
	assert_null(reading_find(&p, "power_w"));
	mo_desc_done(&probe_desc, &p);
}

static int sample(const char *name, struct gpu_metrics *m)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("%s%s", SAMPLES, name);

	if (mo_read_file(path, GPU_METRICS_BYTES_MAX, &b) < 0)
		return 1;
	return gpu_metrics_decode(b.data ? b.data : "", b.len, m, NULL);
}

/* Values as they were published for real machines (ORIGIN: data/hardware/README.md). */
static void recorded_machines(void **state)
{
	struct gpu_metrics m, later;

	if (sample("recon-mi300x-v1_6-idle.bin", &m) == 1) {
		print_message("gpu_metrics samples are not here: not compared\n");
		return;
	}
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 42);
	assert_int_equal(m.value[GM_SOCKET_POWER_W][0], 120);
	/* this firmware says 100 % when idle */
	assert_int_equal(m.value[GM_PPT][0], m.value[GM_ACCUMULATION][0]);
	assert_int_equal(m.value[GM_PCIE_WIDTH][0], 16);
	assert_int_equal(sample("recon-mi300x-v1_9-load_a.bin", &m), 0);
	assert_int_equal(sample("recon-mi300x-v1_9-load_b.bin", &later), 0);
	assert_int_equal(m.value[GM_SOCKET_POWER_W][0], 705);
	double share = (double)(later.value[GM_PPT][0] - m.value[GM_PPT][0]) /
		       (double)(later.value[GM_ACCUMULATION][0] - m.value[GM_ACCUMULATION][0]);
	assert_true(share > 0.86 && share < 0.875);
	assert_int_equal(sample("synth-mi355x-v1_8-load.bin", &m), 0);
	assert_int_equal(m.value[GM_SOCKET_POWER_W][0], 1380);
	assert_int_equal(m.value[GM_MEM_MAX_BANDWIDTH_GBPS][0], 8000);
	assert_int_equal(sample("bad-empty.bin", &m), -ENODATA);
	assert_int_equal(sample("bad-header-v9_9.bin", &m), -EPROTO);
	assert_int_equal(sample("bad-truncated-v1_6.bin", &m), -ENODATA);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], 42);
	assert_int_equal(sample("allff-v1_6.bin", &m), 0);
	assert_int_equal(m.value[GM_TEMP_HOTSPOT_C][0], MO_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version),
		cmocka_unit_test(version_1_3),
		cmocka_unit_test(all_ones_is_nothing),
		cmocka_unit_test(what_no_gpu_has_is_no_value),
		cmocka_unit_test(clocks_links_and_counts_that_cannot_be),
		cmocka_unit_test(truncated_anywhere),
		cmocka_unit_test(structure_size_limits_too),
		cmocka_unit_test(unknown_versions),
		cmocka_unit_test(attributes_of_1_9),
		cmocka_unit_test(readings),
		cmocka_unit_test(recorded_machines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
