/* See resume.h. Only what is complete is resumed; what the last scan found torn or missing never
 * is; a job that had, or found, checkpoints does not silently start afresh. */
#include "daemon/core/rules/resume.h"

#include <string.h>

#include "daemon/core/rules/unread.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/checkpoints.h"
#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

/* The newest other job that wrote the checkpoint which j found. */
static const struct job *writer_of(const struct state *s, const struct job *j,
				   const struct checkpoint *found)
{
	for (size_t i = s->n_jobs; found && i-- > 0;) {
		const struct job *k = s->jobs[i];
		const struct checkpoint *c = k != j && mo_streq(k->saves.dir, j->saves.dir)
						     ? checkpoint_find(k, found->iteration)
						     : NULL;

		if (c && c->attempt != MO_NONE && mo_streq(c->path, found->path))
			return k;
	}
	return NULL;
}

char *checkpoint_nothing_left(const struct state *s, const struct job *j)
{
	const struct checkpoint *c = checkpoint_find(j, j->run.resume);
	const struct job *writer = writer_of(s, j, c);
	_cleanup_(mo_freep) char *who =
		!writer ? mo_strdup("an earlier run")
			: mo_printf("j-%lld%s%s", (long long)writer->id,
				    mo_streq(writer->spec.user, j->spec.user) ? "" : " of ",
				    mo_streq(writer->spec.user, j->spec.user) ? ""
									      : writer->spec.user);

	if (j->spec.recipe.steps == MO_NONE || j->run.resume < j->spec.recipe.steps ||
	    j->progress.watermark != MO_NONE)
		return NULL;
	return mo_printf("nothing was left to do: %s had come to iteration %lld of %lld "
			 "(checkpoint %s); '--set checkpoint.resume=never' starts afresh, more "
			 "steps train on",
			 who, (long long)j->run.resume, (long long)j->spec.recipe.steps,
			 c && c->path ? c->path : j->saves.dir);
}

/* The newest damaged entry that forbids a fresh start: it lay there before, or was complete
 * once. A first save of this job that never ended is no loss. */
static const struct checkpoint *damaged(const struct job *j, bool own_only)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->state == CKPT_TORN &&
		    (c->attempt == MO_NONE ? !own_only
					   : c->saved_at != MO_NONE || c->verified_at != MO_NONE))
			return c;
	}
	return NULL;
}

/* Why nothing is left to resume from, with the ways on; NULL = no suspect and no tainted one is in
 * the way. Caller frees. */
static char *suspect_waits(const struct job *j, bool own_only)
{
	const struct checkpoint *c = NULL;
	struct checkpoint shown;
	_cleanup_(mo_freep) char *afresh = checkpoint_afresh(j);

	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_named_suspect(j, j->checkpoints[i].iteration) &&
		    (!own_only || j->checkpoints[i].attempt != MO_NONE))
			c = &j->checkpoints[i];
	if (!c)
		return NULL;
	shown = checkpoint_shown(c);
	return mo_printf("checkpoint %lld in %s is %s, and no other one is left: %s; 'moectl "
			 "restart j-%lld --from %lld' takes it again, or %s",
			 (long long)c->iteration, j->spec.recipe.checkpoint.dir,
			 checkpoint_state_names[shown.state],
			 shown.reason ? shown.reason : "attempts died that loaded it",
			 (long long)j->id, (long long)c->iteration, afresh);
}

static int newest_or_fresh(const struct job *j, bool own_only, int64_t *ret, struct mo_error *err)
{
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, own_only);
	const struct checkpoint *bad = damaged(j, own_only);
	_cleanup_(mo_freep) char *unread = newest == MO_NONE ? checkpoint_unread_text(j) : NULL;
	_cleanup_(mo_freep) char *afresh = checkpoint_afresh(j);
	_cleanup_(mo_freep) char *suspect = newest == MO_NONE ? suspect_waits(j, own_only) : NULL;

	if (unread || suspect)
		return mo_error_set(err, 1, "%s", suspect ? suspect : unread);
	if (newest == MO_NONE && bad)
		return mo_error_set(err, 1,
				    "every checkpoint in %s is damaged; the newest, %lld: %s; "
				    "repair or remove them (looked at again every %d s), or %s",
				    j->spec.recipe.checkpoint.dir, (long long)bad->iteration,
				    bad->reason ? bad->reason : "damaged",
				    (int)(SCAN_FRESH_US / 1000000), afresh);
	*ret = newest == MO_NONE ? -1 : newest;
	return 0;
}

