/* What the readings of a node mean: which device is probed when, baselines of this boot, what
 * counts as a finding and for how long, what the controller is sent. Pure: the shell
 * (agent/health.c) starts the probes that it names and gives it what they read.
 *
 *   health_due() names a probe -> the shell starts moe-probe or the check's program ->
 *   health_probe(), health_program() or health_failed() -> results
 *
 * A probe of one object judges the checks of its area whose `when` fits: periodic ones always;
 * preflight ones while no job of ours uses the object; failure ones while an order of the
 * controller is open (a thorough one: with programs of doubt); epilog ones at the first probe
 * after a job left. What needs two probes
 * (rates, shares) waits for the second. A finding counts when it was made `consecutive` times in
 * a row; the next probe then follows in HEALTH_AGAIN_US. OK clears at once: whether a node may be
 * used again is the controller's policy. UNKNOWN does nothing by itself, leaves an earlier
 * finding in place, and three in a row warn. */
#pragma once
#include "agent/core/health/gpu_work.h"
#include "lib/base/error.h"
#include "lib/model/health.h"
#include "lib/model/message.h"

/* from a finding that does not count yet to the next probe */
#define HEALTH_AGAIN_US 30000000LL
/* the same of what a job that left is to give back (checks with `settle`) */
#define HEALTH_SETTLE_AGAIN_US 1000000LL
/* of an order to check after a failure, and of one with programs of doubt; what has no answer then
 * is reported as it is */
#define HEALTH_BUDGET_US 60000000LL
#define HEALTH_DOUBT_BUDGET_US 120000000LL
#define HEALTH_UNKNOWN_MAX 3 /* in a row: warn */
#define HEALTH_PARALLEL 4    /* probes under way at once */

struct health_intervals {
	int64_t sensors_us, device_us, host_us, klog_us;
};
struct health;
/* first_version: of node_health; larger than any that an earlier agent of this node used (wall
 * clock seconds). */
struct health *health_new(const struct health_checks *checks, const char *boot_id,
			  const struct health_intervals *intervals, int64_t first_version);
struct health *health_free(struct health *h);
MO_DEFINE_CLEANUP(struct health, health_free)
/* What agent.yaml says of this machine, for checks that compare with it: bytes, 0 = any;
 * "SPX/NPS1" or "SPX", NULL = any. */
void health_expect(struct health *h, int64_t memory_bytes, const char *partition);
/* Turns a check off; false: there is none of that id. */
bool health_disable(struct health *h, const char *id);
/* NULL behind the last */
const struct health_check *health_check_at(const struct health *h, size_t i);
/* Objects to probe: real GPUs by address, cards that one of them is paired with, the host, its
 * log, its stack. Again after each discovery. expect_gpus: 0 = what was seen. */
void health_devices(struct health *h, const struct nodeinfo *info, int64_t expect_gpus,
		    int64_t now);
/* What the last discovery of this machine lacks, and why (NULL: nothing); nothing: nothing at
 * all is known. The check of reading "discovery" judges it, at the next probe of the host. */
void health_discovery(struct health *h, const char *why, bool nothing, int64_t now);
/* Devices (address, name) and areas (host, klog, stack) in which a process of the discovery or
 * of an agent before this one is stuck: they are not probed either. All of them. */
void health_held(struct health *h, char *const *devices, size_t n, int64_t now);
/* What the agent itself adds to the fingerprint; sent with the first probe of the stack. */
void health_settings(struct health *h, const struct stack_item *items, size_t n, int64_t now);
/* Slots that steps of ours use; n_steps: how many there are. Objects that become free get an
 * epilog probe at once. */
void health_busy(struct health *h, const int64_t *slots, size_t n_slots, size_t n_steps,
		 int64_t now);

/* ---- what a job that left gives back (checks with `settle`) */
enum health_release { RELEASE_DONE, RELEASE_WAITS, RELEASE_NOT };
/* Whether the GPUs of these slots are given back by the jobs that left them: as far as can be read,
 * what was not so before they came and what no other job uses. since: when that was first asked.
 * RELEASE_WAITS: it is looked at again, ask again after each answer. RELEASE_NOT is said once of a
 * finding: who comes after that knows. ret: which GPU and what, but for RELEASE_DONE; caller
 * frees. */
enum health_release health_release(struct health *h, const int64_t *slots, size_t n, int64_t since,
				   int64_t now, char **ret);

