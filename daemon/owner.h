/* Root at work on a state directory of another user (the unit's). */
#pragma once
#include "lib/base/error.h"

/* Becomes the directory's user, so that what is written there is his. 0, also for whoever is not root. */
int owner_become(const char *dir, struct mo_error *err);
