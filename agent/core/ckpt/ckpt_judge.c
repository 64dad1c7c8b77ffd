/* Completeness of checkpoints. Called by moe-ckpt for every entry of a checkpoint directory.
 * What is checked, in this order:
 *   the entry itself                  no link, no name of an unfinished save, nothing left over
 *                                     from a save that was cut
 *   markers                           there, not empty, whole; what they say of iteration,
 *                                     world, files and sizes is true; what a resume needs is in
 *                                     them
 *   needs                             files without which the engine cannot load
 *   shards (level sizes)              none empty, cut, zeros or a link, none that the list of
 *                                     files does not know; with marker_last none newer than a
 *                                     marker: a save into an old directory
 *                                     leaves the old marker in place
 *   grids                             every combination of numbers, as many as the ranks want
 *                                     and the files say
 *   tracker (layouts that have one)   present, a number or an entry's name, not behind the
 *                                     entry: engines read it first, a damaged one makes Megatron
 *                                     end with status 0
 * Wrong "torn" costs some iterations, wrong "complete" costs the run: in doubt it is torn. */
#include "agent/core/ckpt/ckpt_inner.h"

#include <string.h>

#include "lib/base/buf.h"

/* file systems that take times from their clients: clocks of nodes differ, while a save into an
 * old directory comes minutes after its marker */
#define CLOCKS_NS 2000000000

/* ---- files by name ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct ckpt_file *const *)a)->name,
		      (*(const struct ckpt_file *const *)b)->name);
}

static void sort_files(struct judging *j)
{
	j->sorted = mo_alloc_array(j->e->n_files + 1, sizeof(*j->sorted));
	for (size_t i = 0; i < j->e->n_files; i++)
		j->sorted[i] = &j->e->files[i];
	qsort(j->sorted, j->e->n_files, sizeof(*j->sorted), by_name);
}

/* The first file whose name is not less. */
static size_t lower_bound(const struct judging *j, const char *name)
{
	size_t begin = 0, end = j->e->n_files;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		if (strcmp(j->sorted[middle]->name, name) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

static const struct ckpt_file *file_named(const struct judging *j, const char *name)
{
	size_t i = lower_bound(j, name);

	return i < j->e->n_files && mo_streq(j->sorted[i]->name, name) ? j->sorted[i] : NULL;
}

/* ---- markers ---- */

static char *judge_listed_file(const struct judging *j, const struct ckpt_marker *m,
			       const struct ckpt_file *want)
{
	const struct ckpt_file *have = file_named(j, want->name);

	if (!have)
		return mo_printf("%s, which %s lists, is missing", want->name, m->name);
	if (j->q->level == LEVEL_MARKER)
		return NULL;
	if (have->damage)
		return mo_printf("%s: %s", want->name, have->damage);
	if (want->bytes != MO_NONE && have->bytes != want->bytes)
		return mo_printf("%s has %lld bytes of %lld", want->name, (long long)have->bytes,
				 (long long)want->bytes);
	if (want->bytes == MO_NONE && have->bytes <= 0)
		return mo_printf("%s is empty", want->name);
	return have->bytes >= want->least
		       ? NULL
		       : mo_printf("%s has %lld bytes of %lld, which %s lists", want->name,
				   (long long)have->bytes, (long long)want->least, m->name);
}

/* At level marker only the entry's own directory was listed. */
static char *judge_listed(const struct judging *j, const struct ckpt_marker *m)
{
	char *reason = NULL;

	for (size_t i = 0; i < m->n_files && !reason; i++)
		if (j->q->level != LEVEL_MARKER || !strchr(m->files[i].name, '/'))
			reason = judge_listed_file(j, m, &m->files[i]);
	return reason;
}

static char *judge_marker(const struct judging *j, const struct ckpt_marker *m)
{
	int64_t world = j->q->world;

	if (!m->present)
		return mo_printf("%s is missing", m->name);
	if (m->bytes <= 0)
		return mo_printf("%s is empty", m->name);
	if (m->damage)
		return mo_printf("%s: %s", m->name, m->damage);
	if (m->iteration != MO_NONE && m->iteration != j->e->iteration)
		return mo_printf("%s speaks of iteration %lld", m->name, (long long)m->iteration);
	if (m->world != MO_NONE && world != MO_NONE && m->world != world)
		return mo_printf("%lld ranks wrote it, the job has %lld", (long long)m->world,
				 (long long)world);
	if (m->lists_files && m->world != MO_NONE && (int64_t)m->n_files < m->world)
		return mo_printf("%s lists %zu files of %lld ranks", m->name, m->n_files,
				 (long long)m->world);
	return m->lists_files ? judge_listed(j, m) : NULL;
}

static const struct ckpt_marker *lister(const struct ckpt_entry *e)
{
	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].lists_files)
			return &e->markers[i];
	return NULL;
}

