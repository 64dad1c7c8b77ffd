/* A node's health: what the probe helper read, which checks judge it, and what they found.
 * Plain values; the judgement is agent/core/health/health.h, the policy of the cluster
 * daemon/core/state/health.h. Checks are data (config/health/): a rule over readings, or a
 * program with the exit codes of Nagios. Rules and numbers: hardware facts 1 and 4. */
#pragma once
#include "lib/base/desc.h"

/* ---- what was read */
enum probe_area { PROBE_GPU, PROBE_NIC, PROBE_HOST, PROBE_KLOG, PROBE_STACK, _PROBE_AREA_N };
extern const char *const probe_area_names[_PROBE_AREA_N]; /* gpu nic host klog stack */
struct reading {
	/* one of docs/health.md's list, such as ras_ue, pcie_width, temp_junction_c */
	char *key;
	double value; /* MO_NONE_F = text, or could not be read */
	/* "SPX", "4: ACTIVE" already reduced to "ACTIVE"; NULL = a number, or could not be read */
	char *text;
};
/* One device (or the host, its kernel log, its software stack) at one moment, read by one
 * short-lived process. */
struct probe {
	int area;     /* enum probe_area */
	char *object; /* bdf of a GPU, name of a NIC, "host" */
	/* unique_id, node_guid: with the boot id the key of its baseline; NULL = object */
	char *identity;
	int64_t mono_us; /* when, CLOCK_BOOTTIME of the node */
	/* why some or all of it could not be read (deadline, EBUSY during a reset, truncated
	 * gpu_metrics); NULL = complete */
	char *problem;
	struct reading *readings;
	size_t n_readings;
};
extern const struct mo_desc reading_desc, probe_desc;

/* What the probe of a GPU or NIC that is not there says in `problem`, and with it every finding
 * about it. */
#define PROBE_NO_DEVICE "no such device"

/* ---- checks, as data */
/* bits of health_check.when */
enum check_when {
	WHEN_PREFLIGHT = 1,
	WHEN_PERIODIC = 2,
	WHEN_FAILURE = 4,
	WHEN_EPILOG = 8,
	/* a program: after a failure whose class doubts the node where it began, and before that
	 * node comes back from the cordon of a GPU's finding */
	WHEN_DOUBT = 16
};
enum check_state { CHECK_OK, CHECK_WARN, CHECK_CRIT, CHECK_UNKNOWN, _CHECK_STATE_N };
extern const char *const check_state_names[_CHECK_STATE_N]; /* ok warn crit unknown */
/* a program's word of a GPU that it cannot try here, and how the text of its result begins, which
 * is CHECK_UNKNOWN and asks for nothing */
