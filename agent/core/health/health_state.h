/* State of a node's health. From below: health_state.c (its life, what can be asked of it) <-
 * health_counters.c, health_retained.c (what lasts), health_release.c (what a job gives back),
 * health_traffic.c (what cards move), health_activity.c (what GPUs do) <- health_rules.c (one
 * check against one probe) <- health_judge.c, health_lines.c (findings) <- health_report.c (the
 * controller, the disk) <- health.c (probes) <- health_answers.c (what they bring). */
#pragma once
#include "agent/core/health/health.h"

#define EVIDENCE_MAX 16
#define CHECKED_MAX 64 /* orders remembered until they are no longer repeated */

/* What a card moved; see health_traffic.c. */
struct traffic {
	double bytes, most;        /* at the last reading; a second, since a job came */
	int64_t read_at, moved_at; /* MO_NONE: not read; not since a job came */
};
/* What a GPU did; see health_activity.c. */
struct activity {
	struct health_activity sums;
	int64_t read_at; /* MO_NONE: not read */
	double energy_j; /* then */
};
/* One check on one object. */
struct verdict {
	const struct health_check *check;
	/* judged since the agent started, or cannot be while a job runs */
	bool probed;
	int state;                  /* enum check_state: as reported */
	bool skipped;               /* CHECK_UNKNOWN, for its program cannot be run on this node */
	int64_t bad, crit, unknown; /* findings in a row: of any kind, critical, unreadable */
	int64_t since, at;          /* wall clock */
	int64_t count;              /* of the counter, as reported; MO_NONE: it is none */
	char *text;
	char **evidence;
	size_t n_evidence;
	double last, last_of; /* MEASURE_SHARE: at the last probe; MO_NONE_F: none */
	/* programs */
	bool under_way;
	/* checks with `settle`: what the last probe found; NULL: nothing, or it could not tell */
	char *found;
	/* it was found before the job came, which did not leave it behind; or a launch was refused
	 * for it */
	bool known;
	int64_t started_at, next; /* next: INT64_MAX = not due by itself */
};
struct object {
	int area;
	char *name, *identity;
	int64_t *slots;
	size_t n_slots; /* GPU slots on it */
	struct verdict *verdicts;
	size_t n_verdicts;
	struct probe last; /* full one; area as given, n_readings 0 before the first */
	bool seen;         /* answered, or failed to, since the agent started */
	bool busy, epilog;
	bool silent;      /* its last probe of any kind had no answer */
	bool stuck, held; /* a process hangs in it: of its probe, of the discovery */
	bool under_way, sensors_only;
	int64_t asked_at, full_at; /* last probe; last one that was full and has its answer */
	int64_t next, next_sensors;
	/* its share of the first interval, so that probes do not come in bursts */
	int64_t spread_us;
	int64_t stuck_reported_at;
	int64_t freed_at; /* the last job left it, or may have (begun_anew); MO_NONE: none did */
	struct gpu_sensors sensors;
	bool sensors_new;
	/* metrics_counter and the four residencies at the last probe of any kind */
	double throttle_base[5];
	struct traffic traffic; /* PROBE_NIC: RDMA, PROBE_GPU: XGMI */
	struct activity activity;
	struct gpu_work work; /* PROBE_GPU */
};
/* job 0: before the node comes back, which waits until the programs have run. */
struct order {
	int64_t job, attempt, at;
	bool done, due;
	bool thorough; /* with the programs of WHEN_DOUBT */
};
struct health {
	struct health_check *checks;
	size_t n_checks;
	struct health_intervals intervals;
	char *boot_id;
	int64_t wall_offset;
	struct object **objects;
	size_t n_objects;
	size_t n_gpus, n_nics; /* objects of these areas */
	const char *walls;     /* reading device_walls */
	int64_t gpus_expected, gpus_seen;
	int64_t memory_expected;
	char *partition_expected; /* health_expect() */
	size_t n_steps;
	struct stack_item *settings;
	size_t n_settings;
	char *discovery;
	bool nothing_known; /* as health_discovery() said */
	/* only an agent before this one, of this boot, knew which jobs had just left devices:
	 * each is looked at as if one had */
	bool begun_anew;
	struct health_memory
		*retained; /* what is taken over from an agent before, NULL = nothing */
	struct order *orders;
	size_t n_orders;
	struct health_counter *counters;
	size_t n_counters;
	int64_t klog_seq;
	/* klog_seq was loaded, or the log was read once: what comes now is new */
	bool klog_known;
	struct node_health reported; /* newest version */
	int64_t acked;               /* MO_NONE: nothing */
	bool awaited;                /* health_awaited() */
	bool unsaved;
	int64_t traffic_until;       /* somebody asks what cards move */
	int64_t probed_at, saved_at; /* counters: taken last, written last */
};

