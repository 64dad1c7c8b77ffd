/* update.c's part for REC_NOTES. */
#pragma once
#include "daemon/core/state/record.h"

void update_notes(struct job *j, const struct record *r);
