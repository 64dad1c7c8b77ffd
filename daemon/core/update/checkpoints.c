/* The ledger of a job's checkpoints: announced by the engine, found and judged by a scan of checkpoint.dir before each attempt, and the choice where an attempt resumes.
 * Rules: only what is complete is resumed; what the last scan found torn or missing never is; a job that had, or found, checkpoints does not silently start afresh;
 * what was saved beyond the iteration that a user went back to (restart --from), whole or damaged, is superseded until it is written again. checkpoint.dir belongs to one unfinished
 * job at a time; what appears there all the same beyond the iteration that a job reached is not its own.
 * `attempt` of an entry: the attempt of this job that wrote it, MO_NONE = it lay there before. Ascending iteration. Changes are made by update.c's calls only. */
#include "daemon/core/update/checkpoints.h"
#include "daemon/core/inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

/* checkpoint.keep: `deleted` with the reason `removing` until the node of rank 0 says that it is gone. */
static const char removing[] = "being removed: checkpoint.keep holds newer ones";
static const char left_alone[] = "outside checkpoint.dir: not removed by checkpoint.keep";
static const char overwritten[] = "a later save wrote over it";
static const char removed[] = "checkpoint.keep held newer ones";

bool checkpoint_usable(const struct checkpoint *c)
{
	return c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED || c->state == CKPT_PINNED;
}

struct checkpoint *checkpoint_find(const struct job *j, int64_t iteration)
{
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (j->checkpoints[i - 1].iteration == iteration)
			return &j->checkpoints[i - 1];
	return NULL;
}

/* At the limit the oldest entry that is of no use goes, else the oldest. A superseded one is of use: forgotten, it would be found as if new. */
static void make_room(struct job *j)
{
	size_t victim = 0;

	if (j->n_checkpoints < MO_CHECKPOINTS_MAX)
		return;
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (!checkpoint_usable(&j->checkpoints[i]) && j->checkpoints[i].state != CKPT_SUPERSEDED) {
			victim = i;
			break;
		}
	mo_vec_remove(&checkpoint_desc, j->checkpoints, &j->n_checkpoints, victim);
}

static struct checkpoint *find_or_add(struct job *j, int64_t iteration, bool *ret_new)
{
	struct checkpoint *c = checkpoint_find(j, iteration), empty;
	size_t at;

	*ret_new = !c;
	if (c)
		return c;
	make_room(j);
	MO_ADD(j, checkpoints, &checkpoint_desc);
	empty = j->checkpoints[j->n_checkpoints - 1];
	for (at = j->n_checkpoints - 1; at > 0 && j->checkpoints[at - 1].iteration > iteration; at--)
		j->checkpoints[at] = j->checkpoints[at - 1];
	j->checkpoints[at] = empty;
	j->checkpoints[at].iteration = iteration;
	return &j->checkpoints[at];
}

/* Digits at the end of the name, MO_NONE without: the iteration of a path announced without one. */
static int64_t path_iteration(const char *path)
{
	size_t n = path ? strlen(path) : 0, digits = 0;
	int64_t value = 0, unit = 1;

	while (n > 0 && path[n - 1] == '/')
		n--;
	while (digits < n && digits < 18 && path[n - 1 - digits] >= '0' && path[n - 1 - digits] <= '9') {
		value += unit * (path[n - 1 - digits] - '0');
		unit *= 10;
		digits++;
	}
	return digits ? value : MO_NONE;
}

/* Both clean; any path lies below no directory. */
static bool lies_in(const char *clean, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	if (!dir || mo_streq(dir, "/"))
		return true;
	return clean[0] == '/' && strncmp(clean, dir, n) == 0 && (clean[n] == '/' || clean[n] == '\0');
}

bool checkpoint_inside(const struct job *j, const char *path)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);

	return !path || lies_in(clean, j->checkpoint_dir);
}

char *checkpoint_as_named(const struct job *j, const char *path)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	const char *real = j->checkpoint_real;

	if (!path || !j->checkpoint_dir || !real || real[0] != '/' || !real[1])
		return NULL;       /* of a node's making: all of the machine is no directory of saves */
	if (lies_in(clean, j->checkpoint_dir) || !lies_in(clean, real))
		return NULL;
	return mo_printf("%s%s", j->checkpoint_dir, clean + strlen(real));
}

