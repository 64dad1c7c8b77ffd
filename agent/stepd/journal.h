/* The step's journal (journal.c): every note, numbered, in segments. */
#pragma once
#include "agent/stepd/stepd.h"

int journal_open(struct stepd *s, struct mo_error *err);
void journal_add(struct stepd *s, const struct note *n);
/* One write(2); on failure kept and tried again at the next turn or tick. */
void journal_flush(struct stepd *s);
