/* The agent's shell: one thread on sd-event. Sources queue steps_events; the turn gives them to the
 * pure core (agent/core/agent/steps.h) and carries out its effects in order. One direction, from below:
 *   queue (events that wait), paths, helper (children with a deadline), journal, cgroup
 *   <- fence, scan (checkpoints), sweep, discovery (this machine), ending (is it going down?)
 *   <- step_dir (one step: lock, socket, adoption), health (probes and checks)
 *   <- plain, reserve, unit (three ways to start a supervisor) <- start; link (controller) <- logs
 *   <- manager (turn, effects, start-up).
 * Nothing calls the manager: a source queues, or sets a mark and arms the turn. */
#pragma once
#include "agent/core/agent/discovery.h"
#include "agent/core/stepd/spool.h"
#include "agent/core/agent/steps.h"
#include "agent/ending.h"
#include "agent/helper.h"
#include "agent/journal.h"
#include "agent/options.h"
#include "lib/base/error.h"
#include "lib/loop/loop.h"
#include "lib/model/limits.h"

struct manager;

/* One step directory. */
struct step_dir {
	struct manager *manager;
	int64_t job, attempt;
	char *path; int fd;
	struct spool spool;
	struct journal journal;
	int lock_fd;                     /* held by us: its stepd is proved dead */
	bool gone;                       /* the journal ends with NOTE_GONE */
	bool forgotten;                  /* removed at the end of the turn: what starts now does not wait for it */
	bool *exited; size_t n_exited;   /* per local rank: NOTE_EXIT was read */
	/* connection to stepd */
	int socket; sd_event_source *source; struct mo_buf in;
	bool answered, up_told, silent_told;
	bool stop_logged, kill_logged;   /* orders are repeated until the step ended, log entries are not */
	int64_t quiet_since_us;          /* when an answer became due; 0 = none is */
	struct mo_timer *timer;
	struct helper *starter;          /* stepd's starting process */
	/* sweep */
	struct mo_timer *sweep_timer; int64_t sweep_step_us; bool sweeping;
};

struct logs; struct watch; struct scan; struct fence; struct discovery; struct link; struct unit_starter; struct reserve;
struct manager {
	const struct agent_config *config;
	sd_event *loop;
	char *boot_id, *instance;
	struct nodeinfo info;
	char *stepd_path, *discover_path, *ckpt_path, *probe_path;
	char *cgroup_base;               /* own cgroup2 directory, NULL none */
	int lock_fd;
	struct steps *core;
	struct mo_turn *turn; struct mo_timer *deadline;
	struct steps_event *queue; size_t n_queue;
	struct step_dir **steps; size_t n_steps;
	struct fence *fence;
	struct link *link;
	struct logs *logs;
	struct watch *watch;             /* NULL: health is off */
	struct scan **scans; size_t n_scans;
	struct unit_starter *units;      /* NULL: without systemd */
	struct reserve *reserve;         /* NULL: with systemd */
	struct discovery *discovery;
	bool started, draining, adopting;
	bool machine_changed;            /* discovery knows more than the last turn did */
	bool sync_due, news_due;         /* within a turn: sent at its end, with everything that the turn brought */
	struct ending end;
	bool fence_told;                 /* that the fence cannot be saved */
};

/* manager.c */
int manager_new(const struct agent_config *config, sd_event *loop, struct manager **ret, struct mo_error *err);
struct manager *manager_free(struct manager *m);
MO_DEFINE_CLEANUP(struct manager, manager_free)

/* discovery.c: fills manager.info, and again until it is complete. */
int discovery_new(struct manager *m, struct discovery **ret);
struct discovery *discovery_free(struct discovery *d);
void discovery_begin(struct discovery *d);
/* This machine as the controller knew it in this boot. Where the agent's own memory of this boot is lost, GPUs of it that are no longer on the bus are missing ones; true: some are. */
bool discovery_told(struct discovery *d, const struct nodeinfo *before);
/* What it lacks and why, NULL nothing; *ret_nothing: nothing is known. */
const char *discovery_lacks(const struct discovery *d, bool *ret_nothing);
/* Appends the devices and areas (host, klog, stack) in which a process hangs that cannot be ended; nothing before the first round ended. */
void discovery_held(const struct discovery *d, char ***ret, size_t *n_ret);