static bool holds_nothing(const struct ckpt_entry *e)
{
	for (size_t i = 0; i < e->n_files; i++)
		if (e->files[i].bytes > 0)
			return false;
	return true;
}

static char *judge_markers(const struct judging *j)
{
	const struct ckpt_entry *e = j->e;
	bool excused = j->q->announced && j->r->layout.announced_is_complete, contains = false,
	     present = false;
	char *reason = NULL;

	for (size_t i = 0; i < e->n_markers && !reason; i++) {
		if (!e->markers[i].present && excused) {
			reason = holds_nothing(e) ? mo_strdup("it holds nothing") : NULL;
			continue;
		}
		reason = judge_marker(j, &e->markers[i]);
		contains |= e->markers[i].contains;
		present |= e->markers[i].present;
	}
	if (!reason && j->r->listed && present && !lister(e))
		reason = mo_printf("%s lists no file: it is not what the save wrote",
				   e->markers[0].name);
	/* of iteration 0 there is the model only: what a run begins with */
	if (!reason && j->r->contains && !contains && e->iteration > 0)
		reason = mo_strdup("it holds the model only, without the optimizer's state: it "
				   "cannot be resumed");
	return reason;
}

/* ---- needs ---- */

static char *judge_needed(const struct judging *j, const char *name)
{
	size_t n = strlen(name);
	const struct ckpt_file *f = file_named(j, name);

	if (n > 0 && name[n - 1] == '/') {
		for (size_t i = lower_bound(j, name);
		     i < j->e->n_files && mo_starts_with(j->sorted[i]->name, name); i++)
			if (j->sorted[i]->bytes > 0)
				return NULL;
		return mo_printf("%s is missing or empty", name);
	}
	if (!f)
		return mo_printf("%s is missing", name);
	if (f->damage)
		return mo_printf("%s: %s", name, f->damage);
	return f->bytes > 0 ? NULL : mo_printf("%s is empty", name);
}

/* $1 of the pattern's last match. */
static char *with_group(const struct ckpt_rules *r, const char *file, const char *name, int groups)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const PCRE2_SIZE *v = pcre2_get_ovector_pointer(r->data);

	for (const char *p = file; *p; p++) {
		if (p[0] == '$' && p[1] == '1') {
			if (groups > 1 && v[2] != PCRE2_UNSET)
				mo_buf_add(&b, name + v[2], v[3] - v[2]);
			p++;
		} else {
			mo_buf_add(&b, p, 1);
		}
	}
	return mo_strdup(b.data ? b.data : "");
}

static bool excused_from(const struct judging *j, size_t need)
{
	for (size_t i = 0; i < j->e->n_markers; i++)
		if (j->e->markers[i].said & 1u << need)
			return true;
	for (size_t i = 0; j->r->unless[need] && i < j->e->n_files; i++)
		if (ckpt_found(j->r, j->r->unless[need], j->e->files[i].name,
			       strlen(j->e->files[i].name)))
			return true;
	return false;
}

