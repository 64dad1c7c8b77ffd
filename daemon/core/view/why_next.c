/* What comes next for a job, or what a person is to do. */
#include "daemon/core/view/why_next.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/rules/policy.h"
#include "daemon/core/rules/unread.h"
#include "daemon/core/rules/words.h"
#include "daemon/core/state/space.h"
#include "daemon/core/view/unsaved.h"
#include "daemon/core/view/why_fabric.h"

/* The failure that ended the job; NULL: it ended otherwise, whatever earlier attempts met. */
const struct incident *why_ended_by(const struct job *j)
{
	const struct incident *inc = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;

	return inc && inc->attempt == j->attempt ? inc : NULL;
}

/* The last words of a rank whose GPU had no more memory. */
static bool out_of_memory(const struct incident *inc)
{
	static const char *const words[] = {
		"HIP out of memory",           "CUDA out of memory",  "HIP error: out of memory",
		"CUDA error: out of memory",   "hipErrorOutOfMemory", "torch.OutOfMemoryError",
		"torch.cuda.OutOfMemoryError", "RESOURCE_EXHAUSTED"
	};

	for (size_t i = 0; inc && i < inc->n_evidence; i++)
		for (size_t k = 0; k < ELEMENTSOF(words); k++)
			if (strstr(inc->evidence[i], words[k]))
				return true;
	return false;
}

/* What helps: the same submit again does not help against an error of the user's. */
static const char *next_of_failed(const struct job *j)
{
	const struct incident *inc = why_ended_by(j);
	bool retained = j->saves.dir && state_newest_checkpoint(j) != MO_NONE &&
			j->spec.recipe.checkpoint.resume != -2;

	if (j->saves.elsewhere)
		return "submit it with checkpoint.dir of the place where the engine saves; as it "
		       "is, it fails again";
	if (inc && mo_streq(inc->class, "user_error") && mo_streq(inc->cause, "prepare"))
		return "mend what engine.prepare said, then submit it again; as it is, it fails "
		       "again";
	if (out_of_memory(inc))
		return "its GPU memory did not suffice: take less of it (a smaller batch.micro, "
		       "recompute: full, more of tp, pp, ep or cp, sharding zero1 to zero3; "
		       "'moectl plan' shows what fits), then submit it again";
	if (inc && mo_streq(inc->class, "user_error"))
		return "mend what the reason names, then submit it again; as it is, it fails again";
	if (j->reason && mo_starts_with(j->reason, ENDED_EARLY))
		return "its ranks ended without an error before `steps`: mend that (moectl logs "
		       "says what they did last), or give the steps that it makes, and submit it "
		       "again";
	if (retained)
		return "mend what ended it, then 'moectl restart JOB': that goes on from its last "
		       "checkpoint";
	return "mend what ended it, then 'moectl restart JOB', or submit it again";
}

/* No scan was made when nothing was announced: what a script saved without a word is not denied. */
static const char *next_of_completed(const struct job *j)
{
	_cleanup_(mo_freep) char *beyond = policy_beyond_steps(j);

	if (beyond)
		return "nothing follows; before the next submit, give its program {steps} in "
		       "engine.args, or `steps` the number that it makes";
	if (!j->saves.dir || j->spec.recipe.steps == MO_NONE ||
	    j->spec.recipe.checkpoint.resume == -2)
		return "nothing follows; submit it again to run it again";
	if (j->n_checkpoints == 0 && j->scan.n_unread == 0 && !j->scan.at_end)
		return "nothing follows; no checkpoint of it is known: the same recipe begins at "
		       "0, unless checkpoint.dir holds one";
	return "nothing follows; the same recipe resumes from its last checkpoint: give it more "
	       "steps, or start afresh with '--set checkpoint.resume=never'";
}

bool why_attempt_runs(const struct job *j)
{
	return j->run.n_places > 0 && j->counts.started == (int64_t)j->run.n_places &&
	       !j->failure.decided;
}

const char *why_next(const struct job *j, const struct waiting *w)
{
	if (w->code == WAITING_UNREAD)
		return checkpoint_unread_next(j);
	if (w->code != WAITING_NOT && j->state != JOB_STOPPING)
		return waiting_kinds[w->code].next;
	switch (j->state) {
	case JOB_QUEUED: return waiting_kinds[WAITING_NOT].next;
	case JOB_STARTING: return "it runs when every rank was started";
	case JOB_RECOVERING:
		return why_attempt_runs(j) ? "it runs again with its first iteration"
					   : "the next attempt starts by itself";
	case JOB_STOPPING: return "it ends when every rank is proved gone";
	case JOB_PAUSED: return "say 'moectl resume' to go on";
	case JOB_FAILED: return next_of_failed(j);
	case JOB_COMPLETED: return next_of_completed(j);
	default: return "nothing follows; submit it again to run it again";
	}
}

char *why_next_of_running(const struct job *j)
{
	_cleanup_(checkpoint_unsaved_done) struct unsaved u;

	if (!checkpoint_unsaved(j, &u) && space_of(j).level >= SPACE_LOW)
		return mo_printf("make room in %s before its saves fail", j->saves.dir);
	if (!u.text) {
		char *fabric = why_fabric_next(j);

		return fabric ? fabric : mo_strdup("nothing to do");
	}
	_cleanup_(mo_freep) char *back = u.base > 0 ? mo_printf("iteration %lld", (long long)u.base)
						    : mo_strdup("the beginning");

	return mo_printf("a failure now goes back to %s: see that it saves into checkpoint.dir "
			 "('moectl logs j-%lld', 'moectl events j-%lld')",
			 back, (long long)j->id, (long long)j->id);
}
