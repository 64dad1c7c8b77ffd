/* `moed --quarantine` and `moed --put-back FILE`: a way on when a start meets a stored record
 * that it cannot take. */
#pragma once
#include "daemon/options.h"

/* What o asks for; says on stdout what was done. 0, or a negative errno with err: nothing was
 * changed. */
int quarantine_run(const struct options *o, struct mo_error *err);
