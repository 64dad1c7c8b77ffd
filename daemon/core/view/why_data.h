/* What why says of the data of a job: those that are left out, and whether a resume went on with
 * them. */
#pragma once
#include "daemon/core/view/why_view.h"

struct job;

/* Data that its attempts leave out. */
void why_skips(const struct job *j, struct why_view *w);
/* Whether the attempt at hand goes on with its data; nothing where it did not resume. */
void why_data_order(const struct job *j, struct why_view *w);
