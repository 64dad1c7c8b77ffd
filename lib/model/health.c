/* Descriptions of probes, checks and their results. */
#include "lib/model/health.h"

#include "lib/model/limits.h"

const char *const probe_area_names[_PROBE_AREA_N] = { "gpu", "nic", "host", "klog", "stack" };
const char *const check_state_names[_CHECK_STATE_N] = { "ok", "warn", "crit", "unknown" };
const char *const check_action_names[_CHECK_ACTION_N] = { "report", "warn", "cordon" };
const char *const check_measure_names[_CHECK_MEASURE_N] = { "value", "since_boot", "per_hour",
							    "share", "less_of",    "ratio_of",
							    "same",  "text" };

const char *const check_needs_names[_CHECK_NEEDS_N] = { "nothing", "gpu", "nic" };

static const struct mo_field reading_fields[] = {
	MO_D(reading, key, MO_STR, "what was read, such as ras_ue or temp_junction_c", .max = 128),
	MO_D(reading, value, MO_REAL, "the number; unset: a text, or it could not be read",
	     .omit = true),
	MO_D(reading, text, MO_STR, "the text; unset: a number, or it could not be read",
	     .omit = true, .max = 4096),
};
const struct mo_desc reading_desc = MO_DESC(reading, reading_fields);

static const struct mo_field probe_fields[] = {
	MO_D_ENUM(probe, area, probe_area_names, "kind of what was read"),
	MO_D(probe, object, MO_STR, "PCI address of a GPU, name of a NIC, or host", .max = 256),
	MO_D(probe, identity, MO_STR,
	     "unique id of the device: part of its baseline's key; unset: as the object",
	     .max = 256),
	MO_D(probe, mono_us, MO_INT, "when, CLOCK_BOOTTIME of the node in microseconds"),
	MO_D(probe, problem, MO_STR, "why some or all of it could not be read; unset: complete",
	     .max = 4096),
	MO_D_VEC(probe, readings, &reading_desc, "what was read", .max = MO_READINGS_MAX),
};
const struct mo_desc probe_desc = MO_DESC(probe, probe_fields);

static const struct mo_field health_check_fields[] = {
	MO_D(health_check, id, MO_STR, "name of the check, such as gpu.ras_ue", .max = 64),
	MO_D(health_check, what, MO_STR, "what a finding means"),
	MO_D(health_check, next, MO_STR, "what to do"),
	MO_D(health_check, source, MO_STR, "where its numbers are from"),
	MO_D_ENUM(health_check, area, probe_area_names, "kind of what it reads"),
	MO_D_ENUM(health_check, needs, check_needs_names,
		  "nodes that it is for: gpu: with a real one; nic: with one paired with a GPU"),
	MO_D(health_check, when, MO_INT,
	     "when it runs, bits: 1 preflight, 2 periodic, 4 failure, 8 epilog, 16 doubt"),
	MO_D(health_check, reading, MO_STR,
	     "key of the reading; with .* at its end: each that begins so, the worst counts"),
	MO_D(health_check, of, MO_STR, "key of the reading that it is compared with; unset: none"),
	MO_D_ENUM(health_check, measure, check_measure_names,
		  "what of the reading is compared with the limits"),
	MO_D(health_check, warn_above, MO_REAL,
	     "warn above this, itself excluded; unset: no such limit"),
	MO_D(health_check, crit_above, MO_REAL,
	     "crit above this, itself excluded; unset: no such limit"),
	MO_D(health_check, warn_below, MO_REAL,
	     "warn below this, itself excluded; unset: no such limit"),
	MO_D(health_check, crit_below, MO_REAL,
	     "crit below this, itself excluded; unset: no such limit"),
	MO_D_LIST(health_check, expect, MO_STRS, "texts that are as they should be"),
	MO_D_ENUM(health_check, otherwise, check_state_names,
		  "state of a text that is not expected, or of a difference"),
	MO_D(health_check, rises, MO_BOOL, "one more of what is counted is another finding"),
	MO_D(health_check, hardware, MO_BOOL, "crit proves that a part of this node is broken"),
	MO_D(health_check, proven, MO_BOOL,
	     "its readings were seen on the real hardware that they are of"),
	MO_D_ENUM(health_check, history, check_state_names,
		  "worst state of what a counter showed at the first probe in this boot"),
	MO_D_ENUM(health_check, absent, check_state_names,
		  "state when the reading is missing: ok (does not apply here) or unknown"),
	MO_D(health_check, window_us, MO_INT,
	     "per_hour: over how long; periodic program: how often; microseconds"),
	MO_D(health_check, consecutive, MO_INT, "findings in a row before it counts; 1: at once"),
	MO_D(health_check, settle_us, MO_INT,
	     "microseconds after a job left the GPU from when on a finding counts; 0: at once",
	     .omit = true),
	MO_D_ENUM(health_check, action, check_action_names,
		  "what it asks for when crit; a warning never does more than warn"),
	MO_D(health_check, enabled, MO_BOOL, "false: it is not made"),
	MO_D_LIST(health_check, argv, MO_STRS,
		  "program instead of a reading: exit 0 ok, 1 warn, 2 crit, 3 unknown"),
	MO_D_LIST(health_check, requires, MO_STRS, "further programs that must be installed"),
	MO_D(health_check, match, MO_STR,
	     "PCRE2 with one group: number in the program's output; unset: by exit code"),
	MO_D(health_check, deadline_us, MO_INT,
	     "microseconds that the program may take; longer is unknown"),
};
const struct mo_desc health_check_desc = MO_DESC(health_check, health_check_fields);

