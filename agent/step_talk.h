/* What the agent and the supervisor of a step say to each other:
 *   connect -> {"up"} -> AE_STEPD_UP -> notes, progress ... -> end of stream ->
 *     lock free: AE_STEPD_LOST (journal read to its end first)
 *     lock held: connect again
 *   no word for SILENT_US while the lock is held: AE_STEPD_SILENT, and it goes on trying. */
#pragma once
#include "agent/step_dir.h"

/* Now, and again until it answers or is proved dead. */
void step_talk_connect(struct step_dir *d);
void step_talk_order(struct step_dir *d, const struct stepd_order *o);
/* The start of its supervisor ended; problem NULL = stepd answers. */
void step_talk_started(struct step_dir *d, const char *problem);
/* The start failed in that way: nothing was started, or what was is heard of by its lock. */
void step_talk_start_failed(struct step_dir *d, const char *text);
void step_talk_end(struct step_dir *d); /* what was said half is gone */
void step_talk_timer(void *arg);        /* of a step_dir: its timer rings */
