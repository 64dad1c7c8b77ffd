/* What users are shown of a note: an event of its kind, and once per job that its engine saves
 * where nothing would be resumed from. Called by reports.c for each note that was new. */
#include "daemon/core/rules/note_events.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/numbers.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/checkpoint.h"
#include "lib/base/buf.h"

/* caller frees */
static char *how_it_ended(const struct job *j, const struct note *n)
{
	const char *meaning = engine_exit_meaning(&j->spec.engine, n->code);
	const char *name = n->signal > 0 ? sigabbrev_np((int)n->signal) : NULL;

	if (mo_streq(n->cause, "exited") && n->code != MO_NONE)
		return mo_printf("exit code %lld%s%s", (long long)n->code, meaning ? ": " : "",
				 meaning ? meaning : "");
	if (mo_streq(n->cause, "signalled") && n->signal != MO_NONE)
		return mo_printf("signal %lld%s%s", (long long)n->signal, name ? " SIG" : "",
				 name ? name : "");
	return mo_strdup(n->cause ? n->cause : "?");
}

/* An engine that announces at the wrong place does so at every save: reported once. */
static void refused_event(struct turn *t, const struct job *j, const struct step *st,
			  const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_str(&b, "path", n->path);
	event_emit(t, EVENT_CHECKPOINT_REFUSED, j->id, st->node, n->rank, st->attempt, data_end(&b),
		   "checkpoint announced at %s, which is %s checkpoint.dir %s: it is not counted "
		   "as complete; announce the absolute path of what was saved there (reported once "
		   "per "
		   "job)",
		   n->path, n->path[0] == '/' ? "outside" : "relative, not inside",
		   j->spec.recipe.checkpoint.dir);
}

/* The engine saves where nothing would be resumed from: reported at its first save, when that
 * begins. */
static void elsewhere_event(struct turn *t, const struct job *j, const struct step *st,
			    const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	data_str(&b, "path", n->path);
	data_str(&b, "dir", j->spec.recipe.checkpoint.dir);
	event_emit(t, EVENT_CHECKPOINT_ELSEWHERE, j->id, st->node, n->rank, st->attempt,
		   data_end(&b),
		   "%s saves to %s, and not to checkpoint.dir %s: it would never be resumed from "
		   "there, and ends with its first save, if the node says that these are two "
		   "places",
		   j->spec.recipe.name, n->path, j->spec.recipe.checkpoint.dir);
}

/* The first save that is not in checkpoint.dir is reported. */
bool note_tell_place(struct turn *t, const struct job *j, const struct step *st,
		     const struct note *n)
{
	bool elsewhere = checkpoint_elsewhere(j, n);

	if ((n->kind != NOTE_CHECKPOINT && n->kind != NOTE_SAVING) ||
	    (!elsewhere && checkpoint_inside(j, n->path)))
		return false;
	if (elsewhere)
		elsewhere_event(t, j, st, n);
	else
		refused_event(t, j, st, n);
	return true;
}

void note_event(struct turn *t, const struct job *j, const struct step *st, const struct note *n)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *how = how_it_ended(j, n);
	_cleanup_(mo_freep) char *from =
		n->iteration == MO_NONE
			? NULL
			: mo_printf(" from iteration %lld", (long long)n->iteration);
	const char *path = checkpoint_entry_path(j, n->path);
	bool ours = mo_streq(n->cause, "killed") || mo_streq(n->cause, "stopped");
	int64_t iteration = checkpoint_iteration(n, j->progress.iteration);
	const struct checkpoint *c;

	switch (n->kind) {
	case NOTE_EXIT:
		if (ours && j->run.n_ranks > 512)
			/* thousands of ends by our own order would push everything else out of
			 * the ring */
			return;
		data_int(&b, "code", n->code);
		data_int(&b, "signal", n->signal);
		data_str(&b, "cause", n->cause);
		event_emit(t, EVENT_RANK_EXITED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "rank %lld on %s ended: %s", (long long)n->rank, st->node,
			   how);
		break;
	case NOTE_CHECKPOINT:
		if (iteration < 0 || checkpoint_elsewhere(j, n) || !checkpoint_inside(j, n->path))
			return;
		data_int(&b, "iteration", iteration);
		data_str(&b, "path", path);
		event_emit(t, EVENT_CHECKPOINT_SAVED, j->id, st->node, MO_NONE, st->attempt,
			   data_end(&b), "checkpoint %lld saved%s%s", (long long)iteration,
			   path ? ": " : "", path ? path : "");
		c = checkpoint_find(j, iteration);
		if (c && checkpoint_tainted(c))
			numbers_tell_tainted(t, j->id, c);
		if (j->spec.engine.layout.unnumbered && n->text)
			event_emit(t, EVENT_CHECKPOINT_UNKEPT, j->id, st->node, MO_NONE,
				   st->attempt, NULL,
				   "checkpoint %lld is written over by the next save, and %s: a "
				   "failure in the middle of that save loses both",
				   (long long)iteration, n->text);
		break;
	case NOTE_RESUMED:
		data_int(&b, "iteration", n->iteration);
		event_emit(t, EVENT_JOB_RESUMED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "the engine says it resumed%s", from ? from : "");
		break;
	case NOTE_REFUSED:
		data_str(&b, "cause", n->cause);
		event_emit(t, EVENT_STEP_REFUSED, j->id, st->node, n->rank, st->attempt,
			   data_end(&b), "%s refused the launch: %s%s%s", st->node,
			   n->cause ? n->cause : "?", n->text ? SAID : "", n->text ? n->text : "");
		break;
	case NOTE_LOST:
		event_emit(t, EVENT_STEP_LOST, j->id, st->node, MO_NONE, st->attempt, NULL,
			   "the supervisor of %s on %s died", j->spec.recipe.name, st->node);
		break;
	case NOTE_STOPPING:
		event_emit(t, EVENT_STEP_STOPPED_OUTSIDE, j->id, st->node, MO_NONE, st->attempt,
			   NULL, "the step on %s is being stopped, not by moectl: %s", st->node,
			   n->text ? n->text : "");
		break;
	case NOTE_UNKILLABLE:
		event_emit(t, EVENT_STEP_UNKILLABLE, j->id, st->node, n->rank, st->attempt, NULL,
			   "process %lld on %s cannot be killed; the node gets no work until it is "
			   "gone",
			   (long long)n->pid, st->node);
		break;
	default: break;
	}
}
