/* What the files of daemon/core share; not for the shell.
 * A turn is one core_step: rules read the state, emit records (turn_emit applies each at once through update.c and hands it to the shell) and effects.
 * `struct core` holds beside the state only what can be derived from it or may be forgotten: indexes, what was told, when to look again. */
#pragma once
#include "daemon/core/core.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/shared.h"

#define SCAN_FRESH_US (30 * 1000000LL)     /* a scan of checkpoint.dir older than this is done again before an attempt */
#define STALL_MIN_US (10 * 1000000LL)      /* an iteration advances while it moved within max(3 x step, this) */
#define PORT_TRIES_MAX 50                  /* attempts in a row that find their ports busy */
#define ENDING_MAX 64                      /* completed jobs whose last scan is waited for; a node that does not answer keeps one here */
#define PAST_MAX 16                        /* replaced boots and agent instances remembered per node */

/* A step that a node reports and that moed does not have. */
struct stray { int64_t job, attempt, written; bool gone, ours; };  /* ours: we stored it once and forgot it since: it may be forgotten again */
/* Of one node, parallel to state.nodes; never stored. */
struct live {
	int64_t last_beat;                 /* of this instance: older ones (reordered) prove nothing about absence */
	int64_t *jobs; size_t n_jobs;      /* jobs with a step here that is not forgotten */
	struct stray *strays; size_t n_strays;
	int64_t *scans; size_t n_scans;    /* jobs whose scan is asked from this node */
	uint64_t told;                     /* hash of the commands of the last reply */
	int64_t *checks; size_t n_checks;  /* jobs that wait for on-failure checks here */
	int64_t health_seen;               /* version of node_health that is stored, or says the same; MO_NONE = ask the state */
	int64_t store_until, tell_until;   /* rates (cordon.c) */
	int64_t hellos_until;              /* rate of agents that began anew (fleet.c) */
	struct teller *tellers;            /* rates of events that it causes, by kind (events.c); NULL = none yet */
	int64_t n_muted;                   /* changes since the last event that were not told */
	bool capped;                       /* it was told that it is not cordoned */
	bool held;                         /* the same, because it is new */
	struct gpu_sensors *sensors; size_t n_sensors;      /* newest of each GPU, and of each card */
	struct nic_sensors *nics; size_t n_nics;
	int64_t sensors_at;
	struct agent_hello *candidate; int64_t candidate_at;   /* an instance that was welcomed and not heard since */
};
struct core {
	struct core_config config;
	struct state state;
	struct live *lives;                /* state.n_nodes entries */
	int64_t *unfinished; size_t n_unfinished;    /* ascending ids of jobs that are not final */
	int64_t *dirty; size_t n_dirty;    /* jobs to look at in this turn */
	int64_t *ending; size_t n_ending;            /* ascending ids of completed jobs whose last checkpoints are still to be looked at (end_scan) */
	int64_t *fresh; size_t n_fresh;    /* jobs just submitted: the queue is otherwise as it was looked at last */
	int64_t *wake_jobs; size_t n_wake_jobs;      /* jobs whose commands may have changed in this turn, on all their nodes */
	char **wake_nodes; size_t n_wake_nodes;      /* nodes whose commands may have changed */
	uint32_t *idem_heads; size_t n_idem_heads;   /* idems.c */
	size_t n_draining;                 /* nodes whose drain is not done */
	size_t n_scanning;                 /* scans wanted of all nodes */
	size_t n_checking;                 /* jobs that were given slots and wait for checks */
	size_t n_cordoned;                 /* nodes that a finding drains; */
	size_t n_cordoned_hardware;        /* of these, for proven hardware */
	int64_t tell_until, n_muted;       /* events about health: rate, how many were not told since the start */
	struct talker { char *user; int64_t n; } *talkers;  /* events about checkpoints of this minute, by user (events.c) */
	size_t n_talkers; int64_t talkers_until;
	struct shared_pool shared;
	int64_t *kept; size_t n_kept;      /* kept.c: finished jobs with large texts, by the time of their end; */
	int64_t kept_bytes, active_bytes;  /* texts of these, and of unfinished jobs */
	bool queue_dirty;                  /* the whole queue must be looked at */
	bool blocked; int64_t blocked_id, blocked_priority; /* the job that kept all behind it waiting, of the last look */
	int64_t liveness_at;               /* no node's silence can matter before; a lower bound */
	int64_t jobs_at;                   /* next deadline of any job or of the queue */
};
struct turn { struct core *core; int64_t now; struct core_out *out; const struct core_event *event; };

