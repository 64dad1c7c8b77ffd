/* The simulator: production's controller (daemon, its store on a disk that forgets) and of
 * production's agents cores, fence, link and journals in virtual time, on 64 nodes with a network,
 * disks, processes and people that fail. It knows the truth (which process lives, which checkpoint
 * is whole) that they can only infer, and holds them to the invariants of check.h after every step.
 * One seed = one run, the same every time. Files: main (options, summary), states (docs/states.md),
 * world (clock, queue, chance, counts), control (who waits for the controller, its crashes, what it
 * stored), moed and seams (what is about it), wall (its clocks), past (backups), node (an agent and
 * what it is on), shell (what of it is production's), network (messages), health (what it finds of
 * its node), spool (its steps on disk), notes and writer (their journals, as stepd writes them),
 * stepd (supervisor's shell and its processes), outside (their machine), train (what the ranks do),
 * engine (beside their steps), user and request (people), fault (what breaks), the check files
 * (invariants), history (what leaves by its age). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/agent/agent_core.h"
#include "daemon/core/core.h"
#include "tests/core_inside.h"

#define NODES 64
#define GPUS 4
#define MS 1000LL
#define S 1000000LL
#define JOBS_MAX 509 /* places for them: ids leap */
#define RESTORES_MAX 3
#define SIM_HANG_PERCENT 10 /* a run is minutes long */
#define HIGH_LOSS 10        /* no healthy one is */
#define KEEP 2              /* checkpoint.keep of some jobs */
#define HISTORY (40 * S)

enum fault {
	F_RANK_SIGNAL,
	F_RANK_EXIT_1,
	F_RANK_EXIT_0,
	F_RANK_STOPPED, /* and the attempt stands until it is ended */
	F_STEPD_KILL,
	F_STEPD_HANG,
	F_SLOW,
	F_HANG,
	F_AGENT_KILL,
	F_REBOOT,
	F_POWER_OFF,
	F_PARTITION,
	F_CONTROLLER_KILL,
	F_CONTROLLER_PAUSE,
	F_CONTROLLER_HOST,
	F_CRASH_BEFORE_STORE,
	F_CRASH_BEFORE_REPLY,
	F_CRASH_BETWEEN_REPLIES,
	F_CRASH_STARTING,
	F_AGENT_BETWEEN_EFFECTS,
	F_AGENT_WITHIN,
	F_AGENT_WITH_POWER,
	F_STEPD_BETWEEN_EFFECTS,
	F_STEPD_WITHIN,
	F_JOURNAL_FAILS,
	F_LOSE_REQUEST,
	F_LOSE_REPLY,
	F_DELAY,
	F_DUPLICATE,
	F_OLD_REPLY,
	F_PORT_BUSY,
	F_FILE_UNREAD,
	F_FILE_HANGS,
	F_EXEC_FAILS,
	F_BIND_FAILS,
	F_SPOOL_FAILS,
	F_FENCE_FAILS,
	F_GPU_LATE,
	F_GPU_HELD,
	F_UNKILLABLE,
	F_TORN,
	F_ALTERED,
	F_ROTTEN,
	F_SUSPECT,
	F_VERIFIED,
	F_SCAN_FAILS,
	F_OLD_SPOOL,
	F_PRUNED,
	F_SAME_DIR,
	/* the machine ends steps, or goes down in order */
	F_STOPPED_OUTSIDE,
	F_UNIT_KILLED,
	F_SHUTDOWN,
	F_SHUTDOWN_GIVEN_UP,
	F_SHUTDOWN_ACKED,
	F_SHUTDOWN_UNACKED,
	/* an older state of the controller is put back */
	F_CLOCK_AHEAD,
	F_CLOCK_SET,
	F_CLOCK_MOVED,
	F_CLOCK_HELD,
	F_BACKUP,
	F_RESTORE,
	F_RESTORE_AGAIN,
	F_BIT_FLIPPED,
	F_BIT_TOLD,
	F_ADOPTED,
	F_UNKNOWN_JOB,
	F_UNKNOWN_ATTEMPT,
	F_TRIMMED,
	F_RESOLVE_KILL,
	F_RESOLVE_GONE,
	F_CHECK_CRIT,
	F_CHECK_MASS,
	F_CHECK_OK,
	F_CHECK_LATE,
	F_CORDONED,
	F_CORDON_CAPPED,
	F_CHECK_WAIT,
	/* restart --from: what it names, when it is said, what follows */
	F_FROM_ZERO,
	F_FROM_NEWEST,
	F_FROM_OLDER,
	F_FROM_SUPERSEDED,
	F_FROM_TORN,
	F_FROM_SAVING,
	F_FROM_TAINTED,
	F_FROM_UNKNOWN,
	F_FROM_BEYOND,
	F_FROM_QUEUED,
	F_FROM_RUNNING,
	F_FROM_RECOVERING,
	F_FROM_STOPPING,
	F_FROM_PAUSED,
	F_FROM_OVER,
	F_FROM_TAKEN,
	F_FROM_REFUSED,
	F_FROM_WAITS,
	/* history is short in some seeds */
	F_FORGOTTEN,
	F_STILL_NEEDED,
	/* ranks that are slow by themselves, and what is said of them */
	F_SLOW_GPU,
	F_STRAGGLER,
	F_STRAGGLER_CLEARED,
	F_STRAGGLER_LEFT,
	/* losses that are bad, and what follows */
	F_LOSS_BROKEN,
	F_LOSS_OF_DATA,
	F_LOSS_BLIP,
	F_LOSS_HIGH,
	F_TAINTED,
	F_WENT_BACK,
	F_WENT_BACK_MAX,
	F_TAINTED_NAMED,
	/* what programs do beside their steps */
	F_START_LONG,
	F_COMPILE_LONG,
	F_SAVE_LONG,
	F_SAVE_UNSAID,
	F_SAVE_ASIDE,
	F_EVALUATION,
	F_EVALUATION_UNSAID,
	F_HANG_CLEARED,
	_FAULT_N
};
extern const char *const fault_names[_FAULT_N];

