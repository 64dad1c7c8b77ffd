/* Steps that a node holds and we do not have; see strays.c. */
#pragma once
#include "daemon/core/state/live.h"
#include "lib/model/message.h"

struct turn;

/* fresh: as in fleet_reports(). */
void stray_steps(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps,
		 bool fresh);
/* What is ordered about a step that we do not have: enum command_kind, or -1 = it is kept as it
 * is. */
int stray_command(const struct core *c, const char *node, const struct stray *s);
