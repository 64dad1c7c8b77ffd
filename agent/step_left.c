/* See step_left.h. */
#include "agent/step_left.h"

#include <string.h>
#include <unistd.h>

#include "agent/journal.h"
#include "agent/paths.h"
#include "agent/step_entry.h"
#include "lib/base/fd.h"
#include "lib/model/launch.h"

#define ID_BYTES_MAX 512

/* As stepd wrote it before it forked anything. NULL: it is not there, or of another step. */
static char *read_id(const struct step_dir *d)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (mo_read_file_at(d->fd, "step_id", ID_BYTES_MAX, &b) < 0 || !b.data)
		return NULL;
	b.data[strcspn(b.data, "\n")] = '\0';
	return spool_id_fits(b.data, d->job, d->attempt, d->manager->config->node)
		       ? mo_strdup(b.data)
		       : NULL;
}

struct seen {
	size_t n_notes;
	int64_t first, last;
};

static void on_note(void *arg, struct note *n)
{
	struct seen *s = arg;

	s->n_notes++;
	if (n->rank != MO_NONE) {
		s->first = s->first == MO_NONE ? n->rank : MO_MIN(s->first, n->rank);
		s->last = MO_MAX(s->last, n->rank);
	}
	mo_desc_free(&note_desc, n);
}

static struct seen read_ranks(const struct step_dir *d)
{
	struct seen s = { .first = MO_NONE, .last = MO_NONE };
	struct journal journal;

	journal_init(&journal, d->fd);
	(void)journal_read(&journal, on_note, &s); /* what can be read of it */
	journal_done(&journal);
	return s;
}

static void take_cgroup(struct step_dir *d)
{
	_cleanup_(mo_freep) char *path = step_cgroup(d);

	if (path && (path[0] != '/' || mo_access(path, F_OK) >= 0))
		d->spool.cgroup = TAKE_PTR(path);
}

static void take_layer(struct step_dir *d)
{
	_cleanup_(mo_freep) char *path = path_layer(d->manager->config, d->job, d->attempt);

	if (mo_access(path, F_OK) >= 0)
		d->spool.layer = TAKE_PTR(path);
}

enum step_left step_left_read(struct step_dir *d)
{
	const struct seen seen = d->fd >= 0 ? read_ranks(d) : (struct seen){ 0 };
	struct launch *l = &d->spool.launch;

	mo_desc_done(&spool_desc, &d->spool);
	mo_desc_init(&spool_desc, &d->spool);
	d->spool.step_id = d->fd >= 0 ? read_id(d) : NULL;
	if (!d->spool.step_id)
		return seen.n_notes ? STEP_LEFT_UNKNOWN : STEP_LEFT_NOTHING;
	d->spool.boot_id = mo_strdup(d->manager->boot_id); /* of an earlier one: nothing is found */
	take_cgroup(d);
	take_layer(d);
	l->job = d->job;
	l->attempt = d->attempt;
	if (seen.first != MO_NONE && seen.last - seen.first < MO_GPUS_PER_NODE_MAX) {
		l->first_rank = seen.first;
		l->n_local = seen.last - seen.first + 1;
	}
	return STEP_LEFT_ID;
}
