/* `moectl list`. */
#pragma once
#include "cli/output.h"

extern const struct verb verb_list;
/* Its columns; table_row() takes a Job document. */
void jobs_table(struct table *ret);
