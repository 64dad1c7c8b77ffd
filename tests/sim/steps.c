/* See steps.h. */
#include "tests/sim/steps.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/step_dir.h"
#include "agent/step_effect.h"
#include "agent/step_entry.h"
#include "agent/step_talk.h"
#include "lib/base/fd.h"
#include "lib/model/recipe.h"
#include "tests/sim/notes.h"
#include "tests/sim/shell.h"

/* Changes of the disk within one effect. */
#define CHANGES 6

static struct step_dir *dir_of(struct sim *s, const struct simstep *st)
{
	struct shell *sh = s->nodes[st->node].shell;

	return sh ? step_dir_find(&sh->m, st->job, st->attempt) : NULL;
}

/* A directory that is gone took with it what nobody needs any more. */
static void look(struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		_cleanup_(mo_freep) char *dir =
			st->node == node && st->spooled ? notes_dir(s, st) : NULL;

		if (!dir || seam_exists(dir))
			continue;
		if (st->stepd)
			sim_violation(s, "%s is removed under a living supervisor", dir);
		st->spooled = false;
	}
}

/* Within that the agent may die, or its disk be full. */
static bool begin(struct sim *s, int node, bool may_fail, int fails_as)
{
	bool fails = false;

	shell_enter(s->nodes[node].shell);
	if (may_fail && sim_fault(s, F_AGENT_WITHIN, 0.01))
		seam_crash_after(1 + sim_random(s) % CHANGES);
	else if (may_fail && fails_as && (fails = sim_fault(s, fails_as, 0.01)))
		seam_fail_after(1 + sim_random(s) % CHANGES, ENOSPC);
	return fails;
}

/* True: it lives. */
static bool end(struct sim *s, int node)
{
	bool dead = seam_dead();

	seam_alive();
	shell_leave();
	if (dead)
		agent_kill(s, node, sim_between(s, 50 * MS, 5 * S));
	return !dead;
}

static struct simstep *ordered(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = mo_alloc(sizeof(*st));

	if (step_of(s, node, x->job, x->attempt))
		sim_violation(s, "j-%lld attempt %lld is spooled twice on %s", (long long)x->job,
			      (long long)x->attempt, s->nodes[node].name);
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
	return st;
}

void steps_effect(struct sim *s, int node, struct agent_effect *x)
{
	bool writes = x->type == AX_SPOOL || x->type == AX_WRITE_NOTE || x->type == AX_FORGET;
	struct simstep *st =
		x->type == AX_SPOOL ? ordered(s, node, x) : step_of(s, node, x->job, x->attempt);

	if (x->type == AX_WRITE_NOTE && st && st->stepd)
		sim_violation(s,
			      "the agent writes into the journal of a living supervisor, j-%lld "
			      "attempt %lld on %s",
			      (long long)x->job, (long long)x->attempt, s->nodes[node].name);
	if (begin(s, node, writes,
		  x->type == AX_SPOOL        ? F_SPOOL_FAILS
		  : x->type == AX_WRITE_NOTE ? F_JOURNAL_FAILS
					     : 0) &&
	    x->type == AX_SPOOL)
		sim_harm(s, x->job, x->attempt);
	step_effect(&s->nodes[node].shell->m, x);
	if (x->type == AX_SPOOL)
		mo_str_set(&st->step_id, dir_of(s, st)->spool.step_id);
	end(s, node);
	if (x->type == AX_SPOOL || x->type == AX_FORGET)
		look(s, node);
}

bool steps_adopt(struct sim *s, int node)
{
	struct manager *m = &s->nodes[node].shell->m;

	begin(s, node, true, 0);
	m->adopting = true;
	step_entries_adopt(m);
	m->adopting = false;
	bool lives = end(s, node);
	look(s, node);
	for (size_t i = 0; i < s->n_steps && lives; i++) {
		const struct simstep *st = s->steps[i];

		if (st->node == node && st->spooled && !dir_of(s, st))
			sim_violation(s, "the agent of %s does not find j-%lld attempt %lld",
				      s->nodes[node].name, (long long)st->job,
				      (long long)st->attempt);
	}
	if (lives)
		shell_drain(s, node);
	return lives;
}

void steps_connect(struct sim *s, int node)
{
	struct shell *sh = s->nodes[node].shell;

	shell_enter(sh);
	for (size_t i = 0; i < sh->m.n_steps; i++)
		step_talk_connect(sh->m.steps[i]);
	shell_leave();
	shell_drain(s, node);
}

void steps_tidy(struct sim *s, int node)
{
	struct manager *m = &s->nodes[node].shell->m;

	for (size_t i = m->n_steps; i-- > 0;) {
		if (!m->steps[i]->forgotten)
			continue;
		begin(s, node, true, 0);
		step_dir_remove(m->steps[i]);
		bool lives = end(s, node);
		look(s, node);
		if (!lives)
			return;
	}
}

void steps_trim(struct sim *s, int node)
{
	struct shell *sh = s->nodes[node].shell;

	shell_enter(sh);
	for (size_t i = 0; i < sh->m.n_steps; i++) {
		struct step_dir *d = sh->m.steps[i];
		struct simstep *st = step_of(s, node, d->job, d->attempt);
		size_t before = d->journal.n_segments;

		journal_trim(&d->journal,
			     agent_core_through(s->nodes[node].agent, d->job, d->attempt));
		if (st && d->journal.n_segments < before) {
			st->trimmed = (size_t)d->journal.segments[1] - 1;
			s->fault_counts[F_TRIMMED]++;
		}
	}
	shell_leave();
}

void steps_spawned(struct sim *s, struct simstep *st, int64_t instance)
{
	const struct simnode *n = &s->nodes[st->node];
	bool runs = n->power && st->boot == n->boot && stepd_start(s, st);
	struct step_dir *d = n->agent && n->instance == instance ? dir_of(s, st) : NULL;

	if (!d)
		return;
	shell_enter(n->shell);
	step_talk_started(d, runs ? NULL : "moe-stepd ended with status 1");
	shell_leave();
	shell_drain(s, st->node);
}

void steps_lost(struct sim *s, int node, bool runtime_on_disk)
{
	_cleanup_(mo_freep) char *dir = mo_printf("/%s/run", s->nodes[node].name);

	if (!runtime_on_disk)
		seam_remove(dir);
	look(s, node);
}
