/* The simulator: production's controller (daemon, its store on a disk that forgets) and of
 * production's agents cores, fence, link, steps and journals in virtual time, on 64 nodes with a
 * network, disks, processes and people that fail. It knows the truth (which process lives, which
 * checkpoint is whole) that they can only infer, and holds them to the invariants of check.h after
 * every step. One seed = one run, the same every time. Files: main (options, summary), run (one
 * seed), plan and shrink (what breaks in it, and less), coverage (rows of docs/states.md that were
 * met), states (docs/states.md), world (queue, chance), faults (their names), clock (of nodes),
 * control (who waits for the controller, its crashes, what it stored), moed and seams (what is
 * about it), wall (its clocks), past (backups), before (what an older release left, said), node
 * (an agent and what it is on), shell (what of it is production's), network (messages), wire (what
 * happens to them on their way), health (what it finds of its node), steps (what it has of its
 * steps), line (what it says with their supervisors), aside (what it asks for beside them), notes
 * and writer (their journals, as stepd writes them), stepd (supervisor's shell), proc (its
 * processes), outside (their machine), train (what the ranks do), files (checkpoints), engine
 * (beside their steps), user, token and request (people), fault and heal (what breaks, what is
 * repaired), the check files (invariants), history (what leaves by its age). Structs: machine.h
 * (nodes, steps, processes), truth.h (jobs, attempts, checkpoints). */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "agent/core/stepd/stepd_core.h"
#include "agent/core/agent/agent_core.h"
#include "daemon/core/core.h"
#include "tests/core_inside.h"
#include "tests/sim/faults.h"
#include "tests/sim/machine.h"
#include "tests/sim/plan.h"
#include "tests/sim/truth.h"

#define MS 1000LL
#define S 1000000LL
#define JOBS_MAX 509 /* places for them: ids leap */
#define RESTORES_MAX 3
#define SIM_HANG_PERCENT 10 /* a run is minutes long */
#define HIGH_LOSS 10        /* no healthy one is */
#define KEEP 2              /* checkpoint.keep of some jobs */
#define HISTORY (40 * S)
#define WALL_US (1790000000 * S) /* right clocks, when true time is 0 */

struct sim;
struct backup;
/* boot: of the node that is fenced, as the person saw it */
struct op {
	int type;
	int64_t key, job, value;
	bool flag;
	int form;
	int node;
	const char *when;
	char boot[64], token[64];
	char *secret; /* of the token that was asked for last */
	int64_t tries;
	bool done;
};

enum message_kind { M_HELLO, M_SYNC, M_URGENT, M_TRADE, M_USER };
struct message {
	int kind;
	int node;
	int64_t request, instance;
	bool cut;           /* the rest of it is lost, and nobody knows */
	bool foreign;       /* with another node's token */
	char *text, *token; /* of an agent */
	size_t n;
	struct op *op;
};
struct answer {
	int kind;
	int node;
	int64_t request, instance;
	bool old, cut;
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
	K_NODE_TIMER,
	K_CONTROLLER_UP,
	K_AGENT_TICK,
	K_AGENT_UP,
	K_AGENT_EVENT,
	K_STEP_TICK,
	K_STEP_EVENT,
	K_WORD,
	K_SPAWN,
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
	K_HUNG_END,
	K_CHECK
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
	/* dark: its machine died with it: no connection breaks, none is refused. unmarked: and it
	 * has stored nothing since */
	bool up, turn_due, dark, unmarked;
	int64_t up_since, down_since, paused_until, paused_for, request, instance;
	/* wall.c: core time is ours and skew; the wall clock is so much ahead; its machine booted
	 * then */
	int64_t skew, wall_ahead, wall_was, boot, boot_at;
	bool synced, blurred, held;
	bool flipped;             /* a bit of its disk is another than it wrote */
	bool upgraded;            /* it is of this release since */
	struct backup *restoring; /* what its next start begins with, NULL its own */
	struct asked *asked;
	size_t n_asked; /* messages that it has not answered */
};
struct sim {
	uint64_t seed, rng, seq;
	int64_t now, faults_until, end;
	struct plan plan;
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
	int64_t n_lines; /* between agents and supervisors */
	int64_t next_pid, next_key, n_submits, n_turns, n_events;
	/* of all seeds: [_FAULT_N], [_JOB_STATE_N * _JOB_STATE_N] */
	int64_t *fault_counts, *move_counts;
};

