/* See forecast.h. Nobody asks a node at a submit: what nodes measured for jobs before counts, with
 * when and for whom that was. From then on the job's own scans are asked (space.h), the first one
 * before its first attempt.
 *   free        what was last measured in the directory, or else for a job that saves beside it
 *   size        of the newest checkpoint there, of the same engine and model; else as planned; else
 *               of the newest job of the same user and name
 *   save        how long saves there kept training waiting, by their bytes
 * Each is said with where it comes from; what is not known is not said. */
#include "daemon/core/state/forecast.h"

#include <string.h>

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/space.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

#define RESUME_NEVER -2 /* checkpoint.resume: never */

struct forecast {
	const struct job *looked; /* for whom what is free was measured last */
	bool beside;              /* in another directory of the same one */
	const struct job *before; /* the newest with checkpoints in the directory */
	const struct job *sized;  /* whose checkpoint says how large they are; NULL: the plan */
	struct checkpoint newest;
	struct job job; /* as it would be; borrows all it has */
	struct space space;
};

static bool beside(const char *a, const char *b)
{
	const char *end = a ? strrchr(a, '/') : NULL;
	size_t n = end ? (size_t)(end - a) : 0;

	return n > 1 && b && strncmp(a, b, n) == 0 && strrchr(b, '/') == b + n;
}

static bool like(const struct job *j, const struct submit *spec)
{
	const struct recipe *a = &j->spec.recipe, *b = &spec->recipe;

	if (space_newest_size(j) <= 0 || !mo_streq(a->engine.kind, b->engine.kind))
		return false;
	if (!a->model || !b->model)
		return true;
	_cleanup_(mo_freep) char *x = recipe_model_key(a->model), *y = recipe_model_key(b->model);

	return mo_streq(x, y);
}

static void find(const struct state *s, const struct submit *spec, const char *dir,
		 struct forecast *f)
{
	const struct job *named = NULL;

	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct job *j = s->jobs[i];
		bool there = mo_streq(j->saves.dir, dir);

		if (j->saves.space_at != MO_NONE && (there || beside(dir, j->saves.dir)) &&
		    (!f->looked || (there && f->beside) ||
		     (there == !f->beside && j->saves.space_at >= f->looked->saves.space_at))) {
			f->looked = j;
			f->beside = !there;
		}
		if (there && space_newest_size(j) > 0)
			f->before = j;
		if (like(j, spec) && mo_streq(j->spec.user, spec->user) &&
		    mo_streq(j->spec.recipe.name, spec->recipe.name))
			named = j;
	}
	if (f->before && like(f->before, spec))
		f->sized = f->before;
	else if (!spec->promise || spec->promise->checkpoint_gb == MO_NONE_F)
		f->sized = named;
}

/* The job as if it were there, with one checkpoint of that size where it would go on. */
static void forecast_of(const struct state *s, const struct submit *spec, const char *dir,
			struct forecast *f)
{
	bool goes_on;

	memset(f, 0, sizeof(*f));
	find(s, spec, dir, f);
	mo_desc_init(&job_desc, &f->job);
	mo_desc_init(&checkpoint_desc, &f->newest);
	f->job.spec = *spec;
	f->job.saves.dir = (char *)dir;
	goes_on = f->before && spec->recipe.checkpoint.resume != RESUME_NEVER;
	f->job.progress.iteration =
		goes_on ? checkpoint_newest_at_most(f->before, INT64_MAX, false) : 0;
	if (f->looked)
		f->job.progress.shown.checkpoint_free_bytes =
			f->looked->progress.shown.checkpoint_free_bytes;
	if (f->sized) {
		f->newest.iteration = 0;
		f->newest.state = CKPT_COMPLETE;
		f->newest.bytes = space_newest_size(f->sized);
		f->job.checkpoints = &f->newest;
		f->job.n_checkpoints = 1;
	}
	f->space = space_of(&f->job);
}

char *forecast_room(const struct state *s, const struct submit *spec)
{
	_cleanup_(mo_freep) char *dir = recipe_save_dir(&spec->recipe);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct forecast f;
	char when[32];

	if (!dir)
		return NULL;
	forecast_of(s, spec, dir, &f);
	_cleanup_(mo_freep) char *text = space_text(&f.job, &f.space);

	if (!text)
		return NULL;
	mo_assert(f.looked);
	mo_buf_printf(&b, "checkpoint.dir: %s; ", text);
	if (f.sized)
		mo_buf_printf(&b, "they are as large as those of j-%lld, ", (long long)f.sized->id);
	mo_buf_printf(&b, "what is free was measured %s for j-%lld at %s",
		      f.beside ? "beside it, perhaps in another file system," : "there",
		      (long long)f.looked->id, mo_time_format(f.looked->saves.space_at, when));
	if (spec->recipe.checkpoint.keep <= 0)
		mo_buf_str(&b, "; checkpoint.keep: N keeps the newest N alone");
	return mo_buf_take(&b);
}

/* Seconds that one of its saves kept training waiting, mean; 0: none was timed. */
static double save_s(const struct job *j)
{
	if (j->saves.n <= 0 || j->n_ledger <= GPU_SAVE)
		return 0;
	return (double)j->ledger[GPU_SAVE] / (double)job_gpus(j) / 1e6 / (double)j->saves.n;
}

char *forecast_save(const struct state *s, const struct submit *spec)
{
	_cleanup_(mo_freep) char *dir = recipe_save_dir(&spec->recipe);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t every = spec->recipe.checkpoint.every;
	struct forecast f;

	if (!dir || every <= 0 || !spec->promise || !(spec->promise->step_time_s > 0))
		return NULL;
	forecast_of(s, spec, dir, &f);
	double measured = f.before ? save_s(f.before) : 0, between = 0, takes = 0;

	if (measured > 0 && f.space.size > 0) {
		between = (double)every * spec->promise->step_time_s;
		takes = measured * (double)f.space.size / (double)space_newest_size(f.before);
	}
	if (takes <= between)
		return NULL;
	mo_buf_printf(&b, "checkpoint.every: a save of ");
	space_add_bytes(&b, f.space.size);
	mo_buf_printf(&b, "%s would keep training waiting for about %.0f s (one of ",
		      f.space.planned ? ", as planned," : "", takes);
	space_add_bytes(&b, space_newest_size(f.before));
	mo_buf_printf(&b,
		      " in that directory kept j-%lld waiting for %.3g s), longer than the %lld "
		      "iterations between two: %.0f s as planned; save less often, or elsewhere",
		      (long long)f.before->id, measured, (long long)every, between);
	return mo_buf_take(&b);
}