static int exactly(const struct job *j, int64_t wanted, int64_t *ret, struct mo_error *err)
{
	const struct checkpoint *c = checkpoint_find(j, wanted);

	_cleanup_(mo_freep) char *suspect =
		checkpoint_named_suspect(j, wanted) ? suspect_waits(j, false) : NULL;

	if (c && checkpoint_usable(c)) {
		*ret = wanted;
		return 0;
	}
	if (suspect)
		return mo_error_set(err, 1, "%s", suspect);
	return mo_error_set(err, 2,
			    "checkpoint.resume: %lld: there is no complete checkpoint of that "
			    "iteration in %s%s%s",
			    (long long)wanted, j->spec.recipe.checkpoint.dir,
			    c && c->reason ? ": " : "", c && c->reason ? c->reason : "");
}

/* What a user went back to is not there (any more): nothing else is taken in its place. */
static int nothing_to_go_back_to(const struct job *j, struct mo_error *err)
{
	const struct checkpoint *c = NULL;

	for (size_t i = 0; i < j->n_checkpoints && j->checkpoints[i].iteration <= j->restart_from;
	     i++)
		c = &j->checkpoints[i];
	return mo_error_set(err, 1,
			    "restart --from %lld: no complete checkpoint at or before it is left "
			    "in %s%s%s; bring one back (looked at again every %d s), or say "
			    "'moectl restart j-%lld' with --from and another one of 'moectl "
			    "checkpoints j-%lld', without --from for the newest, or with --from 0 "
			    "to start afresh",
			    (long long)j->restart_from, j->spec.recipe.checkpoint.dir,
			    c && c->reason ? ": " : "", c && c->reason ? c->reason : "",
			    (int)(SCAN_FRESH_US / 1000000), (long long)j->id, (long long)j->id);
}

static int choose(const struct job *j, int64_t *ret, struct mo_error *err)
{
	const struct recipe_checkpoint *r = &j->spec.recipe.checkpoint;
	bool began = j->progress.watermark != MO_NONE;
	int64_t newest;

	if (!r->dir) {
		*ret = -1;
		return 0;
	}
	if (j->scan.error)
		return mo_error_set(err, 1, "checkpoint.dir %s: %s", r->dir, j->scan.error);
	if (!j->scan.writable)
		return mo_error_set(err, began ? 1 : 2,
				    "checkpoint.dir %s is not writable by %s; make it so or name "
				    "another one",
				    r->dir, j->spec.user ? j->spec.user : "the job's user");
	if (j->restart_from != MO_NONE && checkpoint_named_suspect(j, j->restart_from)) {
		*ret = j->restart_from;
		return 0;
	}
	if (j->restart_from != MO_NONE) {
		newest = checkpoint_newest_at_most(j, j->restart_from, false);
		if (newest == MO_NONE && j->restart_from > 0)
			return nothing_to_go_back_to(j, err);
		*ret = newest == MO_NONE ? -1 : newest;
		return 0;
	}
	for (size_t i = 0; i < j->n_checkpoints; i++)
		began |= j->checkpoints[i].attempt != MO_NONE;
	if (r->resume >= 0) {
		newest = checkpoint_newest_at_most(j, INT64_MAX, true);
		if (!began || newest == MO_NONE)
			return exactly(j, r->resume, ret, err);
		*ret = newest;
		return 0;
	}
	if (r->resume == -2 && !began) {
		*ret = -1;
		return 0;
	}
	return newest_or_fresh(j, r->resume == -2, ret, err);
}

/* As Megatron spells it, in engine.args: with dashes or underscores, its value in the word or
 * behind it. */
static bool args_say_etp(const struct recipe_engine *e)
{
	static const char flag[] = "expert_tensor_parallel_size";

	for (size_t i = 0; i < e->n_args; i++) {
		const char *word = e->args[i].key ? e->args[i].key : "";
		size_t n = 0;

		word += strspn(word, "-");
		while (flag[n] && (word[n] == '-' ? '_' : word[n]) == flag[n])
			n++;
		if (!flag[n])
			return true;
	}
	return false;
}

