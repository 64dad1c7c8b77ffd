/* Root at work on a state directory of another user (the unit's). */
#pragma once
#include "daemon/options.h"

/* Becomes the directory's user, so that what is written there is his. 0, also for whoever is not
 * root. */
int owner_become(const char *dir, struct mo_error *err);
/* The same where a state is to be made: a directory that moed.service is to use and that is
 * missing, or root's, becomes that of the unit's user first. */
int owner_make(const struct options *o, struct mo_error *err);
