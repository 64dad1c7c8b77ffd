/* What why says of the fabric below a job: what a check of it found, and when one is to be made. */
#pragma once
#include "daemon/core/view/why_view.h"

struct job;

/* The newest check that was told; nothing where none was. */
void why_fabric(const struct job *j, struct why_view *w);
/* What to do where a hang has no other cause and was not looked into since; NULL: nothing of the
 * kind. Caller frees. */
char *why_fabric_next(const struct job *j);
