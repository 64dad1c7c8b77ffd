/* What the ranks of a step do with processors and GPUs, as means over windows of a minute: many
 * steps of a training, so that the phases of a step do not show. From readings that only grow; a
 * window that is not whole, or in which one of them fell (threads ended), says nothing of it. Told
 * to controllers that read it. Pure; agent/activity.c reads. */
#pragma once
#include "lib/model/message.h"

struct agent_core;
struct agent_event;
struct agent_out;
struct agent_step;

#define ACTIVITY_WINDOW_US (60 * 1000000LL)

/* A value times the time over which it was read, and that time. */
struct activity_sum {
	int64_t us;
	double sum;
};
enum activity_gpu { ACTIVITY_BUSY, ACTIVITY_MEM, ACTIVITY_POWER, _ACTIVITY_GPU_N };
/* Of one rank, since its processes began and its GPU was first read; MO_NONE: cannot be read. */
struct activity_reading {
	int64_t rank, pid;
	int64_t cpu_us, delay_us; /* mo_proc_sched(), of all its processes */
	struct activity_sum gpu[_ACTIVITY_GPU_N];
};
struct activity_marks {
	int64_t at; /* of last; 0: none */
	struct activity_reading last;
	struct rank_activity now; /* of the newest window; window 0: none */
	int64_t sent, acked;      /* number of the window */
};

void activity_take(struct activity_marks *m, const struct activity_reading *r, int64_t now);
bool activity_untold(const struct activity_marks *m);
struct rank_activity activity_tell(struct activity_marks *m);

/* A sync was answered: has the shell look at all steps (AX_ACTIVITY), once in a window. */
void agent_core_activity_due(struct agent_core *s, int64_t now, struct agent_out *out);
/* AE_ACTIVITY */
void agent_step_activity(struct agent_step *e, const struct agent_event *ev, int64_t now);
