/* What a scan saw that looks like a model's state and is no checkpoint that the engine reads: in
 * checkpoint.dir something that its layout does not know, above it a checkpoint that lies where
 * the engine does not look, or checkpoint.dir is itself one checkpoint. Where nothing else can be
 * resumed, the job waits: it never starts afresh over, or beside, such a thing without a word. */
#include "daemon/core/rules/unread.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/state/checkpoint.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

#define UNREAD_NAMED 3 /* files that a reason names; moectl why names all */

/* The job's own first save, cut by its death: it never came beyond that iteration. */
static bool cut_first_save(const struct job *j, const struct unread_state *u)
{
	const struct checkpoint *c = NULL;

	if (u->iteration != MO_NONE && !u->where)
		c = checkpoint_find(j, u->iteration);
	return c && c->attempt != MO_NONE && j->progress.watermark != MO_NONE &&
	       u->iteration >= j->progress.watermark;
}

/* Where the engine does not look the job saves nothing: what lies there is known by its name. A
 * directory that is itself one checkpoint holds the job's own files too, so its size changes
 * with them. */
static bool same_unread(const struct unread_state *u, const struct unread_state *before)
{
	if (!u->where)
		return mo_desc_equal(&unread_state_desc, u, before);
	return mo_streq(u->where, before->where) && mo_streq(u->name, before->name);
}

bool checkpoint_unread(const struct job *j, const struct unread_state *u)
{
	for (size_t i = 0; i < j->scan.n_passed_over; i++)
		if (same_unread(u, &j->scan.passed_over[i]))
			return false;
	return !cut_first_save(j, u);
}

char *checkpoint_unread_path(const struct unread_state *u)
{
	return mo_printf("%s%s%s", u->where ? u->where : "",
			 u->where && !mo_streq(u->where, "/") ? "/" : "", u->name);
}

char *checkpoint_unread_names(const struct job *j)
{
	struct mo_buf b = { 0 };
	int64_t n = 0, more = MO_MAX(j->scan.unread_more, 0);

	for (size_t i = 0; i < j->scan.n_unread; i++) {
		_cleanup_(mo_freep) char *path = checkpoint_unread_path(&j->scan.unread[i]);
		size_t limit = j->scan.unread[i].where ? 200 : 80;

		if (!checkpoint_unread(j, &j->scan.unread[i]))
			continue;
		if (n++ < UNREAD_NAMED)
			mo_buf_printf(&b, "%s%.*s (%.1f MiB)", n > 1 ? ", " : "",
				      mo_utf8_shown(path, limit), path,
				      (double)j->scan.unread[i].bytes / (1 << 20));
		else
			more++;
	}
	if (n > 0 && more > 0)
		mo_buf_printf(&b, " and %lld more", (long long)more);
	return n > 0 ? mo_buf_take(&b) : NULL;
}

/* The first that holds the job up and lies elsewhere; NULL = all lie in checkpoint.dir. */
static const struct unread_state *misplaced(const struct job *j)
{
	for (size_t i = 0; i < j->scan.n_unread; i++)
		if (j->scan.unread[i].where && checkpoint_unread(j, &j->scan.unread[i]))
			return &j->scan.unread[i];
	return NULL;
}

/* checkpoint.dir lies in it, or is it. */
static bool is_the_directory(const struct job *j, const struct unread_state *u)
{
	_cleanup_(mo_freep) char *path = checkpoint_unread_path(u);
	_cleanup_(mo_freep) char *clean = mo_path_clean(path);
	size_t n = clean ? strlen(clean) : 0;
	const char *dir = j->saves.dir;

	return n > 0 && dir && strncmp(dir, clean, n) == 0 && (!dir[n] || dir[n] == '/');
}

char *checkpoint_named(const struct job *j)
{
	const char *dir = j->saves.dir, *below = j->spec.engine.save_below;
	size_t n = dir ? strlen(dir) : 0, add = below ? strlen(below) + 1 : 0;

	if (!j->spec.recipe.checkpoint.added || !add || n < add)
		return NULL;
	return n == add ? mo_strdup("/") : mo_strndup(dir, n - add);
}

char *checkpoint_afresh(const struct job *j)
{
	if (j->id < 1) /* only a scan: there is no job yet */
		return mo_strdup("start afresh with checkpoint.resume: never");
	return mo_printf("start afresh with 'moectl restart j-%lld --from 0'", (long long)j->id);
}

/* Where the engine's entries lie. */
static char *entries_of(const struct job *j)
{
	const char *subdir = j->spec.engine.layout.subdir, *dir = j->spec.recipe.checkpoint.dir;

	return mo_printf("%s%s%s", dir, subdir ? "/" : "", subdir ? subdir : "");
}

static char *misplaced_text(const struct job *j, const struct unread_state *u, const char *names,
			    const char *kind, const char *afresh)
{
	const char *tracker = j->spec.engine.layout.tracker;
	_cleanup_(mo_freep) char *entries = entries_of(j);

	if (is_the_directory(j, u))
		return mo_printf("checkpoint.dir is one checkpoint: %s; engine %s looks for "
				 "checkpoints in a directory of them: name the one above it (%s, "
				 "in a new submit), %s, or submit with another checkpoint.dir",
				 names, kind, u->where, afresh);
	return mo_printf("engine %s reads checkpoints in %s, and not what lies above it: %s; move "
			 "it there%s%s (looked at again every %d s), %s, or submit with another "
			 "checkpoint.dir",
			 kind, entries, names, tracker ? ", with " : "", tracker ? tracker : "",
			 (int)(SCAN_FRESH_US / 1000000), afresh);
}

char *checkpoint_unread_text(const struct job *j)
{
	const struct recipe *r = &j->spec.recipe;
	const char *kind = r->engine.kind ? r->engine.kind : "?";
	_cleanup_(mo_freep) char *names = checkpoint_unread_names(j);
	_cleanup_(mo_freep) char *afresh = checkpoint_afresh(j);
	const struct unread_state *u = misplaced(j);

	if (!names || u)
		return names ? misplaced_text(j, u, names, kind, afresh) : NULL;
	return mo_printf("%s holds what looks like a model's state, and engine %s cannot read it: "
			 "%s; a fresh start would write over it. Say what it is "
			 "(checkpoint.layout, in a new submit), %s, or submit with another "
			 "checkpoint.dir",
			 r->checkpoint.dir, kind, names, afresh);
}

const char *checkpoint_unread_next(const struct job *j)
{
	const struct unread_state *u = misplaced(j);

	if (u && is_the_directory(j, u))
		return "one of three: cancel it and submit it with the directory above as "
		       "checkpoint.dir; 'moectl restart JOB --from 0', which starts afresh; cancel "
		       "it and submit it with another checkpoint.dir";
	if (u)
		return "one of three: move the checkpoints into checkpoint.dir; 'moectl restart "
		       "JOB --from 0', which starts afresh; cancel it and submit it with another "
		       "checkpoint.dir";
	return "one of three: cancel it and submit it with checkpoint.layout, which says what "
	       "these files are; 'moectl restart JOB --from 0', which starts afresh and may write "
	       "over them; cancel it and submit it with another checkpoint.dir";
}
