/* A list of headers for rules that have none of their own yet; it goes. */
#pragma once
#include "daemon/core/core.h"
#include "daemon/core/rules/actual.h"
#include "daemon/core/rules/commands.h"
#include "daemon/core/rules/config.h"
#include "daemon/core/rules/cordon.h"
#include "daemon/core/rules/fleet.h"
#include "daemon/core/rules/incarnation.h"
#include "daemon/core/rules/jobs.h"
#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/learn.h"
#include "daemon/core/rules/place.h"
#include "daemon/core/rules/readings.h"
#include "daemon/core/rules/reports.h"
#include "daemon/core/rules/resume.h"
#include "daemon/core/rules/schedule.h"
#include "daemon/core/rules/tokens.h"
#include "daemon/core/rules/transitions.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/rules/verbs.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/live.h"
#include "daemon/core/state/progress.h"
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
