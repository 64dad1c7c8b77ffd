/* A list of headers for rules that have none of their own yet; it goes. */
#pragma once
#include "daemon/core/core.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/verbs.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/live.h"
#include "daemon/core/update/attempt.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/idems.h"
#include "daemon/core/update/index.h"
#include "daemon/core/update/kept.h"
#include "daemon/core/update/ledger.h"
#include "daemon/core/update/samples.h"
#include "daemon/core/update/update.h"
#include "daemon/core/update/update_node.h"
#include "daemon/core/update/update_notes.h"
#include "daemon/core/update/verify.h"
#include "daemon/core/update/wake.h"

#define STALL_MIN_US (10 * 1000000LL)      /* an iteration advances while it moved within max(3 x step, this) */
#define PORT_TRIES_MAX 50                  /* attempts in a row that find their ports busy */

/* events.c: `data` is JSON text or NULL, taken */
void event_emit(struct turn *t, enum event_type type, int64_t job, const char *node, int64_t rank, int64_t attempt, char *data, const char *fmt, ...) _printf_(8, 9);
void talkers_clear(struct core *c);
void tellers_shift(struct live *l, int64_t shift);               /* with the clock */
/* audit.*: who did it, and how he was known; of the turn's event. */
void audit_emit(struct turn *t, enum event_type type, const char *node, const char *fmt, ...) _printf_(4, 5);
struct mo_buf;
void data_str(struct mo_buf *b, const char *key, const char *value);
void data_int(struct mo_buf *b, const char *key, int64_t value);  /* MO_NONE = null */
void data_real(struct mo_buf *b, const char *key, double value);
char *data_end(struct mo_buf *b);                                /* the object; caller frees */

/* tokens.c */
void token_verb(struct turn *t);                                 /* EV_TOKEN, EV_TOKEN_REVOKE, EV_TOKEN_USED */
void token_told(struct turn *t, const char *node, bool expired); /* with what its agent spoke just now */

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

/* unread.c: what looks like a model's state and that nothing reads. Texts: the caller frees. */
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

/* schedule.c */
bool schedule(struct turn *t);                                   /* true when it emitted something */
bool scan_fresh(const struct job *j, int64_t now);

/* place.c */
int64_t port_next(const struct core *c);

/* actual.c */
bool actual_act(struct turn *t, int64_t id);                     /* sets what the job does against its plan; true when it emitted something */

/* commands.c */
int command_for(const struct core *c, const struct job *j, const struct step *s); /* enum command_kind, or -1 */
void commands_wake(struct turn *t);                              /* at the end of a turn */
bool scan_asked(const struct core *c, const struct job *j, const char *node, int64_t attempt); /* from this node, and no other: a node speaks for itself */