int64_t checkpoint_iteration(const struct note *n, int64_t reached)
{
	int64_t iteration = n->iteration != MO_NONE ? n->iteration : path_iteration(n->path);

	return iteration != MO_NONE ? iteration : reached;
}

/* checkpoint.layout without iteration: there is one checkpoint, the newest whole one; the others are in its place no more. newest: MO_NONE = none is whole. */
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

/* The job's attempt writes, or wrote, over what was known under this number. */
static void begin_anew(const struct job *j, struct checkpoint *c)
{
	c->attempt = j->attempt;
	c->saved_at = c->verified_at = MO_NONE;
	mo_str_set(&c->reason, NULL);
	mo_str_set(&c->fixed, NULL);
	mo_str_set(&c->held, NULL);
	mo_str_set(&c->manifest, NULL);
}

/* The engine named the directory of all its checkpoints, and it is ours. */
static bool names_dir(const struct job *j, const char *path)
{
	const char *subdir = j->spec.engine.layout.subdir;
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	_cleanup_(mo_freep) char *below = mo_printf("%s/%s", j->checkpoint_dir, subdir ? subdir : "");
	_cleanup_(mo_freep) char *entries = mo_path_clean(below);

	return mo_streq(clean, j->checkpoint_dir) || mo_streq(clean, entries);
}

const char *checkpoint_entry_path(const struct job *j, const char *path)
{
	return path && j->checkpoint_dir && names_dir(j, path) ? NULL : path;
}

/* What an engine whose layout moectl knows says of the place is held against checkpoint.dir: what lies elsewhere would never be resumed. A path whose name ends in the iteration is
 * one checkpoint, another one the directory of all. A script may announce what it likes. */
bool checkpoint_elsewhere(const struct job *j, const struct note *n)
{
	const struct ckpt_layout *l = &j->spec.engine.layout;

	if (!n->path || n->path[0] != '/' || !j->checkpoint_dir || l->announced_is_complete || l->given || l->unnumbered)
		return false;
	if (!checkpoint_inside(j, n->path))
		return true;
	return n->iteration != MO_NONE && path_iteration(n->path) != n->iteration && !names_dir(j, n->path);
}

/* It saves in checkpoint.dir too: what goes elsewhere is one more. */
static bool saves_here(const struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (j->checkpoints[i].attempt != MO_NONE)
			return true;
	return false;
}

