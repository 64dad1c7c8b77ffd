/* See ranges.h. */
#include "agent/core/health/ranges.h"

#include "agent/core/health/reading.h"

/* Silicon throttles at 100 to 110 C and switches off soon above; an MI355X draws 1400 W, and its
 * clocks end at 2.4 GHz; 10^12 packets are more than a link repeats in years. */
#define CELSIUS -40, 200, " C"
#define LIMIT_CELSIUS 40, 200, " C"
#define WATT 0, 5000, " W"
#define PERCENT 0, 100, " %"
#define COUNT 0, 1e12, ""
#define BUSY_PCT 50 /* from here on a GPU has a clock and draws power */
static const struct reading_range ranges[] = {
	{ "temp_junction_c", CELSIUS },
	{ "temp_mem_c", CELSIUS },
	{ "temp_vrsoc_c", CELSIUS },
	{ "temp_junction_crit_c", LIMIT_CELSIUS },
	{ "temp_mem_crit_c", LIMIT_CELSIUS },
	{ "power_w", WATT },
	{ "power_cap_w", WATT },
	{ "power_cap_default_w", WATT },
	{ "gfx_clock_mhz", 0, 10000, " MHz" },
	{ "busy_pct", PERCENT },
	{ "mem_busy_pct", PERCENT },
	{ "pcie_width", 0, 32, " lanes" },
	{ "pcie_width_max", 0, 32, " lanes" },
	{ "pcie_speed_gts", 0, 256, " GT/s" },
	{ "pcie_speed_max_gts", 0, 256, " GT/s" },
	{ "pcie_replay", COUNT },
	{ "pcie_l0_recovery", COUNT },
	{ "pcie_nak", COUNT },
	{ "vram_total_bytes", 0, 1e14, " bytes" },
};

const struct reading_range *reading_impossible(const char *key, double value)
{
	for (size_t i = 0; i < ELEMENTSOF(ranges); i++)
		if (mo_streq(ranges[i].key, key))
			return value >= ranges[i].least && value <= ranges[i].most ? NULL
										   : &ranges[i];
	return NULL;
}

char *reading_impossible_text(const struct reading_range *r, double value)
{
	return mo_printf("%s is %.15g%s, which no GPU has (%.15g to %.15g)", r->key, value, r->unit,
			 r->least, r->most);
}

void reading_contradictions(struct probe *p, const char *source)
{
	static const struct {
		const char *key, *says;
	} never_nothing[] = { { "gfx_clock_mhz", "has no clock" },
			      { "power_w", "draws no power" } };
	double busy = reading_value(p, "busy_pct");

	for (size_t i = 0; busy >= BUSY_PCT && i < ELEMENTSOF(never_nothing); i++)
		if (reading_value(p, never_nothing[i].key) == 0) {
			reading_drop(p, never_nothing[i].key);
			probe_problem(p, "%s: busy_pct is %g and %s is 0: no GPU that works %s",
				      source, busy, never_nothing[i].key, never_nothing[i].says);
		}
}
