/* Steps on the disk of their node: spool entries and journals, as an agent has them. */
#include "tests/sim/spool.h"

#include "lib/model/launch.h"
#include "lib/model/recipe.h"

#define SEGMENT 16 /* notes of a bulky journal's segment */

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
	agent_later(s, node, sim_between(s, 100, 2 * MS), &e);
}

void spool_write_note(struct sim *s, int node, const struct agent_effect *x)
{
	struct simstep *st = step_of(s, node, x->job, x->attempt);
	struct agent_event e = { .type = AE_NOTE, .job = x->job, .attempt = x->attempt };
	struct note *n;

	if (!st)
		return;
	if (st->stepd)
		sim_violation(s,
			      "the agent writes into the journal of a living supervisor, j-%lld "
			      "attempt %lld on %s",
			      (long long)x->job, (long long)x->attempt, s->nodes[node].name);
	if (st->n_notes == 0 || st->notes[st->n_notes - 1].n < x->note->n) {
		n = mo_vec_add(&note_desc, (void **)&st->notes, &st->n_notes);
		mo_desc_copy(&note_desc, n, x->note);
		n->mono_ns = s->now * 1000;
		n->time = s->now;
	}
	e.note = x->note;
	agent_later(s, node, 100, &e);
}

/* Segments of a journal go once the controller has all of them; never the first, nor the newest. */
static bool is_there(const struct simstep *st, size_t i)
{
	return i < SEGMENT || i >= st->trimmed;
}

void spool_trim(struct sim *s, int node)
{
	for (size_t i = 0; i < s->n_steps; i++) {
		struct simstep *st = s->steps[i];
		int64_t through =
			st->node == node && st->bulky && st->spooled
				? agent_core_through(s->nodes[node].agent, st->job, st->attempt)
				: 0;

		while ((int64_t)st->trimmed + SEGMENT <= through &&
		       st->trimmed + SEGMENT < st->n_notes) {
			st->trimmed += SEGMENT;
			s->fault_counts[F_TRIMMED] += st->trimmed > SEGMENT;
		}
	}
}

void spool_reread(struct sim *s, const struct simstep *st)
{
	struct agent_event again = { .type = AE_REREAD, .job = st->job, .attempt = st->attempt };

	agent_later(s, st->node, 1, &again);
	for (size_t i = 0; i < st->n_notes; i++) {
		struct agent_event line = { .type = AE_NOTE,
					    .job = st->job,
					    .attempt = st->attempt,
					    .note = &st->notes[i] };

		if (is_there(st, i))
			agent_later(s, st->node, 1, &line);
	}
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
	agent_event(s, node, &e);
	for (size_t i = 0; e.boot_same && n->agent && i < st->n_notes; i++) {
		struct agent_event line = { .type = AE_NOTE,
					    .job = st->job,
					    .attempt = st->attempt,
					    .note = &st->notes[i] };

		if (is_there(st, i))
			agent_event(s, node, &line);
	}
	if (e.lock_held && st->hung) {
		sim_at(s, s->now + 5 * S, K_SILENT, st->instance, 0, st, NULL);
	} else if (e.lock_held) {
		struct agent_event up = { .type = AE_STEPD_UP,
					  .job = st->job,
					  .attempt = st->attempt };

		agent_later(s, node, MS, &up);
	}
}
