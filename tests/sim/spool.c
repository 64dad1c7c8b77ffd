/* Steps on the disk of their node: spool entries, and journals as production's agent reads them. */
#include "tests/sim/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "agent/journal.h"
#include "agent/queue.h"
#include "lib/base/fd.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "tests/sim/notes.h"
#include "tests/sim/shell.h"

/* An agent's, while it lives. */
struct reader {
	int dir_fd;
	struct journal journal;
};

static struct reader *reader_free(struct reader *r)
{
	if (!r)
		return NULL;
	journal_done(&r->journal);
	mo_close(r->dir_fd);
	free(r);
	return NULL;
}

static void open_journal(struct sim *s, struct simstep *st)
{
	_cleanup_(mo_freep) char *dir = notes_dir(s, st);

	st->reader = mo_alloc(sizeof(*st->reader));
	st->reader->dir_fd = mo_open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	if (st->reader->dir_fd < 0)
		sim_violation(s, "%s is not there", dir);
	journal_init(&st->reader->journal, st->reader->dir_fd);
}

static void make_dir(struct sim *s, const struct simstep *st)
{
	_cleanup_(mo_freep) char *dir = notes_dir(s, st);

	shell_enter(s->nodes[st->node].shell);
	if (mo_mkdir_p(dir, 0700, false) < 0)
		sim_violation(s, "%s cannot be made", dir);
	shell_leave();
}

void spool_step(struct sim *s, int node, const struct agent_effect *x)
{
	struct agent_event e = {
		.type = AE_SPOOL_DONE, .job = x->job, .attempt = x->attempt, .ok = true
	};
	struct simstep *st;

	if (sim_fault(s, F_SPOOL_FAILS, 0.01)) {
		sim_harm(s, x->job, x->attempt);
		e.ok = false;
		e.text = "no space left on device";
		agent_later(s, node, MS, &e);
		return;
	}
	if (step_of(s, node, x->job, x->attempt))
		sim_violation(s, "j-%lld attempt %lld is spooled twice on %s", (long long)x->job,
			      (long long)x->attempt, s->nodes[node].name);
	st = mo_alloc(sizeof(*st));
	st->node = node;
	st->job = x->job;
	st->attempt = x->attempt;
	st->boot = s->nodes[node].boot;
	mo_desc_init(&launch_desc, &st->launch);
	mo_desc_copy(&launch_desc, &st->launch, x->command->launch);
	if (st->launch.container && !node_runs_images(s, node))
		sim_violation(s, "j-%lld, which has an image, is given to %s, which cannot run it",
			      (long long)x->job, s->nodes[node].name);
	st->spooled = true;
	st->bulky = sim_chance(s, 0.3);
	*MO_GROW(s->steps, s->n_steps) = st;
	make_dir(s, st);
	open_journal(s, st);
	agent_later(s, node, sim_between(s, 100, 2 * MS), &e);
}

static void on_note(void *arg, struct note *n)
{
	const struct simstep *st = arg;
	struct agent_event e = {
		.type = AE_NOTE, .job = st->job, .attempt = st->attempt, .note = n
	};

	queue_event(&st->queue->m, &e);
}

static void read_on(struct sim *s, struct simstep *st)
{
	struct shell *sh = s->nodes[st->node].shell;

	st->queue = sh;
	shell_enter(sh);
	int r = journal_read(&st->reader->journal, on_note, st);
	shell_leave();
	if (r != 0)
		sim_violation(s, "the journal of j-%lld attempt %lld on %s: %d", (long long)st->job,
			      (long long)st->attempt, s->nodes[st->node].name, r);
}

void spool_read(struct sim *s, struct simstep *st)
{
	if (!st->reader)
		return;
	read_on(s, st);
	shell_drain(s, st->node);
}

void spool_write_note(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = step_of(s, node, x->job, x->attempt);
	struct shell *sh = s->nodes[node].shell;

	if (!st || !st->reader)
		return;
	if (st->stepd)
		sim_violation(s,
			      "the agent writes into the journal of a living supervisor, j-%lld "
			      "attempt %lld on %s",
			      (long long)x->job, (long long)x->attempt, s->nodes[node].name);
	x->note->mono_ns = clock_boot_us(s, node) * 1000;
	x->note->time = clock_wall_us(s, node);
	shell_enter(sh);
	if (sim_fault(s, F_AGENT_WITHIN, 0.01))
		seam_crash_after(1 + sim_random(s) % 3);
	else if (sim_fault(s, F_JOURNAL_FAILS, 0.01))
		seam_fail_after(1 + sim_random(s) % 3, ENOSPC);
	if (x->note->n > st->reader->journal.last)
		journal_append(&st->reader->journal, x->note);
	bool dead = seam_dead();
	seam_alive();
	shell_leave();
	if (dead)
		agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
	else
		spool_read(s, st);
}

void spool_trim(struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		struct journal *j = st->reader ? &st->reader->journal : NULL;

		if (!j || st->node != node)
			continue;
		size_t before = j->n_segments;
		journal_trim(j, agent_core_through(s->nodes[node].agent, st->job, st->attempt));
		if (j->n_segments < before) {
			st->trimmed = (size_t)j->segments[1] - 1;
			s->fault_counts[F_TRIMMED]++;
		}
	}
}

void spool_reread(struct sim *s, struct simstep *st)
{
	struct agent_event again = { .type = AE_REREAD, .job = st->job, .attempt = st->attempt };

	if (!st->reader)
		return;
	journal_done(&st->reader->journal);
	journal_init(&st->reader->journal, st->reader->dir_fd);
	queue_event(&s->nodes[st->node].shell->m, &again);
	spool_read(s, st);
}

void spool_adopt(struct sim *s, int node, struct simstep *st)
{
	struct simnode *n = &s->nodes[node];
	struct agent_event e = { .type = AE_SPOOLED_STEP,
				 .job = st->job,
				 .attempt = st->attempt,
				 .launch = &st->launch };

	e.boot_same = st->boot == n->boot;
	e.lock_held = e.boot_same && st->stepd;
	open_journal(s, st);
	agent_event(s, node, &e);
	if (e.boot_same && n->agent)
		spool_read(s, st);
	if (e.lock_held && st->hung) {
		sim_at(s, s->now + 5 * S, K_SILENT, st->instance, 0, st, NULL);
	} else if (e.lock_held) {
		struct agent_event up = { .type = AE_STEPD_UP,
					  .job = st->job,
					  .attempt = st->attempt };

		agent_later(s, node, MS, &up);
	}
}

static void remove_dir(struct sim *s, const struct simstep *st)
{
	_cleanup_(mo_freep) char *dir = notes_dir(s, st);

	seam_be(&(struct seam_life){ 0 });
	if (mo_rm_rf(dir) < 0)
		sim_violation(s, "%s cannot be removed", dir);
	seam_be(NULL);
}

void spool_forget(struct sim *s, struct simstep *st)
{
	st->spooled = false;
	st->reader = reader_free(st->reader);
	remove_dir(s, st);
}

void spool_close(struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++)
		if (s->steps[i]->node == node)
			s->steps[i]->reader = reader_free(s->steps[i]->reader);
}
