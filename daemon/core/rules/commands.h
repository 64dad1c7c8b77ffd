/* Level-triggered commands: what is due for a node follows from the state alone; see commands.c.
 * */
#pragma once
#include "daemon/core/state/state.h"

struct core;
struct turn;

/* enum command_kind, or -1 */
int command_for(const struct core *c, const struct job *j, const struct step *s);
/* At the end of a turn. */
void commands_wake(struct turn *t);
/* This answer is awaited from this node, and no other: a node speaks for itself. */
bool scan_asked(const struct core *c, const struct job *j, const char *node,
		const struct scan_result *scan);

/* What a sync of this node is answered with now: acknowledgements of the node's steps and all due
 * commands. Empty commands = hold until the beat. */
void core_sync_reply(struct core *c, const char *node, struct sync_reply *ret);
bool core_commands_due(const struct core *c, const char *node);