static int64_t size_named(const struct recipe *r, const char *name, size_t n)
{
	const struct recipe_parallelism *p = &r->parallelism;
	/* without a word Megatron splits experts as the rest */
	int64_t etp = p->etp != MO_NONE || args_say_etp(&r->engine) ? p->etp : p->tp;
	const int64_t sizes[CKPT_FIXED_N] = { p->tp, p->pp, p->ep, etp, p->cp };

	for (size_t i = 0; i < CKPT_FIXED_N; i++)
		if (strlen(ckpt_fixed_names[i]) == n && !strncmp(ckpt_fixed_names[i], name, n))
			return sizes[i];
	return MO_NONE;
}

/* "tp 4, pp 1": what the recipe has instead. */
char *checkpoint_misfit(const struct checkpoint *c, const struct recipe *r)
{
	struct mo_buf b = { 0 };

	for (const char *s = c && !r->unread ? c->fixed : NULL; s && *s;
	     s += *s == ',' ? 1 + (s[1] == ' ') : 0) {
		size_t name = strcspn(s, " ");
		int64_t have = size_named(r, s, name), saved;
		const char *value = s + name + (s[name] == ' ');
		size_t n = strcspn(value, ",");
		_cleanup_(mo_freep) char *text = mo_strndup(value, n);

		if (have != MO_NONE && mo_parse_i64(text, 0, INT64_MAX, &saved) == 0 &&
		    saved != have)
			mo_buf_printf(&b, "%s%.*s %lld", b.len ? ", " : "", (int)name, s,
				      (long long)have);
		s = value + n;
	}
	return b.len ? mo_buf_take(&b) : NULL;
}

char *checkpoint_no_resume(const struct job *saved, const struct recipe *r)
{
	const struct checkpoint *c = checkpoint_find(saved, state_newest_checkpoint(saved));
	_cleanup_(mo_freep) char *misfit = checkpoint_misfit(c, r);

	return misfit ? mo_printf("checkpoint.dir: checkpoint %lld that j-%lld saved there does "
				  "not reshard: it needs %s, and this recipe has %s: take the "
				  "same, another directory, or checkpoint.resume: never",
				  (long long)c->iteration, (long long)saved->id, c->fixed, misfit)
		      : NULL;
}

int checkpoint_choose(const struct job *j, int64_t *ret, struct mo_error *err)
{
	int64_t chosen = -1;
	int r = choose(j, &chosen, err);
	const struct checkpoint *c = r == 0 && chosen >= 0 ? checkpoint_find(j, chosen) : NULL;
	_cleanup_(mo_freep) char *misfit = checkpoint_misfit(c, &j->spec.recipe);

	assert(ret);
	if (misfit)
		return mo_error_set(err, 2,
				    "checkpoint %lld in %s does not reshard: it was saved with %s, "
				    "and this job has %s; submit it with the same sizes, with "
				    "another checkpoint.dir, or with checkpoint.resume: never",
				    (long long)chosen, j->spec.recipe.checkpoint.dir, c->fixed,
				    misfit);
	if (c && c->held)
		return mo_error_set(err, 1,
				    "checkpoint %lld in %s: %s (looked at again every %d s)",
				    (long long)chosen, j->spec.recipe.checkpoint.dir, c->held,
				    (int)(SCAN_FRESH_US / 1000000));
	if (r == 0)
		*ret = chosen;
	return r;
}

int checkpoint_would(const struct engine *e, const char *dir, bool added,
		     const struct scan_result *found, int64_t *ret, struct mo_error *err)
{
	struct job j;
	int r;

	mo_desc_init(&job_desc, &j);
	j.id = j.attempt = 0;
	mo_desc_done(&engine_desc, &j.spec.engine);
	mo_desc_copy(&engine_desc, &j.spec.engine, e);
	mo_str_set(&j.spec.recipe.engine.kind, e->kind);
	mo_str_set(&j.spec.recipe.checkpoint.dir, dir);
	j.saves.dir = mo_path_clean(dir);
	j.spec.recipe.checkpoint.added = added;
	j.spec.recipe.checkpoint.resume = -1;
	checkpoint_scan(&j, found, 0);
	j.scan.writable = true;
	r = checkpoint_choose(&j, ret, err);
	mo_desc_done(&job_desc, &j);
	return r;
}