#define CHECK_SKIPPED "skipped"
enum check_action { ACTION_REPORT, ACTION_WARN, ACTION_CORDON, _CHECK_ACTION_N };
extern const char *const check_action_names[_CHECK_ACTION_N]; /* report warn cordon */
/* What of a reading is compared with the limits. */
enum check_measure {
	MEASURE_VALUE, /* the reading itself */
	/* growth since the first probe in this boot; what stood there before is `history` */
	MEASURE_SINCE_BOOT,
	MEASURE_PER_HOUR, /* growth per hour over the last `window_us` */
	/* growth of the reading / growth of `of` between two probes: residency, 0..1 */
	MEASURE_SHARE,
	MEASURE_LESS_OF,  /* `of` minus the reading: what is missing to the maximum */
	MEASURE_RATIO_OF, /* the reading / `of` */
	MEASURE_SAME,     /* text or value equal on all objects of the area on this node */
	/* text is one of `expect`, or that of the reading `of` (where there is one) */
	MEASURE_TEXT,
	_CHECK_MEASURE_N
};
extern const char *const check_measure_names[_CHECK_MEASURE_N];
/* Nodes that a check is for. */
/* gpu: a real one; nic: an RDMA card that a GPU is paired with */
enum check_needs { NEEDS_NOTHING, NEEDS_GPU, NEEDS_NIC, _CHECK_NEEDS_N };
extern const char *const check_needs_names[_CHECK_NEEDS_N]; /* nothing gpu nic */
struct health_check {
	char *id;          /* gpu.ras_ue */
	char *what, *next; /* what it means; what to do */
	char *source;      /* where its numbers are from */
	int area;          /* enum probe_area */
	int needs;         /* enum check_needs */
	int64_t when;      /* bits of enum check_when */
	/* reading "disk_free_bytes.*": each that begins so, the worst counts; "problem": what
	 * could not be read */
	char *reading, *of;
	int measure; /* enum check_measure */
	/* unknown = no such limit; above and below exclude the limit itself */
	double warn_above, crit_above, warn_below, crit_below;
	/* MEASURE_TEXT: anything else is `otherwise` */
	char **expect;
	size_t n_expect;
	/* enum check_state of a text that is not expected, or of a difference (MEASURE_SAME) */
	int otherwise;
	/* MEASURE_VALUE, MEASURE_LESS_OF: one more of what is counted (page, GPU, lane) is
	 * another finding: `count` of the result */
	bool rises;
	/* MEASURE_SINCE_BOOT: worst enum check_state of what the counter showed at the first
	 * probe in this boot: ok, warn or crit */
	int history;
	/* enum check_state when the reading is missing: ok (does not apply here) or unknown */
	int absent;
	int64_t window_us;   /* MEASURE_PER_HOUR; a program with WHEN_PERIODIC: how often */
	int64_t consecutive; /* findings in a row before it counts; 1 = at once */
	/* PROBE_GPU: what a job that left may take to give back: a finding counts only so long
	 * after it left, and the next launch on the GPU waits for the answer; 0 = none */
	int64_t settle_us;
	int action; /* enum check_action on CRIT; WARN never does more than warn */
	/* CRIT proves that a part of this node is broken: read from the part itself, and no
	 * program can cause it */
	bool hardware;
	/* its readings were seen on the real hardware that they are of; false: while a node is
	 * new, its CRIT is only reported */
	bool proven;
	bool enabled; /* the kill switch */
	/* a program instead of a reading: exit 0 ok, 1 warn, 2 crit, 3 unknown; first line of
	 * its output is the text. Area gpu: it is run once, with the addresses of the node's GPUs
	 * behind its own words, and says of each on a line: "ADDRESS STATE TEXT"; STATE is one of
	 * enum check_state or skipped */
	char **argv;
	size_t n_argv;
	/* further programs that must be installed; argv[0] always must */
	char **requires;
	size_t n_requires;
	/* PCRE2 with one group: the last number that it finds in the program's output is
	 * compared with the limits; NULL = by exit code */
	char *match;
	/* of the program; running over it is a finding of its own (unknown) */
	int64_t deadline_us;
};
struct health_checks {
	struct health_check *checks;
	size_t n_checks;
};
extern const struct mo_desc health_check_desc, health_checks_desc;

/* ---- what they found */
struct check_result {
	char *check, *object; /* gpu.ras_ue, 0000:05:00.0 */
	int state;            /* enum check_state */
	int action;           /* enum check_action: what the check asks for when CRIT */
	/* bits of enum check_when of the check; MO_NONE = unknown: it counts in preflight */
	int64_t when;
	/* CRIT stays until the next boot, whatever is done: a person may say that it is known */
	bool since_boot;
	bool hardware; /* of the check */
	bool unproven; /* not `proven` of the check; agents of 0.1 do not say it */
	/* where the counter stood that it rests on: another number is another finding; MO_NONE =
	 * it rests on none */
	int64_t count;
	char *text; /* one sentence: what it means, value, limit */
	char *next; /* what to do */
	char **evidence;
	size_t n_evidence; /* readings and kernel log lines it rests on */
	/* core time: in this state since; text and evidence are of then (they are renewed when
	 * the state changes, and every 10 minutes when they differ) */
	int64_t since, at;
};
extern const struct mo_desc check_result_desc;

