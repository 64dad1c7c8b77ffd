/* Steps of a local cluster; see local_steps.c. */
#pragma once
#include "cli/local_proc.h"

void local_steps_done(struct local_steps *s);
/* All step directories; pid of the living supervisor, 0 = dead. */
void local_steps(const struct local *l, struct local_steps *ret);
/* Kills every step's supervisor and ranks; returns how many processes of this cluster (daemons
 * aside) are left after wait_ms. */
size_t local_kill_steps(const struct local *l, int64_t wait_ms);
/* Ends all of it; an exit status (printed). */
int local_down(struct cli *cli, struct local *l);
