/* TORCHELASTIC_ERROR_FILE of each rank (error_file.c): torch's @record writes the exception there
 * that ends a rank, whatever the rank still prints behind it. */
#pragma once
#include "agent/stepd/stepd.h"

/* Its path, as the rank is told. Caller frees. */
char *error_file_path(const struct stepd *s, const struct rank *r);
/* Made empty for the user, in a directory that stays ours: the agent can remove it without rights
 * over his directories. */
int error_file_make(struct stepd *s, const struct rank *r, struct mo_error *err);
/* Of a rank that has ended: its exception goes behind its last lines, where they do not have it. */
void error_file_read(const struct stepd *s, struct rank *r);