struct sim;
struct backup;
struct simstep;
struct shell;
struct promised;
/* A rank's process (with its children, which outlive it until the tree is killed). */
struct proc {
	struct simstep *step;
	int64_t rank, gpu, pid;
	bool started, alive, stuck, reported;
	bool frozen; /* stopped by a signal */
	int64_t code, signal, stuck_until;
	bool child;
};
/* One attempt of a job on one node: spool entry, journal, supervisor, processes. */
struct simstep {
	int node;
	int64_t job, attempt;
	int64_t boot; /* boot it was made in */
	struct launch launch;
	bool spooled;     /* the entry is on disk */
	bool stepd, hung; /* the supervisor lives; it is stopped */
	int64_t hung_at;  /* when it was last stopped or let go on, 0 never */
	struct stepd_core *core;
	/* its journal: as a supervisor writes it (notes.h), as an agent reads it (spool.h) */
	struct writer *writer;
	struct reader *reader;
	struct shell *queue; /* to which reading brings notes */
	int last_kind;       /* of its notes */
	int64_t in_segment;
	bool done; /* the supervisor ends when all is written */
	/* its segments are short: so many of its first notes are deleted */
	bool bulky;
	size_t trimmed;
	struct proc *procs;
	size_t n_procs;
	bool forked, killing;
	int64_t tick_at;
	struct stepd_event *held;
	size_t n_held; /* what came while hung */
	/* of the supervisor: events for an earlier one are dropped */
	int64_t instance;
	bool ordered, resolved; /* a stop or kill reached it; a person wants its end */
	int64_t outside_at;     /* its machine stops it since, 0 not */
	int64_t freed_at; /* its GPUs are given back by the job before; 0: that was not asked */
};
struct order {
	int64_t job, attempt, done_at;
};
struct simnode {
	char name[16];
	bool power, agent_up;
	int64_t boot, instance; /* counters */
	struct agent_core *agent;
	int64_t tick_at;
	struct shell *shell; /* shell.h */
	/* what its fence has promised: an epoch, and attempts of this boot */
	int64_t obeyed;
	struct promised *promised;
	size_t n_promised;
	int64_t cut_until;           /* no message passes */
	int64_t bad_since, ok_since; /* when the controller could (not) reach it */
	/* last time something went wrong between it and the controller */
	int64_t trouble_at;
	struct proc *gpus[GPUS]; /* who uses the slot in truth */
	/* until then the slot takes slow_pct of the time of a healthy one for a step */
	int64_t slow_until[GPUS], slow_pct[GPUS];
	struct node_health health; /* what its agent finds */
	/* looked_at: its preflight checks are done from then on */
	int64_t health_acked, looked_at;
	bool leaving;       /* goes down in order */
	int64_t idle_since; /* leaving: no supervisor lives since, 0 one does */
	struct order *orders;
	size_t n_orders; /* to check after a failure */
};
/* own_us: without waiting for its peers. slow: it was, in some step of the attempt. */
struct pace_of_rank {
	int64_t own_us;
	bool slow, slow_now;
};
/* What a job's program does beside its steps (engine.c). */
enum act { ACT_COMPUTE, ACT_FILES, ACT_SLEEP, ACT_DISK };
enum saves { SAVES_SHORT, SAVES_LONG, SAVES_UNSAID, SAVES_ASIDE };
struct engine_times {
	bool starts_long, compiles_long, one_starts, steps_asleep, eval_unsaid;
	int long_act, saves; /* enum act of what takes long; enum saves */
	int64_t eval_every;  /* steps, 0 never */
};
/* What a job does in truth, per attempt. */
struct attempt {
	int64_t job, number, world, iteration, steps, every, step_us, resume, length;
	struct proc **ranks;
	const struct engine_times *engine;
	int act; /* enum act; one: of rank 0, for which the others wait */
	bool one, compiled, paused;
	int64_t evaluated;          /* after that step */
	struct pace_of_rank *paces; /* of the step at hand */
	int64_t took_us;            /* by the slowest of them */
	/* broken_at: first death that is no orderly end, 0 none */
	int64_t n_started, n_alive, broken_at;
	/* cut: samples of it went with a lost controller */
	bool training, ending, lossy, cut;
	int64_t stands_until; /* its files grow */
	int64_t saving;       /* iteration being saved, 0 none */
	/* its loss is no number from that iteration on, 0 never; it is odd_loss in these */
	int64_t broken_from, odd_from, odd_until;
	double odd_loss;
};
/* A checkpoint in the shared file system. given_up: a user went back behind it since; stamp: what
 * its manifest would say; altered: its files changed after the controller had their manifest, whose
 * stamp `was`. */
