/* Whose rights count when paths of the job are opened. */
#pragma once
#include "agent/core/stepd/box.h"

/* From here on this process reaches, and reads, only what the user of the box may: its ids and
 * groups for files. It keeps the right to mount. */
void user_begin(const struct box *b);
/* And no more. The groups stay away. */
void user_end(void);