/* core.c */
void record_init(struct record *r, int type);
void turn_emit(struct turn *t, struct record *r);               /* takes r's content */
void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...) _printf_(4, 5); /* fmt NULL = no text */
void turn_log(struct turn *t, int level, int64_t job, const char *node, const char *text);
void turn_deadline(struct turn *t, int64_t at);
void core_touch(struct core *c, int64_t job);
struct live *core_live(const struct core *c, const char *node); /* NULL if unknown */
void core_lives_clear(struct core *c);
void core_reindex(struct core *c);                              /* after core_load */
bool ids_has(const int64_t *ids, size_t n, int64_t id);         /* ascending */
void ids_add(int64_t **ids, size_t *n, int64_t id);
void ids_remove(int64_t *ids, size_t *n, int64_t id);

/* kept.c */
void kept_count(struct core *c, struct job *j); /* it is new, has ended, or has got a text */
void kept_leave(struct core *c, struct job *j); /* before it ends, or goes */

/* idems.c */
void idems_reindex(struct core *c);
const struct idem *idem_find(const struct core *c, const char *caller, const char *key, int64_t now); /* NULL if none within MO_IDEM_KEPT_US */
void idem_add(struct core *c, const struct submit *spec, int64_t job, int64_t now);

/* update.c, update_notes.c */
void job_clear_attempt(struct job *j);
void step_count(const struct core *c, struct job *j, const struct step *st, int sign); /* its part in the job's counts: taken away before a change, put back after it */
void ranks_place(struct job *j);                                 /* in the mesh, once its sizes are known */
void update_notes(struct job *j, const struct record *r);
int update_node(struct core *c, const struct record *r);
int update_node_state(struct core *c, const struct record *r);
int update_drain(struct core *c, const struct record *r);
int update_ack(struct core *c, const struct record *r);
int update_leaving(struct core *c, const struct record *r);
int update_strange(struct core *c, const struct record *r);
int update_health(struct core *c, const struct record *r);
int update_check(struct core *c, const struct record *r);
/* incarnation.c */
int update_restored(struct core *c, const struct record *r);
int update_obeys(struct core *c, const struct record *r);
int update_discard(struct core *c, const struct record *r);
bool step_discarded(const struct node *n, int64_t job, int64_t attempt);
void incarnation_obeyed(struct turn *t, const char *node, int64_t epoch);   /* above ours */
void incarnation_resolve(struct turn *t);
int update_measured(struct core *c, const struct record *r);     /* actual.c */

/* events.c: `data` is JSON text or NULL, taken */
void event_emit(struct turn *t, const char *type, int64_t job, const char *node, int64_t rank, int64_t attempt, char *data, const char *fmt, ...) _printf_(8, 9);
void talkers_clear(struct core *c);
void tellers_shift(struct live *l, int64_t shift);               /* with the clock */
/* audit.*: who did it, and how he was known; of the turn's event. */
void audit_emit(struct turn *t, const char *type, const char *node, const char *fmt, ...) _printf_(4, 5);
struct mo_buf;
void data_str(struct mo_buf *b, const char *key, const char *value);
void data_int(struct mo_buf *b, const char *key, int64_t value);  /* MO_NONE = null */
void data_real(struct mo_buf *b, const char *key, double value);
char *data_end(struct mo_buf *b);                                /* the object; caller frees */

/* jobs.c */
void job_verb(struct turn *t, int trigger);
void job_submit(struct turn *t);
/* Moves the job by the table and tells it. over: the attempt is over (its GPUs are free). follows: 0, 1 after a failure, 2 after busy ports. */
void job_move(struct turn *t, int64_t id, int trigger, bool over, int follows, const char *reason);
void job_reason(struct turn *t, int64_t id, const char *reason); /* the state stays */
void job_intent(struct turn *t, int64_t id, int intent, bool now, int64_t from);
bool job_act(struct turn *t, int64_t id);                        /* true when it emitted something */

/* config.c */
int update_config(struct core *c, const struct record *r);

/* prepared.c */
void prepared_add(struct job *j, struct step *st, const struct note *n);

/* tokens.c */
void token_verb(struct turn *t);                                 /* EV_TOKEN, EV_TOKEN_REVOKE, EV_TOKEN_USED */
void token_told(struct turn *t, const char *node, bool expired); /* with what its agent spoke just now */
int update_token(struct core *c, const struct record *r);
int update_token_revoked(struct core *c, const struct record *r);
int update_token_used(struct core *c, const struct record *r);
int update_node_token(struct core *c, const struct record *r);

