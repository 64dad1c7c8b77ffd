/* Texts of finished jobs go when all of them have too many (MO_RETAINED_TEXTS_MAX), oldest end
 * first. */
#pragma once
#include "daemon/core/state/live.h"

void retained_count(struct core *c, struct job *j); /* it is new, has ended, or has got a text */
void retained_leave(struct core *c, struct job *j); /* before it ends, or goes */
int64_t retained_of(const struct core *c, int64_t job); /* bytes of its texts that count */
int64_t retained_bytes_of(const struct job *j);         /* the same, measured anew */
