/* The third and the fourth net: after a stepd's proven death every process whose environment
 * carries the step's MOE_STEP is killed, and every one in the step's own mount namespace, which it
 * cannot put off; again and again until a scan finds none (and the step's own cgroup, where there
 * is one, is empty). Only that is proof that nothing of the step is left. */
#include "agent/sweep.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "agent/cgroup.h"
#include "agent/core/stepd/namespace_words.h"
#include "agent/queue.h"
#include "agent/step_dir.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/base/proc.h"
#include "lib/loop/loop.h"

#define SWEEP_FIRST_US 1000
#define SWEEP_MAX_US 1000000
/* in one go: each finds what was forked during the one before */
#define PASSES_MAX 8
#define NUMBER_MAX 32

/* Its number, 0: it has none. It is written before the first process of the job is forked. */
static uint64_t namespace_of(const struct step_dir *d)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t number;

	if (mo_read_file_at(d->fd, "namespace", NUMBER_MAX, &b) < 0 || !b.data)
		return 0;
	b.data[strcspn(b.data, "\n")] = '\0';
	return mo_parse_i64(b.data, 1, INT64_MAX, &number) == 0 ? (uint64_t)number : 0;
}

/* Both nets: how many of the step are not dead yet. */
static size_t hunt(struct step_dir *d)
{
	_cleanup_(mo_freep) char *mark = mo_printf("MOE_STEP=%s", d->spool.step_id);
	_cleanup_(mo_freep) char *id = mo_printf("%s\n", d->spool.step_id);

	d->hunt.assignment = mark;
	d->hunt.mnt = namespace_of(d);
	d->hunt.marker = NAMESPACE_MARKER;
	d->hunt.text = id;
	return mo_hunt_pass(&d->hunt);
}

static void pass(void *arg)
{
	struct step_dir *d = arg;
	size_t found = 0;
	bool empty = cgroup_kill(d);
	for (int i = 0; i < PASSES_MAX; i++) {
		found = hunt(d);
		if (found == 0)
			break;
	}
	if (found == 0 && empty) {
		struct agent_event e = { .type = AE_SWEPT, .job = d->job, .attempt = d->attempt };
		d->sweeping = false;
		mo_hunt_done(&d->hunt);
		cgroup_remove(d);
		queue_event(d->manager, &e);
		return;
	}
	if (d->sweep_step_us >= SWEEP_MAX_US)
		mo_log(MO_WARNING, NULL,
		       &(struct mo_log_where){ .job = d->job,
					       .attempt = d->attempt,
					       .rank = -1,
					       .node = d->manager->config->node },
		       "%s: %zu processes of the step do not die yet", d->path, found);
	mo_timer_in(d->sweep_timer, d->sweep_step_us);
	d->sweep_step_us = MO_MIN(d->sweep_step_us * 2, SWEEP_MAX_US);
}

void step_sweep(struct step_dir *d)
{
	if (d->sweeping)
		return;
	if (!d->spool.step_id) {
		mo_log(MO_ERR, NULL,
		       &(struct mo_log_where){ .job = d->job,
					       .attempt = d->attempt,
					       .rank = -1,
					       .node = d->manager->config->node },
		       "%s: its supervisor is dead, and neither launch.json nor step_id says which "
		       "processes are of the step: its job waits; look for them, and boot the node "
		       "or fence it once it is powered off",
		       d->path);
		return;
	}
	if (!d->sweep_timer && mo_timer_new(d->manager->loop, pass, d, &d->sweep_timer) < 0)
		abort(); /* timers take no descriptor: only memory can be missing */
	d->sweeping = true;
	d->sweep_step_us = SWEEP_FIRST_US;
	pass(d);
}
