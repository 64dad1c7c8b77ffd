/* A running job without a complete checkpoint where it should have one: what it never saved is lost
 * with its next failure, and nobody would know before. Reported from two save intervals on, and at
 * once when a save was refused or found torn. Derived from state only. */
#include "daemon/core/view/unsaved.h"

#include "daemon/core/state/checkpoint.h"
#include "lib/base/buf.h"

/* a save that goes on beside the iterations ends some time after its turn */
#define INTERVALS_PATIENT 2

static int64_t every_of(const struct job *j)
{
	return j->saves.every > 0 ? j->saves.every : j->spec.recipe.checkpoint.every;
}

/* Where a failure now would go back to; 0 = to the beginning. */
static int64_t goes_back_to(const struct job *j)
{
	return MO_MAX(MO_MAX(checkpoint_newest_at_most(j, j->progress.iteration, false),
			     j->run.resume),
		      0);
}

/* The newest of this job beyond `base` that is no complete checkpoint. */
static const struct checkpoint *newest_not_whole(const struct job *j, int64_t base)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->iteration <= base)
			return NULL;
		if (c->attempt == j->attempt && (c->state == CKPT_TORN || c->state == CKPT_SAVING))
			return c;
	}
	return NULL;
}

static bool says_saves(const struct engine *e)
{
	for (size_t i = 0; i < e->n_rules; i++)
		if (e->rules[i].kind == LINE_SAVED || e->rules[i].kind == LINE_SAVING)
			return true;
	return false;
}

/* What is known of the last save. */
static char *last_save(const struct job *j, const struct checkpoint *c)
{
	const char *kind = j->spec.recipe.engine.kind, *dir = j->saves.dir;

	if (j->saves.refused && (!c || j->saves.refused_at >= c->iteration))
		return mo_printf("the save announced at iteration %lld was refused: it went to %s, "
				 "which is not in checkpoint.dir",
				 (long long)j->saves.refused_at,
				 *j->saves.refused ? j->saves.refused : "no path");
	if (c && c->state == CKPT_TORN)
		return mo_printf("the last save, %lld, is not complete: %s",
				 (long long)c->iteration, c->reason ? c->reason : "torn");
	if (c)
		return mo_printf("the save of %lld began, and its end was not reported",
				 (long long)c->iteration);
	if (!says_saves(&j->spec.engine) || j->spec.engine.layout.announced_is_complete)
		return mo_printf("no save was announced; what is saved without a word is found "
				 "before the next attempt: 'moectl checkpoints --dir %s --engine "
				 "%s' looks now",
				 dir, kind ? kind : "KIND");
	return mo_strdup("the engine said of no save that it began or ended");
}

bool checkpoint_unsaved(const struct job *j, struct unsaved *ret)
{
	int64_t every = every_of(j), base, passed;
	const struct checkpoint *c;
	struct mo_buf b = { 0 };

	*ret = (struct unsaved){ 0 };
	if (j->state != JOB_RUNNING || !j->spec.recipe.checkpoint.dir ||
	    j->progress.iteration == MO_NONE)
		return false;
	base = goes_back_to(j);
	passed = j->progress.iteration - base;
	c = newest_not_whole(j, base);
	if (!(every > 0 && passed / INTERVALS_PATIENT > every) &&
	    !(j->saves.refused && j->saves.refused_at > base) && !(c && c->state == CKPT_TORN))
		return false;
	mo_buf_printf(&b, "no complete checkpoint in %s since ", j->spec.recipe.checkpoint.dir);
	if (base > 0)
		mo_buf_printf(&b, "iteration %lld: %lld iterations", (long long)base,
			      (long long)passed);
	else
		mo_buf_printf(&b, "the start: %lld iterations", (long long)passed);
	if (every > 0 && passed >= 2 * every)
		mo_buf_printf(&b, ", %lld save intervals of %lld", (long long)(passed / every),
			      (long long)every);
	ret->text = mo_buf_take(&b);
	ret->last_save = last_save(j, c);
	ret->base = base;
	return true;
}

void checkpoint_unsaved_done(struct unsaved *u)
{
	free(u->text);
	free(u->last_save);
}

int64_t checkpoint_next(const struct job *j)
{
	const struct recipe_checkpoint *r = &j->spec.recipe.checkpoint;
	int64_t own = checkpoint_newest_at_most(j, INT64_MAX, true);

	if (r->resume == -1)
		return MO_MAX(checkpoint_newest_at_most(j, INT64_MAX, false), 0);
	return MO_MAX(own != MO_NONE ? own : r->resume, 0);
}
