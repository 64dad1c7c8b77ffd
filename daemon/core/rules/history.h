/* What is too old leaves; see history.c. */
#pragma once

struct turn;
/* The controller starts, or its clock was set. */
void history_begin(struct turn *t);
/* When history_at was reached: what is too old now leaves, a portion in each turn. */
void history_pass(struct turn *t);
