/* What ranks did with their processors and GPUs; see activity.c. Called by the manager. */
#pragma once
struct step_dir;

/* Reads all ranks of the step once, and queues AE_ACTIVITY. */
void activity_look(struct step_dir *d);
