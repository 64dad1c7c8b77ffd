/* See step_dir.h. */
#include "agent/step_dir.h"

#include <errno.h>
#include <string.h>

#include "agent/cgroup.h"
#include "agent/ending.h"
#include "agent/helper.h"
#include "agent/layers.h"
#include "agent/messages.h"
#include "agent/paths.h"
#include "agent/queue.h"
#include "agent/runtimes.h"
#include "agent/step_talk.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/loop/loop.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

#define QUEUE_DRAIN 4096 /* notes read in one go before the core is asked */

static struct mo_log_where where(const struct step_dir *d)
{
	return (struct mo_log_where){
		.job = d->job, .attempt = d->attempt, .rank = -1, .node = d->manager->config->node
	};
}

struct step_dir *step_dir_free(struct step_dir *d)
{
	if (!d)
		return NULL;
	step_talk_end(d);
	mo_buf_done(&d->in);
	mo_timer_free(d->timer);
	mo_timer_free(d->sweep_timer);
	mo_hunt_done(&d->hunt);
	helper_free(d->starter);
	helper_free(d->recorder);
	journal_done(&d->journal);
	mo_desc_done(&spool_desc, &d->spool);
	mo_close(d->lock_fd);
	mo_close(d->fd);
	free(d->exited);
	free(d->path);
	free(d);
	return NULL;
}

static void log_note(const struct step_dir *d, const struct note *n)
{
	struct mo_log_where w = where(d);
	if (n->rank != MO_NONE)
		w.rank = n->rank;
	w.cause = n->cause;
	if (n->kind == NOTE_REFUSED)
		mo_log(MO_ERR, MSG_REFUSED, &w, "step j-%lld attempt %lld could not start: %s",
		       (long long)d->job, (long long)d->attempt, n->text ? n->text : n->cause);
	else if (n->kind == NOTE_UNKILLABLE)
		mo_log(MO_ERR, MSG_UNKILLABLE, &w,
		       "process %lld of step j-%lld attempt %lld cannot be killed: its GPU is not "
		       "usable until it ends, or this node is rebooted",
		       (long long)n->pid, (long long)d->job, (long long)d->attempt);
	else if (n->kind == NOTE_GONE)
		mo_log(MO_NOTICE, MSG_STEP_GONE, &w, "step j-%lld attempt %lld is gone: %s",
		       (long long)d->job, (long long)d->attempt, n->text ? n->text : "");
}

/* No process of it is left. */
static void over(struct step_dir *d)
{
	d->gone = true;
	if (d->spool.layer)
		layers_remove(d->manager->layers, d->job, d->attempt);
	runtimes_release(d->manager->runtimes, d);
}

static void on_note(void *arg, struct note *n)
{
	struct step_dir *d = arg;
	if (!d->manager->adopting) /* an earlier agent has logged those */
		log_note(d, n);
	struct agent_event e = { .type = AE_NOTE, .job = d->job, .attempt = d->attempt, .note = n };
	/* whose spool entry is lost has no first rank */
	int64_t first = d->spool.launch.first_rank;

	if (n->kind == NOTE_EXIT && first != MO_NONE && n->rank >= first &&
	    (size_t)(n->rank - first) < d->n_exited)
		d->exited[n->rank - first] = true;
	if (n->kind == NOTE_STOPPING)
		ending_ask(d->manager);
	if (n->kind == NOTE_GONE)
		over(d);
	queue_event(d->manager, &e);
	if (d->manager->n_queue >= QUEUE_DRAIN && !d->manager->draining)
		mo_turn_now(d->manager->turn);
}

void step_dir_read(struct step_dir *d)
{
	int r = journal_read(&d->journal, on_note, d);
	struct mo_log_where w = where(d);
	if (r < 0)
		mo_log(MO_ERR, NULL, &w, "%s: the journal cannot be read: %s", d->path,
		       strerror(-r));
	else if (r > 0)
		mo_log(MO_WARNING, NULL, &w,
		       "%s: %d lines of the journal were skipped: not new notes", d->path, r);
}

