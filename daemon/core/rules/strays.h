/* Steps that a node holds and we do not have; see strays.c. */
#pragma once
#include "lib/model/message.h"

struct turn;

/* fresh: as in fleet_reports(). */
void stray_steps(struct turn *t, const char *name, const struct step_report *steps, size_t n_steps,
		 bool fresh);