/* world.c */
uint64_t sim_random(struct sim *s);
int64_t sim_between(struct sim *s, int64_t low, int64_t high); /* inclusive */
bool sim_chance(struct sim *s, double p);
/* chance while faults happen, by its kind's rate; counted */
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
/* It has not answered that yet, which came with this token ("" none); NULL: it has. */
const char *control_asked(const struct sim *s, int64_t request);
void control_came_with(struct sim *s, int64_t request, const char *token_id);
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
void node_upgrade(struct sim *s, int node); /* of before, and its agent is down */
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

/* wire.c: from an agent to the controller, and back; both take it */
void wire_request(struct sim *s, struct message *m);
void wire_answer(struct sim *s, struct answer *a);

/* network.c */
void network_answer(struct sim *s, struct answer *a); /* arrived; takes it */

/* stepd.c */
bool stepd_start(struct sim *s, struct simstep *st); /* false: it ended at once */
void stepd_event(struct sim *s, struct simstep *st, const struct stepd_event *e); /* now */
void stepd_later(struct sim *s, struct simstep *st, int64_t delay, const struct stepd_event *e);
void stepd_event_init(struct stepd_event *e, int type);
void stepd_tick(struct sim *s, struct simstep *st);
void stepd_kill(struct sim *s, struct simstep *st);
void stepd_hang(struct sim *s, struct simstep *st, int64_t for_us);
void stepd_hang_end(struct sim *s, struct simstep *st);
void step_free_all(struct sim *s, struct simstep *st);

/* proc.c */
void proc_fork_all(struct sim *s, struct simstep *st);
void proc_signal_ranks(struct sim *s, struct simstep *st);
void proc_kill_all(struct sim *s, struct simstep *st);
/* SE_EMPTY so much later, when nothing of it is left */
void proc_look_empty(struct sim *s, struct simstep *st, int64_t delay);
void stepd_fork(struct sim *s, struct simstep *st, size_t local);
void stepd_stuck(struct sim *s, struct proc *p);
/* every process of the step is killed; how many live on for a while */
size_t proc_hunt(struct sim *s, struct simstep *st);
bool proc_any(const struct simstep *st); /* that runs */
/* Its node was called off by a person, and it lives or is about to begin: it must end once the node
 * is heard. False: neither. */
bool proc_disown(struct sim *s, struct simstep *st);
void proc_end(struct sim *s, struct proc *p, int64_t code, int64_t signal);
void step_lost(struct sim *s, struct simstep *st); /* with its node */

/* line.c */
struct stepd_word;
void line_say(struct sim *s, struct simstep *st, const struct stepd_word *w); /* to the agent */
void line_up(struct sim *s, struct simstep *st); /* it answers, or will when it goes on */
void line_end(struct sim *s, struct simstep *st);
void line_arrived(struct sim *s, struct simstep *st, const struct queued *e);

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

/* files.c */
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

/* token.c */
char *token_file(const struct simnode *n); /* its token_file; caller frees */
void token_begin(struct sim *s);
void token_answer(struct sim *s, struct op *op, int status);
bool token_mishap(struct sim *s, int fault);
void token_help(struct sim *s, double chance); /* people put right what nodes are refused for */
void token_heard(struct sim *s, const struct answer *a);
/* Another's own token, instead of the one of the message. */
void token_swap(struct sim *s, struct message *m);
/* With its own one: that is on disk from now on, and the one before is of no more use. */
void token_spoken(struct simnode *n, const char *token);
/* Or half: a loss of power may leave the one before. died: its agent, within it. */
void token_written(struct simnode *n, bool died);
void token_check_kept(struct sim *s, struct simnode *n);
void token_check(struct sim *s);

/* user.c */
struct op *user_op(struct sim *s, int type);
void user_send(struct sim *s, struct op *op);
void user_act(struct sim *s);
void user_retry(struct sim *s, struct op *op);
void user_answer(struct sim *s, struct op *op, int status, int64_t job);
void user_resolve(struct sim *s, int node, int64_t job, int64_t attempt, const char *how);
/* at the end: undrains, decides what waits for a person */
void user_settle(struct sim *s);

/* coverage.c: of n_job_rows; how many of those that are documented never came */
#define ROWS_MAX 256
void coverage_begin(int64_t *counts);
int coverage_print(const int64_t *counts);

/* states.c */
void states_print(void);

/* fault.c */
void fault_happen(struct sim *s);

/* heal.c */
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
/* when the process stored what is read now: what is found at a start was the last that the one
 * before did */
int64_t wall_stored_at(const struct sim *s);
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
void past_disown(struct sim *s, const char *node); /* what the controller does not know there */
void past_resolve(struct sim *s, double chance);
void past_free(struct sim *s);