/* Wall clock minus `now` (CLOCK_BOOTTIME), for the times of results. */
void health_wall(struct health *h, int64_t offset_us);

/* ---- probes */
struct health_pass {
	int area;           /* enum probe_area */
	const char *object; /* of a probe */
	/* only what health_sensors() and health_traffic() tell; read oftener than the rest */
	bool sensors;
	const struct health_check *program; /* instead: its argv is run; object is "host" */
	/* a program that must not run beside a job: ended when health_busy() gets one */
	bool exclusive;
	int64_t since; /* PROBE_KLOG: last record that was judged, -1 = none */
};
/* The next probe that is due, now under way until its answer; false: none, ask again at
 * health_deadline(). */
bool health_due(struct health *h, int64_t now, struct health_pass *ret);
void health_tick(struct health *h, int64_t now); /* at the deadline, before health_due() */
int64_t health_deadline(const struct health *h); /* INT64_MAX: nothing will be due */
void health_probe(struct health *h, const struct probe *p, int64_t now);
/* No probe came: why. stuck: the process lives on, and the object is not probed again before
 * health_unstuck(). */
void health_failed(struct health *h, int area, const char *object, const char *why, bool stuck,
		   int64_t now);
/* Appends the addresses of GPUs that did not answer: a probe of the host asks the others only, so
 * that one wedged GPU does not hide the rest of the node. */
void health_silent(const struct health *h, char ***ret, size_t *n_ret);
/* Appends the addresses of the GPUs that a program of area gpu is given: all but those in which a
 * process hangs. */
void health_gpus(const struct health *h, char ***ret, size_t *n_ret);
void health_unstuck(struct health *h, int area, const char *object, int64_t now);
/* code: its exit status. problem: it could not run or was too late (the code does not matter
 * then). */
void health_program(struct health *h, const char *check, int code, const char *out, size_t n,
		    const char *problem, int64_t now);
/* it was ended for a job; it is due again when the node is free */
void health_cancel(struct health *h, const char *check, int64_t now);

/* ---- what cards move */
struct health_traffic {
	int64_t read_at;  /* MO_NONE: it cannot be read */
	int64_t moved_at; /* a good deal; MO_NONE: not since a job came */
};
/* Cards are read as often as GPUs for a while. */
void health_traffic_asked(struct health *h, int64_t now);
/* By RDMA of a card (PROBE_NIC, its name), by XGMI of a GPU (PROBE_GPU, its address). */
struct health_traffic health_traffic(const struct health *h, int area, const char *name);
/* Whether a GPU computes, by its address. */
struct gpu_work health_work(const struct health *h, const char *gpu);

/* ---- what GPUs do, in all: health_activity.c */
/* A value times the time over which it was read, and that time. */
struct health_sum {
	int64_t us;
	double sum;
};
struct health_activity {
	struct health_sum busy_pct, mem_pct, power_w;
};
/* Of the GPU with this address, since the agent began; of one that is not known, none. */
const struct health_activity *health_activity(const struct health *h, const char *gpu);

/* ---- the controller */
/* Every order to check that a sync reply repeated; those that are no longer due are forgotten. */
void health_orders(struct health *h, const struct command *commands, size_t n, int64_t now);
/* It has programs that a thorough order asks for. */
bool health_doubts(const struct health *h);
const struct node_health *health_results(struct health *h);
void health_acked(struct health *h, int64_t version); /* MO_NONE = none stored */
/* the controller does not have the newest version */
bool health_untold(const struct health *h);
/* since the last call something became known that jobs wait for: preflight, checks after a
 * failure */
bool health_awaited(struct health *h);
/* Appends the newest sensor values, those read since the last call. */
void health_sensors(struct health *h, struct gpu_sensors **ret, size_t *n_ret);
void health_nics(struct health *h, struct nic_sensors **ret, size_t *n_ret);
/* Appends the newest of all devices that were read, whoever has them. */
void health_newest(const struct health *h, struct gpu_sensors **gpus, size_t *n_gpus,
		   struct nic_sensors **nics, size_t *n_nics);

/* ---- over the agent's restarts */
bool health_unsaved(const struct health *h);
/* ret initialised; saved from now on */
void health_save(struct health *h, struct health_memory *ret);
void health_load(struct health *h, const struct health_memory *m); /* before health_devices() */
/* with health_save(): findings, and that preflight is done */
void health_keep(const struct health *h, struct health_memory *ret);
/* with health_load() */
void health_restore(struct health *h, const struct health_memory *m, int64_t now);
