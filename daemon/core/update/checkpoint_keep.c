/* See checkpoint_keep.h. What is to go is `deleted` with a reason of its own until the node of
 * rank 0 says that it is gone. Rules ask for the surplus and order its removal by a record; the
 * answers come as scans. */
#include "daemon/core/update/checkpoint_keep.h"

#include "daemon/core/state/checkpoint.h"

static const char left_alone[] = "outside checkpoint.dir: not removed by checkpoint.keep";
static const char removed[] = "checkpoint.keep held newer ones";

/* Never removed: the one that is being loaded, the one that restart --from will load, the one
 * that is being verified, and the last one before a loss spike; what a person pinned, what lies
 * elsewhere or was there before. */
static bool held(const struct job *j, const struct checkpoint *c)
{
	int64_t asked = j->restart_from != MO_NONE
				? checkpoint_newest_at_most(j, j->restart_from, false)
				: MO_NONE;
	/* the last one before the loss went wrong */
	int64_t good = j->progress.spike != MO_NONE
			       ? checkpoint_newest_at_most(j, j->progress.spike - 1, false)
			       : MO_NONE;

	return c->state == CKPT_PINNED || mo_streq(c->reason, left_alone) ||
	       c->attempt == MO_NONE || c->iteration == asked || c->iteration == good ||
	       c->iteration == j->verify.iteration ||
	       (c->iteration == j->run.resume && j->progress.iteration == MO_NONE);
}

/* The oldest usable one behind `keep` newer ones that are verified; NULL = none. What was only
 * announced holds no place: it may turn out torn, and then the verified one is all there is. */
const struct checkpoint *checkpoint_surplus(const struct job *j)
{
	int64_t keep = j->spec.recipe.checkpoint.keep, newer = 0;
	const struct checkpoint *oldest = NULL;

	for (size_t i = j->n_checkpoints; keep > 0 && i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (!checkpoint_usable(c) || held(j, c))
			continue;
		if (newer >= keep)
			oldest = c;
		newer += c->state == CKPT_VERIFIED;
	}
	return oldest;
}

void checkpoint_remove(const struct job *j, struct checkpoint *c)
{
	if (!checkpoint_inside(j, c->path)) {
		mo_str_set(&c->reason, left_alone);
		return;
	}
	c->state = CKPT_DELETED;
	mo_str_set(&c->reason, checkpoint_removing_text);
}

bool checkpoint_any_removing(const struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_removing(&j->checkpoints[i]))
			return true;
	return false;
}

void checkpoint_removed(struct checkpoint *c)
{
	if (checkpoint_removing(c))
		mo_str_set(&c->reason, removed);
}

/* Another one whenever one was added, so that an agent never takes an old result for an answer. */
int64_t checkpoint_prune_id(const struct job *j)
{
	for (size_t i = j->n_checkpoints; i > 0 && j->run.n_places > 0; i--)
		if (checkpoint_removing(&j->checkpoints[i - 1]))
			return j->checkpoints[i - 1].iteration;
	return MO_NONE;
}

/* The answer to that order. Nothing else is judged by it: the job is writing. */
void checkpoint_pruned(struct job *j, const struct scan_result *r)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (!scan_found(r, j->checkpoints[i].iteration))
			checkpoint_removed(&j->checkpoints[i]);
}

/* The job is over and nobody will be asked again: what was to be removed is gone, or is shown as
 * what lies there. r NULL, or with an error: there was no scan. */
void checkpoint_removal_over(struct job *j, const struct scan_result *r)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];
		const struct found_checkpoint *f =
			r && !r->error ? scan_found(r, c->iteration) : NULL;

		if (!checkpoint_removing(c))
			continue;
		if (f)
			c->state = f->complete ? CKPT_VERIFIED : CKPT_TORN;
		mo_str_set(&c->reason, f && f->complete ? "it could not be removed, though "
							  "checkpoint.keep holds newer ones"
				       : f              ? f->reason ? f->reason : "incomplete"
				       : r && !r->error ? removed
							: "checkpoint.keep held newer ones; nobody "
							  "could look whether it is gone");
	}
}