static const struct mo_field health_checks_fields[] = {
	MO_D_VEC(health_checks, checks, &health_check_desc, "those in force", .max = MO_CHECKS_MAX),
};
const struct mo_desc health_checks_desc = MO_DESC(health_checks, health_checks_fields);

static const struct mo_field health_moment_fields[] = {
	MO_D(health_moment, at, MO_INT, "when, CLOCK_BOOTTIME in microseconds"),
	MO_D(health_moment, value, MO_REAL, "where the counter stood"),
};
const struct mo_desc health_moment_desc = MO_DESC(health_moment, health_moment_fields);

static const struct mo_field health_counter_fields[] = {
	MO_D_ENUM(health_counter, area, probe_area_names, "kind of what it counts"),
	MO_D(health_counter, object, MO_STR, "PCI address of a GPU, name of a NIC, or host",
	     .max = 256),
	MO_D(health_counter, identity, MO_STR, "unique id of the device: another one begins anew",
	     .max = 256),
	MO_D(health_counter, reading, MO_STR,
	     "key of the reading; per_hour, or a check that rises: id of the check", .max = 128),
	MO_D(health_counter, base, MO_REAL,
	     "value at the first probe in this boot; 0: it began anew since", .omit = true),
	MO_D(health_counter, seen, MO_INT, "newest probe, CLOCK_BOOTTIME in microseconds",
	     .omit = true),
	MO_D(health_counter, last, MO_REAL, "value at the newest probe", .omit = true),
	MO_D(health_counter, fell, MO_BOOL,
	     "the newest value was below the one before, and does not count yet", .omit = true),
	MO_D(health_counter, restarts, MO_INT, "times that it went backwards; unset: none",
	     .omit = true),
	MO_D_VEC(health_counter, moments, &health_moment_desc,
		 "per_hour: where it stood over the window, oldest first", .omit = true,
		 .max = MO_MOMENTS_MAX),
	MO_D(health_counter, total, MO_REAL,
	     "klog: sum of all probes in this boot; a check that rises: of all rises",
	     .omit = true),
	MO_D_LIST(health_counter, lines, MO_STRS, "klog: lines that it rests on", .omit = true,
		  .max = 32),
};
const struct mo_desc health_counter_desc = MO_DESC(health_counter, health_counter_fields);

