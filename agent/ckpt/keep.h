/* What a script writes over at each save (checkpoint.layout without iteration): its last whole
 * one is kept, and put back when a save was cut. Private to moe-ckpt. */
#pragma once
#include "agent/ckpt/scan.h"

#define KEPT_DIR ".moe-kept"

/* copy.c: the entry, as it was listed, into the directory `to`, in which its name is free. 0;
 * -ENOSPC there is no room; another errno. What was begun is removed. */
int copy_entry(int from_dir, const struct ckpt_entry *e, int to);

/* keep.c. A pass each second until its standard input ends; what it sees whole it announces on
 * the notify socket, descriptor 3. resumed: what lies there now is what the ranks resume from. */
void keep_until_end(const struct command *order, bool resumed);
/* Puts the kept copy in the place of what is torn or gone, which stays beside it under another
 * name. NULL = there is none, or it could not be put back; else what was done (caller frees). */
char *keep_put_back(int dir_fd, const struct ckpt_layout *layout, const struct ckpt_rules *rules);
