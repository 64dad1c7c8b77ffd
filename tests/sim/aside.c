/* What production's agent asks for beside a step's directory, in place of agent/reserve.c, unit.c,
 * release.c, motion.c, recorder.c, activity.c, layers.c, runtimes.c and ending.c: supervisors are
 * started, GPUs given back, ranks looked at, what is left of a step hunted. */
#include "agent/activity.h"
#include "agent/core/agent/motion.h"
#include "agent/ending.h"
#include "agent/helper.h"
#include "agent/layers.h"
#include "agent/motion.h"
#include "agent/queue.h"
#include "agent/recorder.h"
#include "agent/release.h"
#include "agent/reserve.h"
#include "agent/runtimes.h"
#include "agent/unit.h"

#include <signal.h>

#include "lib/base/proc.h"
#include "tests/sim/shell.h"

#define RELEASE_US (30 * S)

static struct simstep *truth_of(const struct step_dir *d)
{
	const struct shell *sh = shell_of(d->manager);

	return step_of(sh->sim, sh->node, d->job, d->attempt);
}

/* The processes of a step, by the environment that they have from it. */
static size_t hunt(const struct mo_hunt *h)
{
	const struct step_dir *d =
		(const void *)((const char *)h - offsetof(struct step_dir, hunt));
	const struct shell *sh = shell_of(d->manager);
	size_t n = 0;

	for (size_t i = 0; i < sh->sim->n_steps; i++) {
		struct simstep *st = sh->sim->steps[i];
		_cleanup_(mo_freep) char *mark = st->node == sh->node && st->forked
							 ? mo_printf("MOE_STEP=%s", st->step_id)
							 : NULL;

		if (mark && mo_streq(mark, h->assignment))
			n += proc_hunt(sh->sim, st);
	}
	return n;
}

/* ---- supervisors are started ---- */

static void start(struct starter *starter, struct step_dir *d)
{
	const struct shell *sh = shell_of(d->manager);
	struct sim *s = sh->sim;
	struct simstep *st = truth_of(d);

	if (st->launch.n_gpus && (!st->freed_at || st->freed_at > s->now))
		sim_violation(s, "j-%lld attempt %lld starts on %s before its GPUs are given back",
			      (long long)st->job, (long long)st->attempt, shell_node(sh)->name);
	sim_at(s, s->now + sim_between(s, 100, 2 * MS), K_SPAWN, shell_node(sh)->instance, 0, st,
	       NULL);
}

static void done(struct starter *starter) {}

int unit_starter_new(struct manager *m, struct starter **ret, struct mo_error *err)
{
	return 1; /* no systemd */
}

int reserve_starter_new(struct manager *m, struct starter **ret)
{
	static struct starter starter = { .start = start, .free = done };

	seam_on_hunt = hunt;
	*ret = &starter;
	return 0;
}

/* ---- GPUs ---- */

/* Drivers give GPUs back late, or never: an agent that began anew finds it as it was. */
void release_ask(struct releases *r, struct step_dir *d)
{
	const struct shell *sh = shell_of(d->manager);
	struct sim *s = sh->sim;
	struct simstep *st = truth_of(d);
	struct agent_event e = { .type = AE_RELEASED, .job = d->job, .attempt = d->attempt };

	for (size_t i = 0; i < st->launch.n_gpus; i++)
		if (shell_node(sh)->gpus[st->launch.gpus[i]])
			st->freed_at = INT64_MAX; /* by whom nobody knew of */
	if (!st->freed_at)
		st->freed_at = sim_fault(s, F_GPU_LATE, 0.05) ? s->now + sim_between(s, MS, 30 * S)
			       : sim_fault(s, F_GPU_HELD, 0.01) ? INT64_MAX
								: s->now;
	e.ok = st->freed_at <= s->now + RELEASE_US;
	if (st->freed_at > s->now)
		queue_event(d->manager,
			    &(struct agent_event){ .type = AE_HELD,
						   .job = d->job,
						   .attempt = d->attempt,
						   .text = mo_strdup("GPU 0 is held") });
	if (!e.ok) {
		sim_harm(s, d->job, d->attempt);
		e.text = "GPU 0 is not given back";
	}
	agent_later(s, sh->node, e.ok ? MO_MAX(st->freed_at - s->now, 1) : RELEASE_US, &e);
}

/* ---- processes ---- */

void motion_look(struct step_dir *d)
{
	const struct shell *sh = shell_of(d->manager);
	struct attempt *a = sim_attempt(sh->sim, d->job, d->attempt);
	struct agent_event e = { .type = AE_MOTION, .job = d->job, .attempt = d->attempt };
	struct motion_reading *ranks =
		agent_core_ranks(d->manager->core, d->job, d->attempt, &e.n_readings);

	for (size_t i = 0; a && i < e.n_readings; i++)
		engine_motion(sh->sim, a, &ranks[i]);
	e.readings = ranks;
	queue_event(d->manager, &e);
}

void recorder_ask(struct step_dir *d) {}

void activity_look(struct step_dir *d) {}

/* ---- what no step has here ---- */

int layers_make(struct layers *l, int64_t job, int64_t attempt)
{
	return 0;
}

void layers_remove(struct layers *l, int64_t job, int64_t attempt) {}

void runtimes_release(struct runtimes *r, const struct step_dir *d) {}

void ending_ask(struct manager *m) {}

struct helper *helper_free(struct helper *h)
{
	return NULL;
}
