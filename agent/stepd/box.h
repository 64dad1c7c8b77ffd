/* What moe-namespace is asked to make, and whether it did: see box.c. */
#pragma once
#include "agent/stepd/stepd.h"

/* What this step's namespace is asked to have in *ret; NULL: nothing besides the node's own files
 * and devices. A negative errno with err: the job asks for an image that it cannot have. */
int box_of(const struct stepd *s, struct box **ret, struct mo_error *err);
/* Writes s->box for moe-namespace. 0, or a negative errno. */
int box_write(const struct stepd *s);
/* Reads back what that process, which is in the namespace, can open. Why it is not s->box; NULL: it
 * is. Caller frees. */
char *box_verify(const struct stepd *s, pid_t maker);