/* NOTE_SAVING: what was complete under this number is being written over. NOTE_CHECKPOINT: the engine says it is complete. */
void checkpoint_note(struct job *j, const struct note *n, int64_t time)
{
	int64_t iteration = checkpoint_iteration(n, j->iteration);
	struct checkpoint *c;
	bool is_new;

	if (checkpoint_elsewhere(j, n) || !checkpoint_inside(j, n->path)) {
		j->path_refused = true;
		mo_str_set(&j->refused, n->path);
		j->refused_at = iteration;
		if (n->kind == NOTE_CHECKPOINT && checkpoint_elsewhere(j, n))
			doubt_begin(j, n->path, iteration);
		if (n->kind == NOTE_SAVING && !j->began_elsewhere && !saves_here(j) && checkpoint_elsewhere(j, n)) {
			mo_str_set(&j->began_elsewhere, n->path);
			j->began_at = iteration;
		}
		return;
	}
	if (iteration < 0)
		return;
	c = find_or_add(j, iteration, &is_new);
	begin_anew(j, c);
	if (checkpoint_entry_path(j, n->path))
		mo_str_set(&c->path, n->path);
	if (iteration == j->verify && !j->doubt)
		verify_end(j);
	if (n->kind == NOTE_SAVING) {
		c->state = CKPT_SAVING;
		if (n->path)
			mo_str_set(&j->began_elsewhere, NULL);
		return;
	}
	c->state = CKPT_COMPLETE;
	c->saved_at = time;
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

static const struct found_checkpoint *found_of(const struct scan_result *r, int64_t iteration)
{
	for (size_t i = 0; i < r->n_items; i++)
		if (r->items[i].iteration == iteration)
			return &r->items[i];
	return NULL;
}

static int64_t newest_found(const struct scan_result *r)
{
	int64_t newest = MO_NONE;

	for (size_t i = 0; i < r->n_items; i++)
		newest = r->items[i].complete ? MO_MAX(newest, r->items[i].iteration) : newest;
	return newest;
}

/* It was not there when the job began, and the job did not come that far: somebody else wrote it. A sample may be due only every so many iterations. */
static bool foreign(const struct job *j, int64_t iteration)
{
	const struct sample *last = j->n_samples ? &j->samples[j->n_samples - 1] : NULL;
	int64_t stride = j->n_samples > 1 && last[-1].attempt == last->attempt ? last->iteration - last[-1].iteration : 1;

	return !j->unheard && !j->spec.engine.layout.unnumbered && j->watermark != MO_NONE && iteration - j->watermark > MO_MAX(stride, 1);
}

static void judge(struct job *j, const struct found_checkpoint *f, int64_t time)
{
	bool is_new, announced;
	struct checkpoint *c = find_or_add(j, f->iteration, &is_new);

	if (checkpoint_removing(c))
		return;                    /* the order to remove it may be carried out any moment */
	if (j->attempt > 0 && c->attempt == MO_NONE && (is_new || c->state == CKPT_SUPERSEDED) && foreign(j, f->iteration)) {
		c->state = CKPT_SUPERSEDED;
		c->saved_at = f->saved_at;
		c->bytes = f->bytes;
		mo_str_set(&c->path, f->path);
		free(c->reason);
		c->reason = mo_printf("not of this job, which came to iteration %lld only", (long long)j->watermark);
		return;
	}
	if (is_new && j->attempt > 0)
		c->attempt = j->attempt;   /* earlier scans did not see it: this job wrote it */
	announced = c->state == CKPT_COMPLETE && c->saved_at != MO_NONE && j->spec.engine.layout.announced_is_complete && f->bytes > 0;
	if (f->path)
		mo_str_set(&c->path, f->path);
	c->bytes = f->bytes;
	if ((c->state == CKPT_SUPERSEDED && f->saved_at <= c->saved_at) || (announced && !f->complete))
		return;
	if (c->state == CKPT_SUPERSEDED && j->attempt > 0)
		begin_anew(j, c);          /* its node was lost before it could tell */
	if (f->fixed)
		mo_str_set(&c->fixed, f->fixed);
	mo_str_set(&c->held, f->held);
	mo_str_set(&c->reason, f->complete ? (j->spec.engine.layout.unnumbered ? f->reason : NULL) : f->reason ? f->reason : "incomplete");
	if (!f->complete) {
		c->state = CKPT_TORN;
		return;
	}
	if (c->saved_at == MO_NONE || f->saved_at != MO_NONE)
		c->saved_at = f->saved_at; /* by the file system's clock from here on: a later one means that it was written again */
	if (c->state != CKPT_PINNED)
		c->state = CKPT_VERIFIED;
	if (c->verified_at != MO_NONE && f->manifest && mo_streq(f->manifest, c->manifest))
		return;                    /* as it was verified */
	c->verified_at = time;
	mo_str_set(&c->manifest, f->manifest);
	mo_str_set(&c->level, f->level ? f->level : j->spec.recipe.checkpoint.verify ? j->spec.recipe.checkpoint.verify : "sizes");
}

void checkpoint_scan(struct job *j, const struct scan_result *r, int64_t time)
{
	j->scan_attempt = r->attempt;
	j->scan_at = time;
	j->scan_writable = r->writable;
	mo_str_set(&j->scan_error, r->error);
	if (r->error)
		return;
	mo_str_set(&j->checkpoint_real, r->real);
	checkpoint_take_unread(j, r);
	for (size_t i = 0; i < r->n_items && i < MO_CHECKPOINTS_MAX; i++)
		if (r->items[i].iteration >= 0)
			judge(j, &r->items[i], time);
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (found_of(r, c->iteration))
			continue;
		if (c->state == CKPT_DELETED) {
			if (checkpoint_removing(c))
				mo_str_set(&c->reason, removed);
		} else if (c->state == CKPT_SUPERSEDED) {
			c->bytes = 0;      /* still given up when the file system shows it again */
		} else if (written_over(j, newest_found(r), c->iteration)) {
			c->state = CKPT_DELETED;
			mo_str_set(&c->reason, overwritten);
		} else {
			c->state = CKPT_TORN;
			mo_str_set(&c->reason, "not found in checkpoint.dir");
		}
	}
}