static const struct mo_field check_result_fields[] = {
	MO_D(check_result, check, MO_STR, "id of the check", .max = 64),
	MO_D(check_result, object, MO_STR, "what was probed", .max = 256),
	MO_D_ENUM(check_result, state, check_state_names, "what was found"),
	MO_D_ENUM(check_result, action, check_action_names,
		  "what the check asks for when it is crit"),
	MO_D(check_result, when, MO_INT,
	     "when the check runs, bits: 1 preflight, 2 periodic, 4 failure, 8 epilog, 16 doubt",
	     .omit = true),
	MO_D(check_result, count, MO_INT, "where the counter stood that it rests on", .omit = true),
	MO_D(check_result, since_boot, MO_BOOL, "it stays until the next boot", .omit = true),
	MO_D(check_result, hardware, MO_BOOL, "it proves that a part of the node is broken",
	     .omit = true),
	MO_D(check_result, unproven, MO_BOOL, "the check was not seen on the real hardware yet",
	     .omit = true),
	MO_D(check_result, text, MO_STR, "what it means, value and limit", .max = 4096),
	MO_D(check_result, next, MO_STR, "what to do", .max = 1024),
	MO_D_LIST(check_result, evidence, MO_STRS,
		  "readings and lines of the kernel's log that it rests on", .max = 32,
		  .most = MO_TEXT_MAX),
	MO_D(check_result, since, MO_TIME, "in this state since"),
	MO_D(check_result, at, MO_TIME, "when it was probed"),
};
const struct mo_desc check_result_desc = MO_DESC(check_result, check_result_fields);

static const struct mo_field health_memory_fields[] = {
	MO_D(health_memory, boot_id, MO_STR,
	     "boot of the node: of another one nothing but the version counts", .max = 64),
	MO_D(health_memory, version, MO_INT, "newest version of the node's health"),
	MO_D(health_memory, klog_seq, MO_INT,
	     "last record of the kernel's log that was judged; -1: none"),
	MO_D(health_memory, gpus, MO_INT, "most GPUs that PCI listed in this boot"),
	MO_D_VEC(health_memory, counters, &health_counter_desc, "where counters stood",
		 .max = MO_COUNTERS_MAX),
	MO_D(health_memory, at, MO_INT, "newest probe, CLOCK_BOOTTIME in microseconds",
	     .omit = true),
	MO_D(health_memory, preflight_done, MO_BOOL, "every preflight check was made in this boot",
	     .omit = true),
	MO_D_VEC(health_memory, results, &check_result_desc,
		 "what was found, everything that is not ok", .omit = true,
		 .max = MO_CHECK_RESULTS_MAX),
	MO_D_LIST(health_memory, objects, MO_STRS, "what was probed, as area and object",
		  .omit = true, .max = MO_CHECK_RESULTS_MAX),
	MO_D_LIST(health_memory, checks, MO_STRS, "ids of the checks that were in force",
		  .omit = true, .max = MO_CHECK_RESULTS_MAX),
};
const struct mo_desc health_memory_desc = MO_DESC(health_memory, health_memory_fields);

static const struct mo_field stack_item_fields[] = {
	MO_D(stack_item, key, MO_STR, "what: kernel, driver, firmware, a setting", .max = 128),
	MO_D(stack_item, value, MO_STR, "its version or value", .max = 1024),
};
const struct mo_desc stack_item_desc = MO_DESC(stack_item, stack_item_fields);

