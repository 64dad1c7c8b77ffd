/* A part of the work in a process of its own: forked, does its part, and is gone. */
#pragma once
#include "lib/base/error.h"

/* What part says of itself: 0, more, or an error with err. */
typedef int (*apart_fn)(const void *arg, struct mo_error *err);
/* Its exit status: 0, APART_MORE, or as failure_told() of `what`, which has told then. Negative,
 * with err: it could not be started, or was killed. */
#define APART_MORE 4
int apart(const char *what, apart_fn part, const void *arg, struct mo_error *err);
