/* A GPU that failures name again and again, by its PCI address: what programs say of hardware
 * proves nothing once (decision 024), twice of the same device it is a reason to try it. Pure;
 * called by policy.c when what follows a failure is decided, before its incident is recorded. */
#pragma once
#include "daemon/core/rules/verdict.h"

struct turn;

/* PCI address of the GPU of the rank that the failure began with; NULL: none, or not known. */
const char *device_of(const struct state *s, const struct blame *b);
/* That the device was named by a failure before this one, with what both say; NULL: it was not.
 * Caller frees. */
char *device_named_twice(const struct turn *t, const struct job *j, const struct verdict *v,
			 const char *cause);
