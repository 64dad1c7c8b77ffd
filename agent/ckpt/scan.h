/* Reads a checkpoint directory into the entries that agent/core/ckpt.h judges. Links are never followed below the directory itself; sizes and counts are limited. */
#pragma once
#include "agent/core/ckpt.h"
#include "lib/model/message.h"

/* Looks at order->dir and fills items (newest iteration first, MO_CHECKPOINTS_MAX at most, one per iteration). A missing directory has no items.
 * 0, or a negative errno with err: the directory or the layout cannot be read. */
int scan_directory(const struct command *order, enum ckpt_level level, struct scan_result *ret, struct mo_error *err);
/* Makes the directory and a file in it, removes the file. 0, -EACCES and its like: not writable; other errors with err. */
int scan_probe(const char *dir, struct mo_error *err);