#define SENSOR_RANGE .least = -1000000, .most = MO_FIT_ITERATION
static const struct mo_field gpu_sensors_fields[] = {
	MO_D(gpu_sensors, slot, MO_INT, "slot of the GPU", .most = MO_GPU_INDEX_MAX),
	MO_D(gpu_sensors, temp_c, MO_REAL, "temperature, degrees Celsius", .omit = true,
	     SENSOR_RANGE),
	MO_D(gpu_sensors, mem_temp_c, MO_REAL, "temperature of its memory, degrees Celsius",
	     .omit = true, SENSOR_RANGE),
	MO_D(gpu_sensors, power_w, MO_REAL, "power, watts", .omit = true, SENSOR_RANGE),
	MO_D(gpu_sensors, clock_mhz, MO_REAL, "clock of its compute units, MHz", .omit = true,
	     SENSOR_RANGE),
	MO_D(gpu_sensors, busy_pct, MO_REAL, "share of the time in which it computed, percent",
	     .omit = true, SENSOR_RANGE),
	MO_D(gpu_sensors, vram_used_bytes, MO_REAL, "memory in use, bytes", .omit = true,
	     SENSOR_RANGE),
	MO_D(gpu_sensors, throttle_pct, MO_REAL,
	     "share of the time in which it was throttled, percent", .omit = true, SENSOR_RANGE),
	MO_D(gpu_sensors, ue, MO_INT, "uncorrectable memory errors since its driver was loaded",
	     .omit = true),
	MO_D(gpu_sensors, ce, MO_INT, "corrected memory errors since then", .omit = true),
	MO_D(gpu_sensors, pcie_replay, MO_INT, "PCIe packets sent again since then", .omit = true),
	MO_D(gpu_sensors, at, MO_TIME, "when it was read", .omit = true),
};
const struct mo_desc gpu_sensors_desc = MO_DESC(gpu_sensors, gpu_sensors_fields);

static const struct mo_field nic_sensors_fields[] = {
	MO_D(nic_sensors, name, MO_STR, "name of the RDMA device"),
	MO_D(nic_sensors, state, MO_STR, "state of its port", .omit = true),
	MO_D(nic_sensors, rate_gbps, MO_REAL, "rate of its link, Gbit/s", .omit = true,
	     SENSOR_RANGE),
	MO_D(nic_sensors, link_downed, MO_INT,
	     "how often the link went down since its driver was loaded", .omit = true),
	MO_D(nic_sensors, carrier_down, MO_INT, "how often the interface lost its carrier",
	     .omit = true),
	MO_D(nic_sensors, symbol_error, MO_INT, "symbol errors", .omit = true),
	MO_D(nic_sensors, link_error_recovery, MO_INT, "how often the link recovered from errors",
	     .omit = true),
	MO_D(nic_sensors, rcv_errors, MO_INT, "packets received with errors", .omit = true),
	MO_D(nic_sensors, out_of_sequence, MO_INT, "packets received out of order", .omit = true),
	MO_D(nic_sensors, local_ack_timeout, MO_INT, "acknowledgements that did not come in time",
	     .omit = true),
	MO_D(nic_sensors, at, MO_TIME, "when it was read", .omit = true),
};
const struct mo_desc nic_sensors_desc = MO_DESC(nic_sensors, nic_sensors_fields);

static const struct mo_field checked_attempt_fields[] = {
	MO_D(checked_attempt, job, MO_INT, "number of the job"),
	MO_D(checked_attempt, attempt, MO_INT, "number of the attempt"),
};
const struct mo_desc checked_attempt_desc = MO_DESC(checked_attempt, checked_attempt_fields);

static const struct mo_field node_health_fields[] = {
	MO_D(node_health, version, MO_INT, "rises with every change"),
	MO_D_VEC(node_health, results, &check_result_desc, "everything that is not ok",
		 .max = MO_CHECK_RESULTS_MAX),
	MO_D(node_health, ok, MO_INT, "how many are"),
	MO_D(node_health, preflight_done, MO_BOOL,
	     "every check that jobs wait for was made in this boot"),
	MO_D(node_health, failure_checks, MO_BOOL, "it has checks that run after a failure",
	     .omit = true),
	MO_D_VEC(node_health, checked, &checked_attempt_desc,
		 "attempts whose checks after a failure are done", .omit = true,
		 .max = MO_STEPS_PER_NODE_MAX),
	MO_D_VEC(node_health, stack, &stack_item_desc, "versions of its software and firmware",
		 .omit = true, .max = MO_STACK_ITEMS_MAX),
};
const struct mo_desc node_health_desc = MO_DESC(node_health, node_health_fields);