/* ---- what an agent tells the controller (struct agent_sync); the whole of it replaces what was
 * reported before */
/* fingerprint: kernel, amdgpu, rocm, vbios, gpu_fw, nic_fw.mlx5, bios, cmdline, governor, ... ;
 * equal devices of a node are reported once */
struct stack_item {
	char *key, *value;
};
/* Newest sensor values of one GPU slot; not stored, like progress. */
/* at: core time when the controller heard them */
struct gpu_sensors {
	int64_t slot;
	double temp_c, mem_temp_c, power_w, clock_mhz, busy_pct, vram_used_bytes, throttle_pct;
	int64_t ue, ce, pcie_replay;
	int64_t at;
};
/* The same of an RDMA card that a GPU is paired with: counters since its driver was loaded. */
struct nic_sensors {
	char *name, *state;
	double rate_gbps;
	int64_t link_downed, carrier_down, symbol_error, link_error_recovery, rcv_errors,
		out_of_sequence, local_ack_timeout;
	int64_t at;
};
struct checked_attempt {
	int64_t job, attempt;
};
struct node_health {
	/* +1 whenever anything below changes; repeated until the controller acknowledged it */
	int64_t version;
	struct check_result *results;
	size_t n_results; /* everything that is not OK */
	int64_t ok;       /* checks x objects that are OK */
	/* every preflight check was made in this boot (a node without any: true at once) */
	bool preflight_done;
	/* it has checks of the on-failure set: a failed job's next attempt waits for them */
	bool failure_checks;
	/* CMD_CHECK orders that are done: results hold what the on-failure set found */
	struct checked_attempt *checked;
	size_t n_checked;
	struct stack_item *stack;
	size_t n_stack;
};
/* What an agent remembers of its node over its own restarts within one boot. */
struct health_moment {
	int64_t at;
	double value;
}; /* CLOCK_BOOTTIME */
struct health_counter {
	int area; /* enum probe_area */
	char *object, *identity;
	/* MEASURE_PER_HOUR and a check that `rises`: id of the check instead, because each has
	 * its own window or measure */
	char *reading;
	/* value at the first probe in this boot; 0 from when it was found to have begun anew */
	double base;
	int64_t seen;
	double last; /* newest probe, and its value */
	/* at the newest probe it was below `last`; counts when the next one says so too (some
	 * readings of gpu_metrics) */
	bool fell;
	int64_t restarts; /* times that it went backwards; MO_NONE = none */
	/* MEASURE_PER_HOUR: where it stood, oldest first, over the window; between two it grew
	 * evenly */
	struct health_moment *moments;
	size_t n_moments;
	/* area klog, whose readings are counts since the last probe: their sum. A check that
	 * `rises`, by its id: all rises, what it began with included */
	double total;
	char **lines;
	size_t n_lines; /* area klog: evidence */
};
struct health_memory {
	char *boot_id;    /* of another boot: nothing of it counts but the version */
	int64_t version;  /* of node_health, last used */
	int64_t klog_seq; /* last record of the kernel's log that was judged, -1 = none */
	int64_t gpus;     /* most GPUs that PCI listed in this boot */
	struct health_counter *counters;
	size_t n_counters;
	/* preflight_done: what was found (`area object` and ids of what was probed), taken
	 * over by an agent that starts soon after `at` (CLOCK_BOOTTIME) */
	int64_t at;
	bool preflight_done;
	struct check_result *results;
	size_t n_results;
	char **objects;
	size_t n_objects;
	char **checks;
	size_t n_checks;
};
extern const struct mo_desc health_moment_desc, health_counter_desc, health_memory_desc;
extern const struct mo_desc stack_item_desc, gpu_sensors_desc, nic_sensors_desc,
	checked_attempt_desc, node_health_desc;