void step_dir_reread(struct step_dir *d)
{
	journal_done(&d->journal);
	journal_init(&d->journal, d->fd);
	/* notes that are queued before it are of the reading before */
	queue_event(d->manager, &(struct agent_event){
					.type = AE_REREAD, .job = d->job, .attempt = d->attempt });
	step_dir_read(d);
}

void step_dir_lost(struct step_dir *d, const char *text)
{
	struct agent_event e = { .type = AE_STEPD_LOST, .job = d->job, .attempt = d->attempt };
	struct mo_log_where w = where(d);
	step_talk_end(d);
	mo_timer_at(d->timer, INT64_MAX);
	step_dir_read(d);
	if (!d->gone)
		mo_log(MO_WARNING, MSG_STEPD_LOST, &w,
		       "%s: the supervisor of the step is dead%s%s; what is left of its ranks is "
		       "killed",
		       d->path, text ? ": " : "", text ? text : "");
	e.text = mo_strdup(text);
	queue_event(d->manager, &e);
}

bool step_dir_lock(struct step_dir *d)
{
	_cleanup_(mo_freep) char *path = mo_path(d->path, "lock");
	int fd = mo_lock_file(path);
	struct mo_log_where w = where(d);
	if (fd < 0 && fd != -EWOULDBLOCK)
		mo_log(MO_ERR, NULL, &w, "%s: %s", path, strerror(-fd));
	if (fd >= 0)
		d->lock_fd = fd;
	return fd >= 0;
}

struct step_dir *step_dir_find(struct manager *m, int64_t job, int64_t attempt)
{
	for (size_t i = 0; i < m->n_steps; i++)
		if (m->steps[i]->job == job && m->steps[i]->attempt == attempt)
			return m->steps[i];
	return NULL;
}

struct step_dir *step_dir_new(struct manager *m, int64_t job, int64_t attempt)
{
	struct step_dir *d = mo_alloc(sizeof(*d));
	*d = (struct step_dir){ .manager = m,
				.job = job,
				.attempt = attempt,
				.path = path_step(m->config, job, attempt),
				.fd = -1,
				.lock_fd = -1 };
	mo_desc_init(&spool_desc, &d->spool);
	journal_init(&d->journal, -1);
	if (mo_timer_new(m->loop, step_talk_timer, d, &d->timer) < 0)
		abort(); /* timers take no descriptor: only memory can be missing */
	*MO_GROW(m->steps, m->n_steps) = d;
	return d;
}

void step_dir_forget(struct step_dir *d)
{
	_cleanup_(mo_freep) char *gone = path_step_gone(d->manager->config, d->job, d->attempt);
	struct mo_log_where w = where(d);

	d->forgotten = true;
	if (mo_rename(d->path, gone) < 0 && errno != ENOENT)
		mo_log(MO_WARNING, NULL, &w, "%s cannot be removed: %s", d->path, strerror(errno));
}

void step_dir_remove(struct step_dir *d)
{
	struct manager *m = d->manager;
	struct mo_log_where w = where(d);
	_cleanup_(mo_freep) char *gone = path_step_gone(m->config, d->job, d->attempt);
	int r = mo_rm_rf(gone);

	if (r < 0)
		mo_log(MO_WARNING, NULL, &w, "%s cannot be removed: %s", gone, strerror(-r));
	cgroup_remove(d);
	if (d->spool.layer)
		layers_remove(m->layers, d->job, d->attempt);
	for (size_t i = 0; i < m->n_steps; i++)
		if (m->steps[i] == d) {
			memmove(&m->steps[i], &m->steps[i + 1],
				(m->n_steps - i - 1) * sizeof(*m->steps));
			m->n_steps--;
			break;
		}
	step_dir_free(d);
}
