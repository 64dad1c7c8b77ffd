/* The ledger of a job's checkpoints: announced by the engine, found and judged by a scan of
 * checkpoint.dir before each attempt. Where an attempt resumes chooses rules/resume.c. What was
 * saved beyond the iteration that a user went back to (restart --from), whole or damaged, is
 * superseded until it is written again. checkpoint.dir belongs to one unfinished job at a time;
 * what appears there all the same beyond the iteration that a job reached is not its own.
 * `attempt` of an entry: the attempt of this job that wrote it, 0 = one behind the backup that was
 * restored, MO_NONE = it lay there before. Ascending iteration. Changes are made by update.c's
 * calls only. */
#include "daemon/core/update/checkpoints.h"

#include <stdlib.h>

#include "daemon/core/state/checkpoint.h"
#include "daemon/core/update/checkpoint_keep.h"
#include "daemon/core/update/doubt.h"
#include "daemon/core/update/edit.h"
#include "daemon/core/update/numbers.h"
#include "daemon/core/update/verify.h"
#include "lib/base/assert.h"
#include "lib/model/limits.h"

static const char overwritten[] = "a later save wrote over it";

/* At the limit the oldest entry that is of no use goes, else the oldest. A superseded one is of
 * use, and a suspect one: forgotten, it would be found as if new. */
static void make_room(struct job *j)
{
	size_t victim = 0;

	if (j->n_checkpoints < MO_CHECKPOINTS_MAX)
		return;
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (!checkpoint_usable(&j->checkpoints[i]) &&
		    j->checkpoints[i].state != CKPT_SUPERSEDED &&
		    j->checkpoints[i].state != CKPT_SUSPECT) {
			victim = i;
			break;
		}
	mo_vec_remove(&checkpoint_desc, j->checkpoints, &j->n_checkpoints, victim);
	mo_assert(j->n_checkpoints < MO_CHECKPOINTS_MAX);
}

static struct checkpoint *find_or_add(struct job *j, int64_t iteration, bool *ret_new)
{
	struct checkpoint *c = checkpoint_edit(j, iteration), empty;
	size_t at;

	*ret_new = !c;
	if (c)
		return c;
	make_room(j);
	MO_ADD(j, checkpoints, &checkpoint_desc);
	empty = j->checkpoints[j->n_checkpoints - 1];
	for (at = j->n_checkpoints - 1; at > 0 && j->checkpoints[at - 1].iteration > iteration;
	     at--)
		j->checkpoints[at] = j->checkpoints[at - 1];
	j->checkpoints[at] = empty;
	j->checkpoints[at].iteration = iteration;
	return &j->checkpoints[at];
}

/* checkpoint.layout without iteration: there is one checkpoint, the newest whole one; the others
 * are in its place no more. newest: MO_NONE = none is whole. */
static bool written_over(const struct job *j, int64_t newest, int64_t iteration)
{
	return j->spec.engine.layout.unnumbered && newest != MO_NONE && newest != iteration;
}

static void write_over(struct job *j, int64_t newest)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (c->state == CKPT_DELETED || !written_over(j, newest, c->iteration))
			continue;
		c->state = CKPT_DELETED;
		mo_str_set(&c->reason, overwritten);
	}
}

/* The attempt that wrote what a scan finds and nobody told of. */
static int64_t last_writer(const struct job *j)
{
	return j->attempt < j->attempt_floor ? 0 : j->attempt;
}

/* An attempt writes, or wrote, over what was known under this number. */
static void begin_anew(const struct job *j, struct checkpoint *c, int64_t attempt)
{
	c->attempt = attempt;
	c->saved_at = c->verified_at = c->seen_at = MO_NONE;
	mo_str_set(&c->reason, NULL);
	mo_str_set(&c->fixed, NULL);
	mo_str_set(&c->held, NULL);
	mo_str_set(&c->manifest, NULL);
	c->announced = c->compared = false;
	c->failed_loads = MO_NONE;
	numbers_mark(j, c, attempt);
}

/* It saves in checkpoint.dir too: what goes elsewhere is one more. */
static bool saves_here(const struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (j->checkpoints[i].attempt != MO_NONE)
			return true;
	return false;
}

