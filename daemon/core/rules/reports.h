/* What agents report about steps; see reports.c. Called by fleet.c for each message. */
#pragma once
#include "lib/model/message.h"

struct turn;

/* fresh: the newest word of the agent's present instance about all its steps; hello: the list of
 * a hello, which may be old. */
void fleet_reports(struct turn *t, const char *name, const struct step_report *steps,
		   size_t n_steps, bool fresh, bool hello);