static char *judge_need(const struct judging *j, size_t need)
{
	const struct ckpt_need *n = &j->r->layout.needs[need];
	_cleanup_(mo_freep) char *last = NULL;
	char *reason = NULL;

	if (!n->file || excused_from(j, need))
		return NULL;
	if (!n->each)
		return j->q->level == LEVEL_MARKER && strchr(n->file, '/')
			       ? NULL
			       : judge_needed(j, n->file);
	for (size_t i = 0; i < j->e->n_files && !reason; i++) {
		const char *name = j->sorted[i]->name;
		int groups = pcre2_match(j->r->each[need], (PCRE2_SPTR)name, strlen(name), 0, 0,
					 j->r->data, NULL);
		if (groups < 0)
			continue;
		char *file = with_group(j->r, n->file, name, groups);
		if (!mo_streq(file, last))
			reason = judge_needed(j, file);
		free(last);
		last = file;
	}
	return reason;
}

static char *judge_needs(const struct judging *j)
{
	char *reason = NULL;

	for (size_t i = 0; i < j->r->layout.n_needs && !reason; i++)
		reason = judge_need(j, i);
	return reason;
}

/* ---- shards ---- */

static bool is_marker(const struct ckpt_entry *e, const char *name)
{
	for (size_t i = 0; i < e->n_markers; i++)
		if (mo_streq(e->markers[i].name, name))
			return true;
	return false;
}

static bool is_archive(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && strcmp(name + n - 3, ".pt") == 0;
}

/* What a list of all files does not know was written by another save; but a rank that has
 * nothing to write leaves an empty file. */
static bool listed(const struct ckpt_marker *m, const char *name)
{
	for (size_t begin = 0, end = m->n_files; begin < end;) {
		size_t middle = begin + (end - begin) / 2;
		int order = strcmp(m->files[middle].name, name);
		if (order == 0)
			return true;
		begin = order < 0 ? middle + 1 : begin;
		end = order < 0 ? end : middle;
	}
	return false;
}

static char *judge_shard(const struct judging *j, const struct ckpt_file *f,
			 const struct ckpt_marker *oldest, bool may_be_empty)
{
	const struct ckpt_marker *list = j->r->listed && j->r->shard ? lister(j->e) : NULL;
	bool unknown = list && !listed(list, f->name);

	if (f->damage)
		return mo_printf("%s: %s", f->name, f->damage);
	if (f->bytes <= 0)
		return may_be_empty || unknown ? NULL : mo_printf("%s is empty", f->name);
	if (j->r->layout.marker_last && oldest && f->mtime_ns - CLOCKS_NS > oldest->mtime_ns)
		return mo_printf("%s is newer than %s: a later save into this directory was not "
				 "finished, or it was copied without its times (cp -p keeps them)",
				 f->name, oldest->name);
	return unknown ? mo_printf("%s is not what %s lists: two saves are mixed", f->name,
				   list->name)
		       : NULL;
}

static char *judge_shards(const struct judging *j)
{
	const struct ckpt_rules *r = j->r;
	const struct ckpt_entry *e = j->e;
	/* Without a pattern any file is one; but not where only the user's own program knows
	 * what its empty files mean. */
	bool own = !r->shard && (r->layout.announced_is_complete || r->layout.given);
	size_t n = 0;
	const struct ckpt_marker *oldest = NULL;

	for (size_t i = 0; i < e->n_markers; i++)
		if (e->markers[i].present && (!oldest || e->markers[i].mtime_ns < oldest->mtime_ns))
			oldest = &e->markers[i];
	for (size_t i = 0; i < e->n_files; i++) {
		const struct ckpt_file *f = &e->files[i];
		if (is_marker(e, f->name))
			continue;
		if (r->shard && !ckpt_found(r, r->shard, f->name, strlen(f->name))) {
			/* What lies beside the shards, such as common.pt, is loaded too. */
			if ((is_archive(f->name) || ckpt_format_of(r, f->name) != FORMAT_UNKNOWN) &&
			    (f->damage || f->bytes <= 0))
				return mo_printf("%s: %s", f->name,
						 f->damage ? f->damage : "it is empty");
			continue;
		}
		n++;
		_cleanup_(mo_freep) char *reason = judge_shard(j, f, oldest, own);
		if (reason)
			return TAKE_PTR(reason);
	}
	return n || !r->shard ? NULL : mo_strdup("it holds no shard");
}

