/* What moe-namespace says of a step's mount namespace, and where such a namespace is marked. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define NAMESPACE_MARKER "/run/moe-step" /* holds the step's id, inside only */

/* What moe-namespace could not do where the machine makes no namespaces at all. */
#define NAMESPACE_MAKE "make a mount namespace"

/* The line (n bytes, without its end; n 0: it ended without one) as a problem for people and
 * its errno in *ret_error; caller frees. NULL: the namespace is made. */
char *namespace_problem(const char *line, size_t n, int *ret_error);
/* Why a step that has no namespace, or not as it was asked, is refused: "image" where the job asks
 * for one that cannot be had as the recipe has it, on this node or any (error: the errno of what
 * failed), "namespace" where another attempt may do better. */
const char *namespace_refusal(bool image, int error);
/* It says that this machine makes none. */
bool namespace_denied(const char *line, size_t n);
