/* What moe-namespace says of a step's mount namespace, and where such a namespace is marked. */
#pragma once
#include <stddef.h>

#define NAMESPACE_MARKER "/run/moe-step" /* holds the step's id, inside only */

/* The line (n bytes, without its end; n 0: it ended without one) as a problem for people and
 * its errno in *ret_error; caller frees. NULL: the namespace is made. */
char *namespace_problem(const char *line, size_t n, int *ret_error);