/* NOTE_SAVING: what was complete under this number is being written over. NOTE_CHECKPOINT: the
 * engine says it is complete. */
void checkpoint_note(struct job *j, const struct note *n, int64_t time)
{
	int64_t iteration = checkpoint_iteration(n, j->progress.iteration);
	struct checkpoint *c;
	bool is_new;

	mo_assert(n->kind == NOTE_CHECKPOINT || n->kind == NOTE_SAVING);
	if (checkpoint_elsewhere(j, n) || !checkpoint_inside(j, n->path)) {
		j->saves.path_refused = true;
		mo_str_set(&j->saves.refused, n->path);
		j->saves.refused_at = iteration;
		if (n->kind == NOTE_CHECKPOINT && checkpoint_elsewhere(j, n))
			doubt_begin(j, n->path, iteration);
		if (n->kind == NOTE_SAVING && !j->saves.began && !saves_here(j) &&
		    checkpoint_elsewhere(j, n)) {
			mo_str_set(&j->saves.began, n->path);
			j->saves.began_at = iteration;
		}
		return;
	}
	if (iteration < 0)
		return;
	c = find_or_add(j, iteration, &is_new);
	begin_anew(j, c, j->attempt);
	if (checkpoint_entry_path(j, n->path))
		mo_str_set(&c->path, n->path);
	if (iteration == j->verify.iteration && !j->saves.doubt)
		verify_end(j);
	if (n->kind == NOTE_SAVING) {
		c->state = CKPT_SAVING;
		if (n->path)
			mo_str_set(&j->saves.began, NULL);
		return;
	}
	c->state = CKPT_COMPLETE;
	c->saved_at = time;
	c->announced = true;
	mo_str_set(&c->level, "announced");
	write_over(j, iteration);
	verify_begin(j);
}

void checkpoint_withdraw(struct job *j, int64_t iteration)
{
	const struct checkpoint *c = checkpoint_find(j, iteration);

	if (c && c->state == CKPT_COMPLETE && c->attempt == j->attempt)
		mo_vec_remove(&checkpoint_desc, j->checkpoints, &j->n_checkpoints,
			      (size_t)(c - j->checkpoints));
}

static int64_t newest_found(const struct scan_result *r)
{
	int64_t newest = MO_NONE;

	for (size_t i = 0; i < r->n_items; i++)
		newest = r->items[i].complete ? MO_MAX(newest, r->items[i].iteration) : newest;
	return newest;
}

/* A sample may be due only every so many iterations. */
static int64_t stride(const struct job *j)
{
	const struct sample *last =
		j->progress.n_samples ? &j->progress.samples[j->progress.n_samples - 1] : NULL;

	return j->progress.n_samples > 1 && last[-1].attempt == last->attempt
		       ? MO_MAX(last->iteration - last[-1].iteration, 1)
		       : 1;
}

/* It was not there when the job began, and the job did not come that far: somebody else wrote
 * it. */
static bool foreign(const struct job *j, int64_t iteration)
{
	return !j->unheard && !j->spec.engine.layout.unnumbered &&
	       j->progress.watermark != MO_NONE && iteration - j->progress.watermark > stride(j);
}

/* The last attempt was heard to its end and did not come that far: who changed what was given up
 * was not the job. What a lost node saved and did not tell may be the job's own. */
static bool beyond_attempt(const struct job *j, int64_t iteration)
{
	return !j->unheard && j->attempt > 0 && j->attempt >= j->attempt_floor &&
	       !j->spec.engine.layout.unnumbered && j->progress.watermark != MO_NONE &&
	       iteration - MO_MAX(j->progress.iteration, j->run.resume) > stride(j);
}

static void still_superseded(const struct job *j, struct checkpoint *c,
			     const struct found_checkpoint *f)
{
	c->saved_at = f->saved_at;
	mo_str_set(&c->manifest, f->manifest);
	free(c->reason);
	c->reason = mo_printf("changed since it was given up, not by attempt %lld, which came to "
			      "iteration %lld only",
			      (long long)j->attempt,
			      (long long)MO_MAX(MO_MAX(j->progress.iteration, j->run.resume), 0));
}

