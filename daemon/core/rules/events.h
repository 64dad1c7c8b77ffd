/* Events: what people, the journal and the stream are shown, each once and by its type; see
 * events.c. Called by every rule; an event changes nothing but the ring that keeps the newest. */
#pragma once
#include "daemon/core/state/live.h"
#include "lib/model/event_type.h"

struct mo_buf;
struct turn;

/* data: JSON text or NULL, taken. */
void event_emit(struct turn *t, enum event_type type, int64_t job, const char *node, int64_t rank,
		int64_t attempt, char *data, const char *fmt, ...) _printf_(8, 9);
/* audit.*: who did it, and how he was known; of the turn's event. */
void audit_emit(struct turn *t, enum event_type type, const char *node, const char *fmt, ...)
	_printf_(4, 5);
void talkers_clear(struct core *c);
/* With the clock. */
void tellers_shift(struct live *l, int64_t shift);

/* Members of `data`; MO_NONE = null. data_end() gives the object, which the caller frees. */
void data_str(struct mo_buf *b, const char *key, const char *value);
void data_int(struct mo_buf *b, const char *key, int64_t value);
void data_real(struct mo_buf *b, const char *key, double value);
char *data_end(struct mo_buf *b);
