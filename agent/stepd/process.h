/* The main process of a rank, or that of engine.prepare: forked into the ranks' cgroup, watched,
 * signalled. What its end means is the caller's to say. */
#pragma once
#include "agent/stepd/stepd.h"

struct child_plan;

/* 0, or a negative errno. on_report: its exec failed or succeeded; on_death: it can be reaped. */
int process_fork(struct stepd *s, struct rank *r, struct child_plan *p, source_fn on_report,
		 source_fn on_death);
void process_raise_limits(struct stepd *s); /* this process' own, which it hands on */
void process_signal_ranks(struct stepd *s, int signal);