/* An agent of before asks an announced one for its marker too, and looks no further. */
static bool only_unmarked(const struct job *j, const struct found_checkpoint *f)
{
	const struct ckpt_layout *l = &j->spec.engine.layout;

	for (size_t i = 0; !f->complete && f->bytes > 0 && i < l->n_markers; i++) {
		_cleanup_(mo_freep) char *missing = mo_printf("%s is missing", l->markers[i]);

		if (mo_streq(f->reason, missing))
			return true;
	}
	return false;
}

/* What is known of the entry is of these files. Of what was given up times alone count: who puts
 * the same files back makes another manifest. They are of one clock, the file system's, wherever
 * the files were seen; the controller's, of an announcement or of the giving up, may be hours
 * off. */
static bool as_known(const struct checkpoint *c, const struct found_checkpoint *f)
{
	if (c->manifest && c->state != CKPT_SUPERSEDED)
		return mo_streq(f->manifest, c->manifest);
	return f->saved_at == MO_NONE || f->saved_at <= checkpoint_seen(c);
}

static void judge(struct job *j, const struct found_checkpoint *f, int64_t time)
{
	bool is_new;
	struct checkpoint *c = find_or_add(j, f->iteration, &is_new);
	const bool known = as_known(c, f);

	if (checkpoint_removing(c))
		/* the order to remove it may be carried out any moment */
		return;
	c->seen_at = MO_MAX(c->seen_at, f->saved_at);
	if (j->attempt > 0 && c->attempt == MO_NONE && (is_new || c->state == CKPT_SUPERSEDED) &&
	    foreign(j, f->iteration)) {
		c->state = CKPT_SUPERSEDED;
		c->saved_at = f->saved_at;
		c->bytes = f->bytes;
		mo_str_set(&c->path, f->path);
		free(c->reason);
		c->reason = mo_printf("not of this job, which came to iteration %lld only",
				      (long long)j->progress.watermark);
		return;
	}
	if (is_new && j->attempt > 0)
		c->attempt = last_writer(j); /* earlier scans did not see it: this job wrote it */
	if ((is_new && j->attempt > 0) || (f->complete && !known))
		/* saved, or saved again, by the last attempt, which announced nothing */
		numbers_mark(j, c, last_writer(j));
	if (f->path)
		mo_str_set(&c->path, f->path);
	c->bytes = f->bytes;
	if ((c->state == CKPT_SUPERSEDED && known) ||
	    (checkpoint_announced(j, c) && only_unmarked(j, f)))
		return;
	if (c->state == CKPT_SUPERSEDED && j->restart_from != f->iteration &&
	    beyond_attempt(j, f->iteration)) {
		still_superseded(j, c, f);
		return;
	}
	if (c->state == CKPT_SUPERSEDED && j->attempt > 0) {
		begin_anew(j, c, last_writer(j)); /* its node was lost before it could tell */
		c->seen_at = f->saved_at;
	}
	if (f->fixed)
		mo_str_set(&c->fixed, f->fixed);
	mo_str_set(&c->held, f->held);
	if (c->failed_loads != MO_NONE && f->complete && known) {
		/* attempts died that loaded it, and it is what they loaded; torn: by its content,
		 * of which this scan knows nothing */
		if (c->state == CKPT_SUSPECT || (c->state == CKPT_TORN && c->compared))
			return;
		if (c->state == CKPT_TORN) /* somebody brought it back */
			mo_str_set(&c->reason, NULL);
		c->state = CKPT_VERIFIED;
		return;
	}
	c->failed_loads = MO_NONE;
	c->compared = false;
	mo_str_set(&c->reason, f->complete ? (j->spec.engine.layout.unnumbered ? f->reason : NULL)
			       : f->reason ? f->reason
					   : "incomplete");
	if (!f->complete) {
		c->state = CKPT_TORN;
		return;
	}
	if (c->saved_at == MO_NONE || f->saved_at != MO_NONE)
		/* by the file system's clock from here on: a later one means that it was written
		 * again */
		c->saved_at = f->saved_at;
	if (c->state != CKPT_PINNED)
		c->state = CKPT_VERIFIED;
	if (c->verified_at != MO_NONE && f->manifest && mo_streq(f->manifest, c->manifest))
		return; /* as it was verified */
	c->verified_at = time;
	mo_str_set(&c->manifest, f->manifest);
	mo_str_set(&c->level, f->level                           ? f->level
			      : j->spec.recipe.checkpoint.verify ? j->spec.recipe.checkpoint.verify
								 : "sizes");
}

