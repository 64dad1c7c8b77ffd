/* What moe-namespace is asked to make, and whether it did: see box.c. */
#pragma once
#include "agent/stepd/stepd.h"

/* What this step's namespace is asked to have; NULL: nothing besides the node's own files and
 * devices. */
struct box *box_of(const struct stepd *s);
/* Writes s->box for moe-namespace. 0, or a negative errno. */
int box_write(const struct stepd *s);
/* Reads back what that process, which is in the namespace, can open. Why it is not s->box; NULL: it
 * is. Caller frees. */
char *box_verify(const struct stepd *s, pid_t maker);