/* step_dir.c */
struct step_dir *step_dir_find(struct manager *m, int64_t job, int64_t attempt);     /* NULL: there is none */
struct step_dir *step_dir_new(struct manager *m, int64_t job, int64_t attempt);
struct step_dir *step_dir_free(struct step_dir *d);
/* Adoption at start: AE_SPOOLED_STEP for every directory, and its notes. */
void step_dirs_adopt(struct manager *m);
/* Writes launch.json durably; binding is planned here. 0 or a negative errno with err. */
int step_dir_spool(struct step_dir *d, const struct command *c, struct mo_error *err);
void step_dir_connect(struct step_dir *d);       /* now, and again until it answers or is proved dead */
void step_dir_order(struct step_dir *d, const struct stepd_order *o);
void step_dir_read(struct step_dir *d);          /* new notes of the journal -> AE_NOTE */
void step_dir_reread(struct step_dir *d);        /* the same from the journal's beginning */
void step_dir_lost(struct step_dir *d, const char *text); /* the lock is ours: reads the journal to its end, AE_STEPD_LOST */
void step_dir_started(struct step_dir *d, const char *problem); /* the start of its supervisor ended; problem NULL = stepd answers */
void step_dir_start_failed(struct step_dir *d, const char *text); /* in that way: nothing was started, or what was is heard of by its lock */
void step_dir_remove(struct step_dir *d);        /* from disk too; frees d */

/* reserve.c */
int reserve_new(struct manager *m, struct reserve **ret);
struct reserve *reserve_free(struct reserve *v);
bool reserve_take(struct reserve *v, const struct step_dir *d);  /* false: there is none */
/* unit.c */
int units_new(struct manager *m, struct unit_starter **ret, struct mo_error *err);  /* 1 = there is no systemd here */
struct unit_starter *units_free(struct unit_starter *u);
int units_start(struct unit_starter *u, struct step_dir *d, struct mo_error *err);

/* sweep.c */
void step_sweep(struct step_dir *d);             /* until nothing is found: AE_SWEPT */
/* scan.c */
void scan_start(struct manager *m, const struct command *c);
void scans_free(struct manager *m);
/* health.c; all accept NULL, health is off then */
int watch_new(struct manager *m, struct watch **ret);
struct watch *watch_free(struct watch *w);
void watch_devices(struct watch *w);             /* after each discovery */
void watch_steps(struct watch *w);               /* steps may have come or gone */
void watch_reply(struct watch *w, const struct sync_reply *r);
void watch_sync(struct watch *w, struct agent_sync *s);        /* what the controller does not have */
void watch_news(struct watch *w, struct agent_sync *s);        /* of that what jobs may wait for: no sensor values */
/* fence.c */
int fence_open(struct manager *m, struct mo_error *err);   /* queues AE_FENCE for each entry */
/* Also what an earlier call could not save. Nothing changed and nothing unsaved: 0 without touching the disk. */
int fence_save(struct fence *f, int64_t job, int64_t attempt, int64_t epoch);
struct fence *fence_free(struct fence *f);
/* link.c */
int link_new(struct manager *m, struct link **ret, struct mo_error *err);
struct link *link_free(struct link *l);
void link_hello(struct link *l);
void link_sync(struct link *l);
void link_news(struct link *l);
void link_answer(struct link *l, const struct query_answer *a);
/* logs.c */
int logs_new(struct manager *m, struct logs **ret);
struct logs *logs_free(struct logs *l);
void logs_query(struct logs *l, const struct command *c);
void logs_retain(struct logs *l);