/* The newest other job that wrote the checkpoint which j found. */
static const struct job *writer_of(const struct state *s, const struct job *j, const struct checkpoint *found)
{
	for (size_t i = s->n_jobs; found && i-- > 0;) {
		const struct job *k = &s->jobs[i];
		const struct checkpoint *c = k != j && mo_streq(k->checkpoint_dir, j->checkpoint_dir) ? checkpoint_find(k, found->iteration) : NULL;

		if (c && c->attempt != MO_NONE && mo_streq(c->path, found->path))
			return k;
	}
	return NULL;
}

char *checkpoint_nothing_left(const struct state *s, const struct job *j)
{
	const struct checkpoint *c = checkpoint_find(j, j->resume);
	const struct job *writer = writer_of(s, j, c);
	_cleanup_(mo_freep) char *who = !writer ? mo_strdup("an earlier run")
		: mo_printf("j-%lld%s%s", (long long)writer->id, mo_streq(writer->spec.user, j->spec.user) ? "" : " of ",
			    mo_streq(writer->spec.user, j->spec.user) ? "" : writer->spec.user);

	if (j->spec.recipe.steps == MO_NONE || j->resume < j->spec.recipe.steps || j->watermark != MO_NONE)
		return NULL;
	return mo_printf("nothing was left to do: %s had come to iteration %lld of %lld (checkpoint %s); '--set checkpoint.resume=never' "
			 "starts afresh, more steps train on",
			 who, (long long)j->resume, (long long)j->spec.recipe.steps, c && c->path ? c->path : j->checkpoint_dir);
}

/* The user went back to an iteration: what lies beyond it belongs to the run that was given up, until an attempt writes it again. So does what was damaged or missing just now:
 * it may be found whole later, and must not hold up the new run as a loss. */
void checkpoint_supersede(struct job *j, int64_t resume, int64_t attempt, int64_t time)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (c->iteration <= resume || c->state == CKPT_SUPERSEDED || c->state == CKPT_DELETED)
			continue;
		if (c->saved_at == MO_NONE)
			c->saved_at = time;
		c->state = CKPT_SUPERSEDED;
		free(c->reason);
		c->reason = mo_printf("attempt %lld went back to %lld", (long long)attempt, (long long)MO_MAX(resume, 0));
	}
}

/* An engine that announces nothing saves the same iterations again on its way. What the attempt did not reach, or announced itself, stays compared. */
void checkpoint_forget_manifests(struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];

		if (c->attempt != j->attempt && c->iteration > j->resume && c->iteration <= j->iteration)
			mo_str_set(&c->manifest, NULL);
	}
}

/* An undisturbed job has no attempt after it that looks. The node of rank 0 is asked, and the job is completed meanwhile. */
const char *checkpoint_end_node(const struct job *j)
{
	return j->end_scan && j->n_ranks > 0 ? j->ranks[0].node : NULL;
}

/* ---- checkpoint.keep ---- */

/* Never removed: the one that is being loaded, the one that restart --from will load, the one that is being verified, and the last one before a loss spike; what a person pinned, what lies elsewhere or
 * was there before. */
static bool held(const struct job *j, const struct checkpoint *c)
{
	int64_t asked = j->restart_from != MO_NONE ? checkpoint_newest_at_most(j, j->restart_from, false) : MO_NONE;
	int64_t good = j->spike != MO_NONE ? checkpoint_newest_at_most(j, j->spike - 1, false) : MO_NONE;   /* the last one before the loss went wrong */

	return c->state == CKPT_PINNED || mo_streq(c->reason, left_alone) || c->attempt == MO_NONE || c->iteration == asked || c->iteration == good || c->iteration == j->verify
		|| (c->iteration == j->resume && j->iteration == MO_NONE);
}

/* The oldest usable one behind `keep` newer ones that are verified; NULL = none. What was only announced holds no place: it may turn out torn, and then the verified one is all there is. */
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
	mo_str_set(&c->reason, removing);
}

bool checkpoint_removing(const struct checkpoint *c)
{
	return c->state == CKPT_DELETED && mo_streq(c->reason, removing);
}

bool checkpoint_any_removing(const struct job *j)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_removing(&j->checkpoints[i]))
			return true;
	return false;
}