struct file {
	int64_t iteration;
	bool complete, torn, given_up, altered;
	bool rotten; /* whoever loads it dies */
	bool named;  /* and came back to it by name since: it may be taken, at once or later */
	int64_t changed_at, altered_at, stamp, was;
	/* saved by that attempt with broken weights, or in a spell of bad losses; told: number of
	 * the restore since which the controller knows that they are broken, MO_NONE it does not */
	int64_t by, told;
	bool broken, odd;
};
struct truth { /* of one job id */
	int64_t id;
	int64_t stopping_since;     /* as the controller has it, 0 not */
	bool stored;                /* by some controller, maybe one that is lost */
	int64_t submitted, started; /* in truth */
	bool unheard; /* the attempt before the last placed one was not heard to its end */
	/* the highest attempt that a lost controller had decided to end */
	int64_t decided;
	int64_t harmed; /* the highest attempt of which something broke */
	struct attempt *now;
	/* processes of any attempt, without those that cannot be killed */
	int64_t live;
	struct file *files;
	size_t n_files;
	bool acked, cancel_acked, pause_acked;
	int64_t attempt_at_cancel;
	int64_t step_us, length;
	struct engine_times engine;
	bool from_asked;
	int64_t from; /* restart --from FROM, until an attempt follows */
	/* its newest straggler was named then; nodes that it left for one since that restore */
	int64_t named_at, n_left, left_restores;
	int64_t breaks_at; /* data there breaks the weights, 0 none */
	int64_t failed;    /* the newest attempt that the controller called so */
	/* its damaged checkpoints stay so: it may wait for a person at the end */
	bool unrepaired;
};
/* boot: of the node that is fenced, as the person saw it */
struct op {
	int type;
	int64_t key, job, value;
	bool flag;
	int form;
	int node;
	const char *when;
	char boot[64];
	int64_t tries;
	bool done;
};

