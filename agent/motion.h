/* What ranks did, read from their processes and logs; see motion.c. Called by the manager. */
#pragma once
struct step_dir;

/* Reads all ranks of the step once, and queues AE_MOTION. */
void motion_look(struct step_dir *d);
