/* See checkpoint.h. */
#include "daemon/core/state/checkpoint.h"

#include <string.h>

#include "lib/base/assert.h"

const char checkpoint_removing_text[] = "being removed: checkpoint.keep holds newer ones";

bool checkpoint_removing(const struct checkpoint *c)
{
	return c->state == CKPT_DELETED && mo_streq(c->reason, checkpoint_removing_text);
}

bool checkpoint_usable(const struct checkpoint *c)
{
	return !c->tainted &&
	       (c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED || c->state == CKPT_PINNED);
}

bool checkpoint_tainted(const struct checkpoint *c)
{
	return c->tainted &&
	       (c->state == CKPT_COMPLETE || c->state == CKPT_VERIFIED || c->state == CKPT_PINNED);
}

struct checkpoint checkpoint_shown(const struct checkpoint *c)
{
	struct checkpoint shown = *c;

	if (checkpoint_tainted(c)) {
		shown.state = CKPT_TAINTED;
		shown.reason = c->tainted;
	}
	return shown;
}

bool checkpoint_compares(const struct checkpoint *c)
{
	return c->failed_loads != MO_NONE && !c->compared && c->manifest &&
	       (c->state == CKPT_VERIFIED || c->state == CKPT_SUSPECT);
}

int64_t checkpoint_seen(const struct checkpoint *c)
{
	return c->seen_at != MO_NONE ? c->seen_at : c->saved_at;
}

bool checkpoint_announced(const struct job *j, const struct checkpoint *c)
{
	return j->spec.engine.layout.announced_is_complete &&
	       (c->announced || c->state == CKPT_COMPLETE);
}

const struct checkpoint *checkpoint_since(const struct job *j, int64_t at)
{
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (checkpoint_usable(c) && c->attempt == j->attempt && c->saved_at >= at)
			return c;
	}
	return NULL;
}

const struct checkpoint *checkpoint_find(const struct job *j, int64_t iteration)
{
	mo_assert(j->checkpoints || j->n_checkpoints == 0);
	for (size_t i = j->n_checkpoints; i > 0; i--)
		if (j->checkpoints[i - 1].iteration == iteration)
			return &j->checkpoints[i - 1];
	return NULL;
}

bool checkpoint_named_suspect(const struct job *j, int64_t iteration)
{
	const struct checkpoint *c = checkpoint_find(j, iteration);

	return c && (c->state == CKPT_SUSPECT || checkpoint_tainted(c));
}

/* Digits at the end of the name, MO_NONE without: the iteration of a path announced without one. */
static int64_t path_iteration(const char *path)
{
	size_t n = path ? strlen(path) : 0, digits = 0;
	int64_t value = 0, unit = 1;

	while (n > 0 && path[n - 1] == '/')
		n--;
	while (digits < n && digits < 18 && path[n - 1 - digits] >= '0' &&
	       path[n - 1 - digits] <= '9') {
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
	return clean[0] == '/' && strncmp(clean, dir, n) == 0 &&
	       (clean[n] == '/' || clean[n] == '\0');
}

bool checkpoint_inside(const struct job *j, const char *path)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);

	return !path || lies_in(clean, j->saves.dir);
}

char *checkpoint_as_named(const struct job *j, const char *path)
{
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	const char *real = j->saves.real;

	if (!path || !j->saves.dir || !real || real[0] != '/' || !real[1])
		/* of a node's making: all of the machine is no directory of saves */
		return NULL;
	if (lies_in(clean, j->saves.dir) || !lies_in(clean, real))
		return NULL;
	return mo_printf("%s%s", j->saves.dir, clean + strlen(real));
}

int64_t checkpoint_iteration(const struct note *n, int64_t reached)
{
	int64_t iteration = n->iteration != MO_NONE ? n->iteration : path_iteration(n->path);

	return iteration != MO_NONE ? iteration : reached;
}

/* The engine named the directory of all its checkpoints, and it is ours. */
static bool names_dir(const struct job *j, const char *path)
{
	const char *subdir = j->spec.engine.layout.subdir;
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	_cleanup_(mo_freep) char *below = mo_printf("%s/%s", j->saves.dir, subdir ? subdir : "");
	_cleanup_(mo_freep) char *entries = mo_path_clean(below);

	return mo_streq(clean, j->saves.dir) || mo_streq(clean, entries);
}

const char *checkpoint_entry_path(const struct job *j, const char *path)
{
	return path && j->saves.dir && names_dir(j, path) ? NULL : path;
}

/* What an engine whose layout moectl knows says of the place is held against checkpoint.dir:
 * what lies elsewhere would never be resumed. A path whose name ends in the iteration is one
 * checkpoint, another one the directory of all. A script may announce what it likes. */
bool checkpoint_elsewhere(const struct job *j, const struct note *n)
{
	const struct ckpt_layout *l = &j->spec.engine.layout;

	if (!n->path || n->path[0] != '/' || !j->saves.dir || l->announced_is_complete ||
	    l->given || l->unnumbered)
		return false;
	if (!checkpoint_inside(j, n->path))
		return true;
	return n->iteration != MO_NONE && path_iteration(n->path) != n->iteration &&
	       !names_dir(j, n->path);
}

/* An undisturbed job has no attempt after it that scans. The node of rank 0 is asked, and the
 * job is completed meanwhile. */
const char *checkpoint_end_node(const struct job *j)
{
	return j->scan.at_end && j->run.n_ranks > 0 ? j->run.ranks[0].node : NULL;
}

/* Newest usable one whose iteration is at most limit, MO_NONE. own_only: written by this job. */
int64_t checkpoint_newest_at_most(const struct job *j, int64_t limit, bool own_only)
{
	mo_assert(j->checkpoints || j->n_checkpoints == 0);
	for (size_t i = j->n_checkpoints; i > 0; i--) {
		const struct checkpoint *c = &j->checkpoints[i - 1];

		if (c->iteration <= limit && checkpoint_usable(c) &&
		    (!own_only || c->attempt != MO_NONE))
			return c->iteration;
	}
	return MO_NONE;
}

bool checkpoint_dir_held(const struct job *holder, const struct job *j)
{
	if (!j->saves.dir || holder->id == j->id || holder->attempt == 0 ||
	    job_state_final(holder->state) || !mo_streq(holder->saves.dir, j->saves.dir))
		return false;
	return j->attempt == 0 || job_live(holder) || holder->id < j->id;
}

const struct found_checkpoint *scan_found(const struct scan_result *r, int64_t iteration)
{
	for (size_t i = 0; i < r->n_items; i++)
		if (r->items[i].iteration == iteration)
			return &r->items[i];
	return NULL;
}