enum message_kind { M_HELLO, M_SYNC, M_URGENT, M_USER };
struct message {
	int kind;
	int node;
	int64_t request, instance;
	char *text; /* of an agent */
	size_t n;
	struct op *op;
};
struct answer {
	int kind;
	int node;
	int64_t request, instance;
	bool old;
	int status; /* 0: nobody answered */
	int64_t after_s;
	char *text;
	size_t n;
};

enum event_kind {
	K_MESSAGE,
	K_ANSWER,
	K_TURN,
	K_TIMER,
	K_CONTROLLER_UP,
	K_AGENT_TICK,
	K_AGENT_UP,
	K_AGENT_EVENT,
	K_STEP_TICK,
	K_STEP_EVENT,
	K_WRITTEN,
	K_FORK,
	K_STUCK,
	K_STUCK_END,
	K_EXIT,
	K_ITERATE,
	K_SAVED,
	K_PHASE,
	K_BOOT,
	K_UNIT_KILL,
	K_LEAVE,
	K_STAY,
	K_USER,
	K_RETRY,
	K_FAULT,
	K_SILENT,
	K_HUNG_END,
	K_CHECK,
	_KIND_N
};
struct queued {
	int64_t at;
	uint64_t seq;
	int kind;
	int64_t a, b;
	void *p, *q;
};

struct control {
	/* core: of the process that runs. shadow: fed with what was stored, as a restarted
	 * controller would be */
	struct core *core, *shadow;
	struct journal *journal; /* with which the shadow reads */
	int64_t seq;             /* what it has read */
	/* dark: its machine died with it: no connection breaks, none is refused */
	bool up, turn_due, dark;
	int64_t up_since, down_since, paused_until, paused_for, request, instance;
	/* wall.c: core time is ours and skew; the wall clock is so much ahead; its machine booted
	 * then */
	int64_t skew, wall_ahead, wall_was, boot, boot_at;
	bool synced, blurred, held;
	bool flipped;             /* a bit of its disk is another than it wrote */
	struct backup *restoring; /* what its next start begins with, NULL its own */
	struct asked *asked;
	size_t n_asked; /* messages that it has not answered */
};
struct sim {
	uint64_t seed, rng, seq;
	int64_t now, faults_until, end;
	/* quiet: no new faults and no new work: everything must come to rest */
	bool trace, faults, quiet;
	struct queued *heap;
	size_t n_heap;
	struct control ctl;
	struct simnode nodes[NODES];
	struct simstep **steps;
	size_t n_steps;
	struct attempt **attempts;
	size_t n_attempts;
	int64_t stamps; /* of files */
	struct backup **backups;
	size_t n_backups;
	int64_t n_restores;
	struct truth jobs[JOBS_MAX];
	struct op **ops;
	size_t n_ops;
	int64_t next_pid, next_key, n_submits, n_turns, n_events;
	/* of all seeds: [_FAULT_N], [_JOB_STATE_N * _JOB_STATE_N] */
	int64_t *fault_counts, *move_counts;
};