/* Names the order to remove them: another number whenever one was added, so that an agent never takes an old result for an answer. 0 = nothing to remove. */
int64_t checkpoint_prune_order(const struct job *j)
{
	for (size_t i = j->n_checkpoints; i > 0 && j->n_places > 0; i--)
		if (checkpoint_removing(&j->checkpoints[i - 1]))
			return -1 - j->checkpoints[i - 1].iteration;
	return 0;
}

/* The answer to that order. Nothing else is judged by it: the job is writing. */
void checkpoint_pruned(struct job *j, const struct scan_result *r)
{
	for (size_t i = 0; i < j->n_checkpoints; i++)
		if (checkpoint_removing(&j->checkpoints[i]) && !found_of(r, j->checkpoints[i].iteration))
			mo_str_set(&j->checkpoints[i].reason, removed);
}

/* The job is over and nobody will be asked again: what was to be removed is gone, or is told as what lies there. r NULL, or with an error: nobody looked. */
void checkpoint_removal_over(struct job *j, const struct scan_result *r)
{
	for (size_t i = 0; i < j->n_checkpoints; i++) {
		struct checkpoint *c = &j->checkpoints[i];
		const struct found_checkpoint *f = r && !r->error ? found_of(r, c->iteration) : NULL;

		if (!checkpoint_removing(c))
			continue;
		if (f)
			c->state = f->complete ? CKPT_VERIFIED : CKPT_TORN;
		mo_str_set(&c->reason, f && f->complete ? "it could not be removed, though checkpoint.keep holds newer ones" : f ? f->reason ? f->reason : "incomplete"
			: r && !r->error ? removed : "checkpoint.keep held newer ones; nobody could look whether it is gone");
	}
}

/* Newest usable one whose iteration is at most limit, MO_NONE. own_only: written by this job. */
int64_t checkpoint_newest_at_most(const struct job *j, int64_t limit, bool own_only)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->iteration <= limit && checkpoint_usable(c) && (!own_only || c->attempt != MO_NONE))
			return c->iteration;
	}
	return MO_NONE;
}

/* The newest damaged entry that forbids a fresh start: it lay there before, or was complete once. A first save of this job that never ended is no loss. */
static const struct checkpoint *damaged(const struct job *j, bool own_only)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->state == CKPT_TORN && (c->attempt == MO_NONE ? !own_only : c->saved_at != MO_NONE || c->verified_at != MO_NONE))
			return c;
	}
	return NULL;
}

static int newest_or_fresh(const struct job *j, bool own_only, int64_t *ret, struct mo_error *err)
{
	int64_t newest = checkpoint_newest_at_most(j, INT64_MAX, own_only);
	const struct checkpoint *bad = damaged(j, own_only);
	_cleanup_(mo_freep) char *unread = newest == MO_NONE ? checkpoint_unread_text(j) : NULL;
	_cleanup_(mo_freep) char *afresh = checkpoint_afresh(j);

	if (unread)
		return mo_error_set(err, 1, "%s", unread);
	if (newest == MO_NONE && bad)
		return mo_error_set(err, 1, "every checkpoint in %s is damaged; the newest, %lld: %s; repair or remove them (looked at again every %d s), or %s",
			j->spec.recipe.checkpoint.dir, (long long)bad->iteration, bad->reason ? bad->reason : "damaged", (int)(SCAN_FRESH_US / 1000000), afresh);
	*ret = newest == MO_NONE ? -1 : newest;
	return 0;
}

static int exactly(const struct job *j, int64_t wanted, int64_t *ret, struct mo_error *err)
{
	const struct checkpoint *c = checkpoint_find(j, wanted);

	if (c && checkpoint_usable(c)) {
		*ret = wanted;
		return 0;
	}
	return mo_error_set(err, 2, "checkpoint.resume: %lld: there is no complete checkpoint of that iteration in %s%s%s", (long long)wanted,
		j->spec.recipe.checkpoint.dir, c && c->reason ? ": " : "", c && c->reason ? c->reason : "");
}

