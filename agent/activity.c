/* What the ranks of a step did with their processors and GPUs since they began (AX_ACTIVITY,
 * agent/core/agent/activity.h): processors by the kernel's own memory, once a minute; GPUs by what
 * their probes told (agent/health.c), which are not probed for it. */
#include "agent/activity.h"

#include "agent/core/agent/activity.h"
#include "agent/core/agent/motion.h"
#include "agent/health.h"
#include "agent/motion.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/clock.h"
#include "lib/base/proc.h"

/* Its process and those below. */
static void add(struct activity_reading *r, const struct motion_process *p)
{
	int64_t cpu, delay;

	if (mo_proc_sched((pid_t)p->pid, &cpu, &delay) < 0)
		return;
	r->cpu_us = MO_MAX(r->cpu_us, 0) + cpu;
	r->delay_us = MO_MAX(r->delay_us, 0) + delay;
}

/* The GPU that is its own: a rank of several, or of a part of one, has none here. */
static const char *gpu_of(const struct step_dir *d, int64_t rank)
{
	const struct nodeinfo *info = &d->manager->info;
	const struct launch *l = &d->spool.launch;
	size_t at = (size_t)(rank - l->first_rank);
	const char *bdf = NULL;

	if ((size_t)l->n_local != l->n_gpus || at >= l->n_gpus)
		return NULL;
	for (size_t i = 0; i < info->n_gpus && !bdf; i++)
		if (info->gpus[i].index == l->gpus[at])
			bdf = info->gpus[i].bdf;
	for (size_t i = 0; i < info->n_gpus && bdf; i++)
		if (info->gpus[i].index != l->gpus[at] && mo_streq(info->gpus[i].bdf, bdf))
			return NULL;
	return bdf;
}

static struct activity_sum sum_of(const struct health_sum *s)
{
	return (struct activity_sum){ s->us, s->sum };
}

static void add_gpu(struct activity_reading *r, const struct health_activity *a)
{
	r->gpu[ACTIVITY_BUSY] = sum_of(&a->busy_pct);
	r->gpu[ACTIVITY_MEM] = sum_of(&a->mem_pct);
	r->gpu[ACTIVITY_POWER] = sum_of(&a->power_w);
}

void activity_look(struct step_dir *d)
{
	struct agent_event e = { .type = AE_ACTIVITY, .job = d->job, .attempt = d->attempt };
	size_t n_ranks, n = 0;
	_cleanup_(mo_freep) struct motion_reading *ranks =
		agent_core_ranks(d->manager->core, d->job, d->attempt, &n_ranks);
	_cleanup_(mo_freep) struct motion_process *all = motion_processes(ranks, n_ranks, &n);
	struct activity_reading *readings = NULL;

	for (size_t i = 0; i < n_ranks; i++) {
		struct activity_reading *r = MO_GROW(readings, e.n_activities);
		const char *gpu = gpu_of(d, ranks[i].rank);

		*r = (struct activity_reading){ .rank = ranks[i].rank,
						.pid = ranks[i].pid,
						.cpu_us = MO_NONE,
						.delay_us = MO_NONE };
		for (size_t k = 0; k < n; k++)
			if (all[k].root == ranks[i].pid)
				add(r, &all[k]);
		if (gpu)
			add_gpu(r, watch_activity(d->manager->watch, gpu));
	}
	e.activities = readings;
	queue_event(d->manager, &e);
}