static char *judge_leftovers(const struct ckpt_rules *r, const struct ckpt_entry *e)
{
	for (size_t i = 0; r->leftover && i < e->n_files; i++)
		if (ckpt_found(r, r->leftover, e->files[i].name, strlen(e->files[i].name)))
			return mo_printf("%s is left over: the save was not finished",
					 e->files[i].name);
	return NULL;
}

/* An engine with markers and grids has two formats: an entry with files of a grid and without
 * any marker is of the second one. */
static bool is_second_format(const struct judging *j, bool cells)
{
	for (size_t i = 0; i < j->e->n_markers; i++)
		if (j->e->markers[i].present)
			return false;
	return cells && j->e->n_markers > 0;
}

static char *judge_directory(struct judging *j)
{
	bool cells = ckpt_has_cells(j->r, j->e), second = is_second_format(j, cells);
	char *reason = judge_leftovers(j->r, j->e);

	sort_files(j);
	if (!reason && !second)
		reason = judge_markers(j);
	if (!reason && !second)
		reason = judge_needs(j);
	if (!reason && j->q->level >= LEVEL_SIZES)
		reason = judge_shards(j);
	if (!reason && (cells || !j->e->n_markers))
		reason = ckpt_judge_grids(j);
	free(j->sorted);
	return reason;
}

/* checkpoint.layout: the entry is the file itself. */
static char *judge_file(const struct ckpt_rules *r, const struct ckpt_entry *e)
{
	if (r->layout.n_markers)
		return mo_printf("%s is missing: it is a single file", r->layout.markers[0]);
	if (e->n_files != 1 || e->files[0].bytes <= 0)
		return mo_strdup("it is empty");
	return e->files[0].damage ? mo_strdup(e->files[0].damage) : NULL;
}

char *ckpt_judge(const struct ckpt_rules *r, const struct ckpt_entry *e,
		 const struct ckpt_question *q)
{
	struct judging j = { .r = r, .e = e, .q = q };

	if (e->damage)
		return mo_strdup(e->damage);
	if (!e->directory && r->layout.given)
		return judge_file(r, e);
	if (!e->directory)
		return r->layout.n_markers ? mo_printf("%s is missing: it is a single file",
						       r->layout.markers[0])
					   : mo_strdup("it is a single file");
	if (e->too_many)
		return mo_printf("it holds more than %zu files", e->n_files);
	char *reason = judge_directory(&j);
	return reason ? reason : ckpt_judge_tracker(r, e, q);
}

char *ckpt_held(const struct ckpt_rules *r, const struct ckpt_entry *e,
		const struct ckpt_question *q)
{
	if (!r->by_tracker || q->tracker != TRACKER_SAYS || q->tracker_says == e->iteration)
		return NULL;
	for (size_t i = 0; i < e->n_files; i++)
		if (ckpt_found(r, r->by_tracker, e->files[i].name, strlen(e->files[i].name)))
			return mo_printf("the engine would load %s of iteration %lld, which the "
					 "tracker file %s names, whatever step it is told: write "
					 "%lld into it",
					 strrchr(e->files[i].name, '/')
						 ? strrchr(e->files[i].name, '/') + 1
						 : e->files[i].name,
					 (long long)q->tracker_says, r->layout.tracker,
					 (long long)e->iteration);
	return NULL;
}