/* fleet.c */
void fleet_hello(struct turn *t);
void fleet_sync(struct turn *t);
void fleet_verb(struct turn *t);
void fleet_silence(struct turn *t);
void fleet_late(struct core *c, int64_t by, int64_t now);
void fleet_heard(struct turn *t, const char *name);
/* reports.c. fresh: the newest word of the agent's present instance about all its steps; hello: the list of a hello, which may be old */
void fleet_reports(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps, bool fresh, bool hello);
void fleet_scanned(struct turn *t, const char *node, const struct scan_result *scan);
bool fleet_drain(struct turn *t);                                /* true when it emitted something */

/* cordon.c */
#define SENSORS_FRESH_US (30 * 1000000LL)
void health_told(struct turn *t, const char *node, const struct node_health *h);
void health_more(struct turn *t, const char *node);
void health_sensed(struct turn *t, const struct agent_sync *s);
void health_cordon(struct turn *t, const char *node);
void health_cordon_all(struct turn *t);
bool may_tell_health(struct turn *t, struct live *l);           /* one more event about its health; counts as one */

/* learn.c */
void learn_tell(struct turn *t, const char *node);              /* what would cordon it if it were not new */
int64_t learn_look(struct turn *t, const char *node);           /* ends the time when it is over; returns when that is, INT64_MAX = never */
void learn_ack(struct turn *t, const struct node *n);           /* a person ends it */

/* cordon.c */
void health_check_begin(struct turn *t, int64_t id);
bool health_check_act(struct turn *t, int64_t id);               /* true when the wait is over now */
bool health_check_due(const struct core *c, const struct job *j, const char *node);
void health_evidence(const struct state *s, const struct job *j, char ***texts, size_t *n_texts); /* CRIT findings of the attempt's nodes */
void checks_over(struct core *c, struct job *j);                 /* update_node.c */

/* recovery.c */
void recovery_waterfall(struct job *j, int64_t time);            /* after a change of j: measures the last incident */
/* After a sample: iterations from+1 .. j->iteration were done until at, each in step_ms (MO_NONE_F = not told). */
void recovery_waterfall_trained(struct job *j, int64_t at, int64_t from, double step_ms);

/* checkpoints.c */
int64_t checkpoint_iteration(const struct note *n, int64_t reached); /* which one an announcement means: its number, its path's, else the iteration reached; < 0 = unknown, it is ignored then */
bool checkpoint_inside(const struct job *j, const char *path);   /* of checkpoint.dir, by the text alone; true for NULL and for a job without one */
/* A path below checkpoint.dir as the node resolves it: the same below checkpoint.dir as the recipe names it (caller frees). NULL: it is none, or is so already. */
char *checkpoint_as_named(const struct job *j, const char *path);
void checkpoint_note(struct job *j, const struct note *n, int64_t time);
void checkpoint_scan(struct job *j, const struct scan_result *r, int64_t time);
struct checkpoint *checkpoint_find(const struct job *j, int64_t iteration);
/* Where the next attempt resumes: 0 and *ret (-1 = fresh); 1 = the job waits, 2 = the job fails, both with the reason in err. */
int checkpoint_choose(const struct job *j, int64_t *ret, struct mo_error *err);
/* Of a job that ended well without an iteration of its own, as its checkpoint was of the last one: whose that was and what
 * to do to train again. NULL: it trained. Caller frees. */
char *checkpoint_nothing_left(const struct state *s, const struct job *j);
void checkpoint_supersede(struct job *j, int64_t resume, int64_t attempt, int64_t time); /* after restart --from: what lies beyond is resumed no more */
const struct checkpoint *checkpoint_surplus(const struct job *j);
void checkpoint_remove(const struct job *j, struct checkpoint *c);     /* what lies outside checkpoint.dir stays as it is, with the reason */
bool checkpoint_removing(const struct checkpoint *c);
bool checkpoint_any_removing(const struct job *j);
void checkpoint_removal_over(struct job *j, const struct scan_result *r);             /* r: the scan at the end, NULL = there is none */
int64_t checkpoint_prune_order(const struct job *j);
void checkpoint_pruned(struct job *j, const struct scan_result *r);
/* checkpoint.dir belongs to one unfinished job at a time, from its first attempt on: does holder keep j out? */
bool checkpoint_dir_held(const struct job *holder, const struct job *j);
bool checkpoint_elsewhere(const struct job *j, const struct note *n);   /* the engine saved where nothing would be resumed from */
void checkpoint_withdraw(struct job *j, int64_t iteration);             /* of this attempt, announced, and it went elsewhere */
const char *checkpoint_entry_path(const struct job *j, const char *path);   /* of one checkpoint; NULL when it is the directory of all */
const char *checkpoint_end_node(const struct job *j);            /* where a completed job's checkpoints are to be looked at once more, NULL = nowhere */
void checkpoint_forget_manifests(struct job *j);                 /* of what the attempt that is over has written again without saying so */
bool checkpoint_usable(const struct checkpoint *c);
int64_t checkpoint_newest_at_most(const struct job *j, int64_t limit, bool own_only);

