/* Whether a GPU computes, kept over its readings: since when it only spins, when it computed last.
 * Kernels that wait for a peer (a collective, a flag that nobody sets) keep the compute units busy,
 * touch no memory and draw hardly more than an idle GPU. Pure; called by health_answers.c, and by
 * build/hangs. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct gpu_work {
	double power_most;   /* since a job came */
	bool memory;         /* its memory worked, since a job came */
	int64_t read_at;     /* MO_NONE: it cannot be read */
	int64_t worked_at;   /* it computed last; MO_NONE: not known to have, since a job came */
	int64_t spins_since; /* MO_NONE: it does not */
};
/* A job comes. */
void gpu_work_begin(struct gpu_work *w);
/* Percent of the time in which compute units and memory were busy, and watts; MO_NONE_F: it was not
 * told. */
void gpu_work_take(struct gpu_work *w, double busy, double memory, double power, int64_t now);