static void take_unread(struct job *j, const struct scan_result *r)
{
	mo_vec_clear(&unread_state_desc, (void **)&j->scan.unread, &j->scan.n_unread);
	j->scan.unread_more = r->unread_more;
	for (size_t i = 0; i < r->n_unread && i < MO_UNREAD_MAX; i++) {
		struct unread_state *u = MO_ADD(&j->scan, unread, &unread_state_desc);

		mo_desc_copy(&unread_state_desc, u, &r->unread[i]);
		if (!u->name)
			u->name = mo_strdup("?");
	}
}

/* An attempt begins at 0 although they lie there: somebody said so. They hold up the job again when
 * they change, for then they are its own work. */
void checkpoint_pass_over(struct job *j)
{
	mo_vec_clear(&unread_state_desc, (void **)&j->scan.passed_over, &j->scan.n_passed_over);
	for (size_t i = 0; i < j->scan.n_unread; i++)
		mo_desc_copy(&unread_state_desc, MO_ADD(&j->scan, passed_over, &unread_state_desc),
			     &j->scan.unread[i]);
}

void checkpoint_scan(struct job *j, const struct scan_result *r, int64_t time)
{
	j->scan.attempt = r->attempt;
	j->scan.at = time;
	j->scan.writable = r->writable;
	mo_str_set(&j->scan.error, r->error);
	if (r->error)
		return;
	mo_str_set(&j->saves.real, r->real);
	take_unread(j, r);
	for (size_t i = 0; i < r->n_items && i < MO_CHECKPOINTS_MAX; i++)
		if (r->items[i].iteration >= 0)
			judge(j, &r->items[i], time);
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (scan_found(r, c->iteration))
			continue;
		if (c->state == CKPT_DELETED) {
			checkpoint_removed(c);
		} else if (c->state == CKPT_SUPERSEDED) {
			c->bytes = 0; /* still given up when the file system shows it again */
		} else if (written_over(j, newest_found(r), c->iteration)) {
			c->state = CKPT_DELETED;
			mo_str_set(&c->reason, overwritten);
		} else {
			c->state = CKPT_TORN;
			mo_str_set(&c->reason, "not found in checkpoint.dir");
		}
	}
}

/* The user went back to an iteration: what lies beyond it belongs to the run that was given up,
 * until an attempt writes it again. So does what was damaged or missing just now: it may be
 * found whole later, and must not hold up the new run as a loss. */
void checkpoint_supersede(struct job *j, int64_t resume, int64_t attempt, int64_t time)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (c->iteration <= resume || c->state == CKPT_SUPERSEDED ||
		    c->state == CKPT_DELETED)
			continue;
		if (checkpoint_seen(c) == MO_NONE)
			c->saved_at = time;
		c->state = CKPT_SUPERSEDED;
		free(c->reason);
		c->reason = mo_printf("attempt %lld went back to %lld", (long long)attempt,
				      (long long)MO_MAX(resume, 0));
	}
}

/* An attempt made an iteration of its own from it: what was held against it was not its fault. */
void checkpoint_loaded(struct job *j)
{
	struct checkpoint *c = checkpoint_edit(j, j->run.resume);

	if (!c || c->failed_loads == MO_NONE || c->state == CKPT_TORN)
		return;
	c->failed_loads = MO_NONE;
	c->compared = false;
	mo_str_set(&c->reason, NULL);
	if (c->state == CKPT_SUSPECT)
		c->state = CKPT_VERIFIED;
}

/* An engine that announces nothing saves the same iterations again on its way. What the attempt
 * did not reach, or announced itself, stays compared. */
void checkpoint_forget_manifests(struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (c->attempt != j->attempt && c->iteration > j->run.resume &&
		    c->iteration <= j->progress.iteration)
			mo_str_set(&c->manifest, NULL);
	}
}