/* unread.c: what looks like a model's state and that nothing reads. Texts: the caller frees. */
void checkpoint_take_unread(struct job *j, const struct scan_result *r);
void checkpoint_pass_over(struct job *j);                        /* a fresh start over them was asked for */
bool checkpoint_unread(const struct job *j, const struct unread_state *u);   /* whether this one forbids a fresh start */
char *checkpoint_unread_path(const struct unread_state *u);
char *checkpoint_unread_names(const struct job *j);              /* the first of them by name and size; NULL = none */
char *checkpoint_unread_text(const struct job *j);               /* why the job waits, with the ways on; NULL: it does not */
const char *checkpoint_unread_next(const struct job *j);
char *checkpoint_named(const struct job *j);                     /* as the recipe named the directory, where the engine's own was added to it; NULL */
char *checkpoint_afresh(const struct job *j);                    /* how a fresh start is asked for */

/* unsaved.c: a running job that has not saved where it should, and what is known of its last save. base: where a failure now would go back to. */
struct unsaved { char *text, *last_save; int64_t base; };
bool checkpoint_unsaved(const struct job *j, struct unsaved *ret);
void checkpoint_unsaved_done(struct unsaved *u);
int64_t checkpoint_next(const struct job *j);                    /* where the next attempt of a job that has run begins, as far as its ledger tells; 0 = at the beginning */

/* doubt.c: whether a save went elsewhere, or to checkpoint.dir by another name. The answer comes with the order of verification. */
void doubt_begin(struct job *j, const char *path, int64_t iteration);
void doubt_begun(struct job *j);                                 /* after notes: a save that began elsewhere may be over */
void doubt_drop(struct job *j);
bool doubt_awaited(const struct state *s, const struct job *j);  /* a node will answer: the job does not end well before */
void doubt_answer(struct job *j, const struct scan_result *r, int64_t time);

/* verify.c */
void verify_begin(struct job *j);                                /* the newest that waits for it, unless one is under way */
void verify_end(struct job *j);
int64_t verify_next(const struct state *s, const struct job *j, const char *node, int64_t part); /* the next part from `part` on that this node is to do; -1 = none */
int64_t verify_order(const struct job *j, int64_t part);         /* the order's number, by which its answer is known */
void verify_command(const struct job *j, int64_t part, struct command *ret);
void verify_wake(struct core *c, const struct job *j);
bool verify_awaits(const struct job *j, const struct scan_result *r);
void verify_result(struct job *j, const struct scan_result *r, int64_t time);

/* schedule.c */
bool schedule(struct turn *t);                                   /* true when it emitted something */
bool scan_fresh(const struct job *j, int64_t now);

/* place.c */
int64_t port_next(const struct core *c);

/* ledger.c */
int ledger_category(const struct job *j);
void ledger_charge(struct job *j, int64_t time);
void ledger_charge_as(struct job *j, int64_t time, int category);
void ledger_charge_train(struct job *j, int64_t time, int64_t from, int64_t to);

/* samples.c */
void samples_add(struct job *j, const struct sample *s, int64_t attempt, int64_t time);
int64_t samples_step_us(const struct job *j);                    /* recent time of an iteration, 0 unknown */

/* actual.c */
bool actual_act(struct turn *t, int64_t id);                     /* sets what the job does against its plan; true when it emitted something */

/* commands.c */
int command_for(const struct core *c, const struct job *j, const struct step *s); /* enum command_kind, or -1 */
void commands_wake(struct turn *t);                              /* at the end of a turn */
void commands_changed(struct core *c, const struct record *r);   /* after each record */
void wake_node(struct core *c, const char *node);
bool scan_asked(const struct core *c, const struct job *j, const char *node, int64_t attempt); /* from this node, and no other: a node speaks for itself */
