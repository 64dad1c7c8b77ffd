/* Level-triggered commands: what is due for a node follows from the state alone; see commands.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* enum command_kind, or -1 */
int command_for(const struct core *c, const struct job *j, const struct step *s);
/* At the end of a turn. */
void commands_wake(struct turn *t);
/* From this node, and no other: a node speaks for itself. */
bool scan_asked(const struct core *c, const struct job *j, const char *node, int64_t attempt);
