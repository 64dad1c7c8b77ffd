/* `moectl local up`, its directory locked and its shape agreed upon. */
#pragma once
#include "cli/cli.h"
#include "cli/local_cluster.h"

/* An exit status (printed). */
int local_up(struct cli *cli, struct local *l, bool port_given);