/* What a user went back to is not there (any more): nothing else is taken in its place. */
static int nothing_to_go_back_to(const struct job *j, struct mo_error *err)
{
	const struct checkpoint *c = NULL;

	for (size_t i = 0; i < j->n_checkpoints && j->checkpoints[i].iteration <= j->restart_from; i++)
		c = &j->checkpoints[i];
	return mo_error_set(err, 1, "restart --from %lld: no complete checkpoint at or before it is left in %s%s%s; bring one back (looked at again every %d s), or say 'moectl restart j-%lld' "
		"with --from and another one of 'moectl checkpoints j-%lld', without --from for the newest, or with --from 0 to start afresh", (long long)j->restart_from,
		j->spec.recipe.checkpoint.dir, c && c->reason ? ": " : "", c && c->reason ? c->reason : "", (int)(SCAN_FRESH_US / 1000000), (long long)j->id, (long long)j->id);
}

bool checkpoint_dir_held(const struct job *holder, const struct job *j)
{
	if (!j->checkpoint_dir || holder->id == j->id || holder->attempt == 0 || job_state_final(holder->state) || !mo_streq(holder->checkpoint_dir, j->checkpoint_dir))
		return false;
	return j->attempt == 0 || job_live(holder) || holder->id < j->id;
}

static int choose(const struct job *j, int64_t *ret, struct mo_error *err)
{
	const struct recipe_checkpoint *r = &j->spec.recipe.checkpoint;
	bool began = j->watermark != MO_NONE;
	int64_t newest;

	if (!r->dir) {
		*ret = -1;
		return 0;
	}
	if (j->scan_error)
		return mo_error_set(err, 1, "checkpoint.dir %s: %s", r->dir, j->scan_error);
	if (!j->scan_writable)
		return mo_error_set(err, began ? 1 : 2, "checkpoint.dir %s is not writable by %s; make it so or name another one", r->dir, j->spec.user ? j->spec.user : "the job's user");
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

/* As Megatron spells it, in engine.args: with dashes or underscores, its value in the word or behind it. */
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

	for (const char *s = c && !r->unread ? c->fixed : NULL; s && *s; s += *s == ',' ? 1 + (s[1] == ' ') : 0) {
		size_t name = strcspn(s, " ");
		int64_t have = size_named(r, s, name), saved;
		const char *value = s + name + (s[name] == ' ');
		size_t n = strcspn(value, ",");
		_cleanup_(mo_freep) char *text = mo_strndup(value, n);

		if (have != MO_NONE && mo_parse_i64(text, 0, INT64_MAX, &saved) == 0 && saved != have)
			mo_buf_printf(&b, "%s%.*s %lld", b.len ? ", " : "", (int)name, s, (long long)have);
		s = value + n;
	}
	return b.len ? mo_buf_take(&b) : NULL;
}

char *checkpoint_no_resume(const struct job *saved, const struct recipe *r)
{
	const struct checkpoint *c = checkpoint_find(saved, state_newest_checkpoint(saved));
	_cleanup_(mo_freep) char *misfit = checkpoint_misfit(c, r);

	return misfit ? mo_printf("checkpoint.dir: checkpoint %lld that j-%lld saved there does not reshard: it needs %s, "
				  "and this recipe has %s: take the same, another directory, or checkpoint.resume: never",
				  (long long)c->iteration, (long long)saved->id, c->fixed, misfit)
		      : NULL;
}

int checkpoint_choose(const struct job *j, int64_t *ret, struct mo_error *err)
{
	int64_t chosen = -1;
	int r = choose(j, &chosen, err);
	const struct checkpoint *c = r == 0 && chosen >= 0 ? checkpoint_find(j, chosen) : NULL;
	_cleanup_(mo_freep) char *misfit = checkpoint_misfit(c, &j->spec.recipe);

	if (misfit)
		return mo_error_set(err, 2, "checkpoint %lld in %s does not reshard: it was saved with %s, and this job has %s; "
				    "submit it with the same sizes, with another checkpoint.dir, or with checkpoint.resume: never",
				    (long long)chosen, j->spec.recipe.checkpoint.dir, c->fixed, misfit);
	if (c && c->held)
		return mo_error_set(err, 1, "checkpoint %lld in %s: %s (looked at again every %d s)", (long long)chosen,
				    j->spec.recipe.checkpoint.dir, c->held, (int)(SCAN_FRESH_US / 1000000));
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
	j.checkpoint_dir = mo_path_clean(dir);
	j.spec.recipe.checkpoint.added = added;
	j.spec.recipe.checkpoint.resume = -1;
	checkpoint_scan(&j, found, 0);
	j.scan_writable = true;
	r = checkpoint_choose(&j, ret, err);
	mo_desc_done(&job_desc, &j);
	return r;
}
