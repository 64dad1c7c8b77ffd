/* Powering off silent nodes by the site's command; see power.c. */
#pragma once
#include "daemon/core/state/live.h"

struct turn;

/* The recipe says that the job goes on elsewhere once the machine is off. */
bool power_wanted(const struct job *j);
/* Called after fleet_silence(): asks where it is due, and sets the next time to look. */
void power_pass(struct turn *t);
/* IN_POWER */
void power_answered(struct turn *t);
