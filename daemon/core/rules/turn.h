/* A turn of the core: core_decide() for each input, core_settle() for all (core.c). Rules read the
 * state, which they have as const, and say what follows through the functions here. Used by every
 * file of rules; nothing here decides.
 *
 *   turn_emit()      a record: applied at once by core_update(), so that the next rule sees it, and
 *                    handed to the shell, which stores all of a turn in one transaction
 *   turn_reply()     the answer to who sent the input
 *   turn_effect()    something for the shell to do once the records are stored; turn_answer() the
 *                    same for who sent the input
 *   turn_deadline()  when to run again without any input
 *
 * What never happens: a rule changes the state by another way; an effect leaves before the records
 * of its turn are on the disk. */
#pragma once
#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/live.h"

struct turn {
	struct core *core;
	int64_t now;
	struct core_out *out;
	const struct core_input *input; /* NULL: what follows from all of them */
};

void turn_emit(struct turn *t, struct record *r); /* takes r's content */
/* fmt NULL = no text */
void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...) _printf_(4, 5);
/* A refusal of now, that another try does not meet any more in after_us. */
void turn_reply_later(struct turn *t, int status, int64_t after_us, const char *fmt, ...)
	_printf_(4, 5);
/* One that nobody asked for, and one that answers who sent the input; node may be NULL. The turn
 * owns it, and what the caller adds of that which belongs to its type (effect.h). */
struct effect *turn_effect(struct turn *t, enum effect_type type, const char *node);
struct effect *turn_answer(struct turn *t, enum effect_type type, const char *node);
void turn_deadline(struct turn *t, int64_t at);