/* health_state.c */
void health_object_free(struct object *o);
struct object *health_object(const struct health *h, int area, const char *name);
/* enabled, and this node is one that it is for */
bool health_applies(const struct health *h, const struct health_check *c);
bool health_idle(const struct health *h, const struct object *o);
/* It is a program that uses the GPUs; one is under way. */
bool health_loads(const struct health_check *c);
bool health_loaded(const struct health *h);
/* the oldest that is not done */
const struct order *health_open_order(const struct health *h);
/* when it is answered as it is; INT64_MAX: a node's way back waits for its checks */
int64_t health_order_ends(const struct order *order);
/* the order asks for this check */
bool health_ordered(const struct order *order, const struct health_check *c);
/* a process hangs in it */
bool health_blocked(const struct object *o);
/* something was found that does not count yet */
bool verdict_pending(const struct verdict *v);
/* health.c */
/* between full probes */
int64_t health_interval(const struct health *h, const struct object *o);
/* health_counters.c: what counters did in this boot. */
/* those of the object's checks, at a full probe */
void health_counters_take(struct health *h, const struct object *o, const struct probe *p,
			  int64_t now);
/* growth per hour in the check's window; MO_NONE_F: never probed */
double health_per_hour(const struct health *h, const struct object *o,
		       const struct health_check *c);
/* Adds what a pass over the kernel's log counted; the sum of this boot. lines: new evidence, kept
 * up to EVIDENCE_MAX. */
double health_klog_total(struct health *h, const struct object *o, const char *rule, double more,
			 const struct probe *p);
const struct health_counter *health_counter_find(const struct health *h, const struct object *o,
						 const char *reading);
/* before a probe; true: another device is in its place, and what was known of counters is gone */
bool health_counters_of(struct health *h, const struct object *o, const char *identity);

/* health_retained.c */
/* to a new object */
void health_retained_apply(const struct health *h, struct object *o);

/* health_traffic.c */
void health_traffic_begin(struct object *o); /* a job comes */
void health_traffic_take(struct object *o, const struct probe *p, int64_t now);

/* health_activity.c */
void health_activity_take(struct object *o, const struct probe *p, int64_t now);

/* health_rules.c: what one probe found. */
struct finding {
	/* enum check_state; -1: no verdict yet (a second probe is needed) */
	int state;
	int64_t count;       /* where the counter stands; MO_NONE: it is none */
	bool early;          /* a job has just left, and may be giving it back */
	bool clears_nothing; /* OK for want of a reading: an earlier finding stays */
	bool skipped;        /* CHECK_UNKNOWN: nobody tried, so it is no failure to be told of */
	char *text;          /* NULL for OK */
	char **evidence;
	size_t n_evidence;
};
/* p: with derived readings. */
void rule_pass(const struct health *h, const struct object *o, struct verdict *v,
	       const struct probe *p, struct finding *ret);

/* health_release.c: what a job that left gives back. */
/* it left, and the check leaves it time until later than now */
bool health_settles(const struct object *o, const struct health_check *c, int64_t now);
void health_taken(struct object *o); /* a job comes */
/* What a program of ours had of the GPUs comes back as late as what a job had. */
void health_program_left(struct health *h, const struct health_check *c, int64_t now);
/* what a probe found of the check, before it counts */
void health_note(struct verdict *v, const struct finding *f);

/* health_judge.c */
void verdict_judge(struct health *h, struct verdict *v, const struct finding *f, int64_t now);
void health_judge_program(struct health *h, struct verdict *v, int code, const char *out, size_t n,
			  const char *problem, int64_t now);

/* health_lines.c: a program that says a line of each GPU. */
void health_judge_lines(struct health *h, const struct health_check *c, int code, const char *out,
			size_t n, const char *problem, int64_t now);

/* health_report.c */
/* after every change: orders that are done, a new version */
void health_settle(struct health *h, int64_t now);
