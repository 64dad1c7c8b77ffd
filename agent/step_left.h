/* What a step's directory says of it where its spool entry cannot be read (a full or damaged
 * disk): enough to find what runs of it, and to forward its journal. Called by step_entry.c. */
#pragma once
#include "agent/step_dir.h"

enum step_left {
	STEP_LEFT_NOTHING, /* nothing was ever started: neither its id nor a note is there */
	STEP_LEFT_ID,      /* d->spool has its id, its ranks as the journal has them, its cgroup */
	STEP_LEFT_UNKNOWN, /* something was started, and nothing says what is of it */
};
/* d->fd is open; d->spool is empty. */
enum step_left step_left_read(struct step_dir *d);
