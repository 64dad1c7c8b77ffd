/* What ranks did, read from their processes and logs; see motion.c. Called by the manager. */
#pragma once
#include <stddef.h>

struct motion_process;
struct motion_reading;
struct step_dir;

/* Reads all ranks of the step once, and queues AE_MOTION. */
void motion_look(struct step_dir *d);
/* All processes of the machine, each with the rank that it belongs to (motion_trees()). Caller
 * frees. */
struct motion_process *motion_processes(const struct motion_reading *ranks, size_t n_ranks,
					size_t *ret_n);