/* world.c */
uint64_t sim_random(struct sim *s);
int64_t sim_between(struct sim *s, int64_t low, int64_t high); /* inclusive */
bool sim_chance(struct sim *s, double p);
/* chance while faults happen; counted */
bool sim_fault(struct sim *s, int fault, double p);
void sim_at(struct sim *s, int64_t at, int kind, int64_t a, int64_t b, void *p, void *q);
bool sim_pop(struct sim *s, struct queued *ret);
void sim_trouble(struct sim *s, int node);
void sim_trace(struct sim *s, const char *fmt, ...) _printf_(2, 3);
_Noreturn void sim_violation(struct sim *s, const char *fmt, ...) _printf_(2, 3);
struct truth *sim_job(struct sim *s, int64_t id);
/* the newest of its job */
struct core *sim_core(const struct sim *s);
int64_t sim_history(const struct sim *s); /* for so long ended jobs are kept, 0 ever */
struct attempt *sim_attempt(struct sim *s, int64_t job, int64_t number);
struct attempt *sim_past_attempt(const struct sim *s, int64_t job, int64_t number);
void sim_harm(struct sim *s, int64_t job, int64_t attempt);

/* control.c */
void control_start(struct sim *s);
void control_crash(struct sim *s, int64_t down_us);
void control_message(struct sim *s, struct message *m); /* arrived; takes it */
void control_turn(struct sim *s, const struct queued *e);
void control_timer(struct sim *s, const struct queued *e);
bool control_asked(const struct sim *s, int64_t request); /* it has not answered that yet */
void message_free(struct message *m);
void answer_free(struct answer *a);
void control_spare(struct sim *s); /* it does not die any more within what it does */
void control_free(struct sim *s);

/* node.c */
void node_boot(struct sim *s, int node);
void node_boot_name(const struct simnode *n, char buf[static 64]);
/* power is lost; it comes back after off_us, INT64_MAX = not by itself */
void node_lose(struct sim *s, int node, int64_t off_us);
/* the same, at the end of what runs there */
void node_off(struct sim *s, int node, int64_t off_us);
void agent_up(struct sim *s, int node);
void agent_kill(struct sim *s, int node, int64_t down_us);
void agent_event(struct sim *s, int node, struct agent_event *e);
/* copies note, scan, progress */
void agent_later(struct sim *s, int node, int64_t delay, const struct agent_event *e);
void agent_event_free(struct agent_event *e);
void agent_tick(struct sim *s, int node);
bool node_runs_images(const struct sim *s, int node);
void node_free(struct sim *s, int node);
struct simstep *step_of(const struct sim *s, int node, int64_t job, int64_t attempt);
int sim_node(const struct sim *s, const char *name);

/* health.c */
void node_finding(struct sim *s, int node, const char *check, int action); /* CRIT from now on */
void node_well(struct sim *s, int node); /* nothing is found any more */
/* Orders to check: new ones are begun, those that are said no more are forgotten. */
void health_reply(struct sim *s, struct simnode *n, const struct sync_reply *r);

/* network.c */
void network_answer(struct sim *s, struct answer *a); /* arrived; takes it */

/* stepd.c */
void stepd_start(struct sim *s, struct simstep *st);
void stepd_event(struct sim *s, struct simstep *st, const struct stepd_event *e); /* now */
void stepd_later(struct sim *s, struct simstep *st, int64_t delay, const struct stepd_event *e);
void stepd_event_init(struct stepd_event *e, int type);
void stepd_tick(struct sim *s, struct simstep *st);
void stepd_kill(struct sim *s, struct simstep *st);
void stepd_hang(struct sim *s, struct simstep *st, int64_t for_us);
void stepd_silent(struct sim *s, struct simstep *st); /* it did not answer for 5 s */
void stepd_hang_end(struct sim *s, struct simstep *st);
void stepd_fork(struct sim *s, struct simstep *st, size_t local);
void stepd_stuck(struct sim *s, struct proc *p);
/* every process of the step is killed; when a scan will find none */
int64_t stepd_sweep(struct sim *s, struct simstep *st);
void proc_end(struct sim *s, struct proc *p, int64_t code, int64_t signal);
void step_lost(struct sim *s, struct simstep *st); /* with its node */
void step_free_all(struct sim *s, struct simstep *st);

