/* The steps of a node as production's agent has them (agent/step_effect.c, step_dir.c,
 * step_entry.c, step_left.c, step_talk.c, sweep.c), on the disk of that node; and what is there in
 * truth. The agent may die at any change of the disk. */
#pragma once
#include "tests/sim/sim.h"

/* An effect of the core's on a step. */
void steps_effect(struct sim *s, int node, struct agent_effect *x);
/* At the start of an agent: all that is found; false: it died within. */
bool steps_adopt(struct sim *s, int node);
void steps_connect(struct sim *s, int node); /* to their supervisors */
/* What ended is removed: the end of the agent's turn. */
void steps_tidy(struct sim *s, int node);
/* Segments of journals that the controller has go. */
void steps_trim(struct sim *s, int node);
/* Its supervisor was started by that instance of the agent, and begins now, or not. */
void steps_spawned(struct sim *s, struct simstep *st, int64_t instance);
/* The node lost its power; runtime_on_disk: its step directories are no memory. */
void steps_lost(struct sim *s, int node, bool runtime_on_disk);
