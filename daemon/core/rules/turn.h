/* A turn is one core_decide: rules read the state, emit records (turn_emit applies each at once
 * through update.c and hands it to the shell) and effects. Used by every file of rules; nothing
 * here decides. */
#pragma once
#include "daemon/core/rules/turn_io.h"
#include "daemon/core/state/live.h"

struct turn {
	struct core *core;
	int64_t now;
	struct core_out *out;
	const struct core_input *input;
};

void turn_emit(struct turn *t, struct record *r); /* takes r's content */
/* fmt NULL = no text */
void turn_reply(struct turn *t, int status, int64_t job, const char *fmt, ...) _printf_(4, 5);
/* One that nobody asked for, and one that answers who sent the input; node may be NULL. The turn
 * owns it, and what the caller adds of that which belongs to its type (effect.h). */
struct effect *turn_effect(struct turn *t, enum effect_type type, const char *node);
struct effect *turn_answer(struct turn *t, enum effect_type type, const char *node);
void turn_deadline(struct turn *t, int64_t at);
