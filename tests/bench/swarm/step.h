/* A step of an emulated agent: the notes that its supervisor would write. */
#pragma once
#include "tests/bench/swarm/swarm.h"

#define SIGNAL_KILL 9

void step_begin(struct swarm_step *s, const struct command *launch, int64_t due_ns);
void step_done(struct swarm_step *s);
/* Its ranks run, and end by themselves then. */
void step_run(struct swarm_step *s, int64_t end_ns);
/* The ranks that are left end (signal 0: by exit status 0), and nothing of the step is left. false:
 * that was so before. */
bool step_end(struct swarm_step *s, int64_t signal);
/* Its first rank dies. false: it does not run. */
bool step_fail(struct swarm_step *s);
/* One beat passed: an iteration. */
void step_advance(struct swarm_step *s);
void step_acknowledged(struct swarm_step *s, int64_t through);
/* Borrows the notes; ret->progress is the caller's to free. */
void step_report_fill(const struct swarm_step *s, bool progress, struct step_report *ret);
