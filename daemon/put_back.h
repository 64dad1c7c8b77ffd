/* `moed --put-back FILE`: what stands in a file of STATE/quarantine becomes part of the state
 * again, and the file is renamed. */
#pragma once
#include "daemon/offline.h"

/* Says on stdout what was done. 0, or a negative errno with err: nothing was changed. */
int put_back(struct offline *s, const char *path, struct mo_error *err);