/* outside.c: what the machine under the agent does to steps */
void outside_stop(struct sim *s, struct simstep *st);
void outside_kill(struct sim *s, struct simstep *st); /* systemd waited long enough */
void outside_leave(struct sim *s, int node, bool given_up);
void outside_next(struct sim *s, int node); /* the shutdown goes on */
void outside_stay(struct sim *s, int node);

/* train.c */
void train_started(struct sim *s, struct proc *p);
void train_ended(struct sim *s, struct proc *p);
void train_iterate(struct sim *s, struct attempt *a, int64_t iteration);
void train_saved(struct sim *s, struct attempt *a, int64_t iteration);
bool train_runs(const struct attempt *a);
/* which of its ranks is slow */
bool train_tells(const struct attempt *a);
double train_loss(const struct attempt *a, int64_t iteration);
void train_break(struct sim *s, struct attempt *a);
void train_odd(struct sim *s, struct attempt *a, double loss, int64_t steps);
/* begins; what comes before it is over */
void train_phase(struct sim *s, struct attempt *a, int phase);
void train_exit(struct sim *s, struct attempt *a, int64_t rank, int64_t code);
struct file *train_file(struct sim *s, int64_t job, int64_t iteration);
/* since the controller had its manifest, which said *ret_was */
bool train_changed(const struct sim *s, int64_t job, const struct file *f, int64_t *ret_was);
void train_scan(struct sim *s, const struct command *order, struct scan_result *ret);

/* engine.c: how long it takes */
void engine_draw(struct sim *s, struct engine_times *e);
int64_t engine_start(struct sim *s, struct attempt *a);
int64_t engine_load(struct sim *s, struct attempt *a);
int64_t engine_compile(struct sim *s, struct attempt *a);
int64_t engine_save(struct sim *s, struct attempt *a);
int64_t engine_evaluation(struct sim *s, struct attempt *a);
double engine_step(struct sim *s, bool may_stand_out);
void engine_motion(const struct sim *s, const struct attempt *a, struct motion_reading *r);

/* request.c */
void request_input(struct sim *s, const struct op *op, struct core_input *in);

/* user.c */
void user_act(struct sim *s);
void user_retry(struct sim *s, struct op *op);
void user_answer(struct sim *s, struct op *op, int status, int64_t job);
void user_resolve(struct sim *s, int node, int64_t job, int64_t attempt, const char *how);
/* at the end: undrains, decides what waits for a person */
void user_settle(struct sim *s);

/* states.c */
void states_print(void);

/* fault.c */
void fault_happen(struct sim *s);
void fault_bring_back(struct sim *s);
void fault_repair(struct sim *s); /* checkpoints */
void fault_repair_job(struct sim *s, struct truth *t);
void fault_heal(struct sim *s);

/* wall.c */
int64_t wall_now(const struct sim *s);
void wall_start(struct sim *s, bool other_machine);
void wall_look(struct sim *s);
void wall_ahead(struct sim *s);
void wall_set(struct sim *s);
/* after it was applied to the shadow */
void wall_check(struct sim *s, const struct record *r);

/* past.c */
void past_backup(struct sim *s);
bool past_lose(struct sim *s);
void past_newest(struct sim *s); /* is put back at its next start */
void past_restore(struct sim *s);
int64_t past_known_live(const struct sim *s, const struct job *j);
void past_check_order(struct sim *s, struct simstep *st);
void past_check_reported(struct sim *s);
void past_check_end(struct sim *s);
void past_resolve(struct sim *s, double chance);
void past_free(struct sim *s);
