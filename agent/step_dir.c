/* One step directory as the agent lives with it: the spool entry, the lock (whoever gets it has
 * proof that stepd is dead), the socket, the journal.
 *   connect -> {"up"} -> AE_STEPD_UP -> notes, progress ... -> end of stream ->
 *     lock free: AE_STEPD_LOST (journal read to its end first)
 *     lock held: connect again
 *   no word for SILENT_US while the lock is held: AE_STEPD_SILENT, and it goes on trying.
 *   Nothing here ever kills a stepd. */
#include "agent/step_dir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "agent/core/agent/spool_make.h"
#include "agent/cgroup.h"
#include "agent/ending.h"
#include "agent/helper.h"
#include "agent/journal.h"
#include "agent/layers.h"
#include "agent/runtimes.h"
#include "agent/messages.h"
#include "agent/paths.h"
#include "agent/queue.h"
#include "agent/starter.h"
#include "agent/step_left.h"
#include "agent/supervisor.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/loop/loop.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

/* together 5 s: so long may a supervisor stand before it is told of */
#define SILENT_US 3000000
#define PING_US 2000000
#define RETRY_US 20000
#define RETRY_SILENT_US 1000000
#define WORDS_MAX (1024 * 1024) /* unread bytes of one stepd */
#define LAUNCH_BYTES_MAX (64 * 1024 * 1024)
#define QUEUE_DRAIN 4096 /* notes read in one go before the core is asked */

static struct mo_log_where where(const struct step_dir *d)
{
	return (struct mo_log_where){
		.job = d->job, .attempt = d->attempt, .rank = -1, .node = d->manager->config->node
	};
}

static void queue(struct step_dir *d, int type)
{
	struct agent_event e = { .type = type, .job = d->job, .attempt = d->attempt };
	queue_event(d->manager, &e);
}

static void disconnect(struct step_dir *d)
{
	d->supervisor = supervisor_free(d->supervisor);
	mo_buf_reset(&d->in);
	d->answered = d->up_reported = false;
}

struct step_dir *step_dir_free(struct step_dir *d)
{
	if (!d)
		return NULL;
	disconnect(d);
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
	queue(d, AE_REREAD); /* notes that are queued before it are of the reading before */
	step_dir_read(d);
}

void step_dir_lost(struct step_dir *d, const char *text)
{
	struct agent_event e = { .type = AE_STEPD_LOST, .job = d->job, .attempt = d->attempt };
	struct mo_log_where w = where(d);
	disconnect(d);
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

static bool take_lock(struct step_dir *d)
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

static void word_is_due(struct step_dir *d)
{
	if (d->quiet_since_us == 0)
		d->quiet_since_us = mo_clock_boot_us();
}

static void tell_if_silent(struct step_dir *d)
{
	struct mo_log_where w = where(d);
	if (d->silent_reported || d->quiet_since_us == 0 ||
	    mo_clock_boot_us() - d->quiet_since_us < SILENT_US)
		return;
	d->silent_reported = true;
	mo_log(MO_ERR, MSG_STEPD_SILENT, &w,
	       "%s: the supervisor holds its lock but does not answer; its ranks are left alone. "
	       "Look at its process; `moectl cancel --now` cannot reach it",
	       d->path);
	queue(d, AE_STEPD_SILENT);
}

static void on_word(struct step_dir *d, const struct stepd_word *w)
{
	d->answered = true;
	d->quiet_since_us = 0;
	mo_timer_in(d->timer, PING_US);
	if (!d->up_reported || d->silent_reported)
		queue(d, AE_STEPD_UP);
	d->up_reported = true;
	d->silent_reported = false;
	if (w->written != MO_NONE && w->written > d->journal.last)
		step_dir_read(d);
	for (size_t i = 0; i < w->n_progress; i++) {
		struct agent_event e = { .type = AE_PROGRESS,
					 .job = d->job,
					 .attempt = d->attempt,
					 .progress = mo_desc_dup(&rank_progress_desc,
								 &w->progress[i]) };
		queue_event(d->manager, &e);
	}
}

static void take_words(struct step_dir *d)
{
	size_t at = 0;
	for (char *nl; at < d->in.len && (nl = memchr(d->in.data + at, '\n', d->in.len - at));) {
		struct stepd_word w;
		size_t len = (size_t)(nl - d->in.data) - at;
		mo_desc_init(&stepd_word_desc, &w);
		if (wire_decode(&stepd_word_desc, d->in.data + at, len, false, &w, NULL) == 0)
			on_word(d, &w);
		mo_desc_done(&stepd_word_desc, &w);
		at += len + 1;
	}
	mo_buf_consume(&d->in, at);
}

static void on_words(void *arg, bool ended)
{
	struct step_dir *d = arg;

	take_words(d);
	if (!ended)
		return;
	disconnect(d);
	word_is_due(d);
	step_dir_connect(d);
}

void step_dir_connect(struct step_dir *d)
{
	if (d->supervisor || d->lock_fd >= 0)
		return;
	word_is_due(d);
	if (supervisor_connect(d->manager->loop, d->fd, &d->in, WORDS_MAX, on_words, d,
			       &d->supervisor) >= 0) {
		mo_timer_in(d->timer, SILENT_US);
		return;
	}
	disconnect(d);
	if (take_lock(d)) {
		step_dir_lost(d, NULL);
		return;
	}
	tell_if_silent(d);
	mo_timer_in(d->timer, d->silent_reported ? RETRY_SILENT_US : RETRY_US);
}

/* Whoever gets the lock has proof that no stepd lives; else one does after all. */
void step_dir_start_failed(struct step_dir *d, const char *text)
{
	_cleanup_(mo_freep) char *lock = mo_path(d->path, "lock");
	d->lock_fd = mo_lock_file(lock);
	if (d->lock_fd >= 0)
		step_dir_lost(d, text);
	else
		step_dir_connect(d);
}

void step_dir_started(struct step_dir *d, const char *problem)
{
	_cleanup_(mo_freep) char *text =
		problem ? mo_printf("the supervisor could not be started: %s (see %s/stepd.log)",
				    problem, d->path)
			: NULL;
	if (text)
		step_dir_start_failed(d, text);
	else
		step_dir_connect(d);
}

static void on_timer(void *arg)
{
	struct step_dir *d = arg;
	if (!d->supervisor) {
		step_dir_connect(d);
		return;
	}
	if (d->answered) {
		d->answered = false;
		word_is_due(d);
		step_dir_order(d, &(struct stepd_order){ .cmd = (char *)"ping",
							 .exec = MO_NONE,
							 .signal = MO_NONE,
							 .grace_us = MO_NONE });
		mo_timer_in(d->timer, SILENT_US);
		return;
	}
	tell_if_silent(d);
	mo_timer_in(d->timer, RETRY_SILENT_US);
}

void step_dir_order(struct step_dir *d, const struct stepd_order *o)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (!d->supervisor)
		return; /* the core repeats its orders when stepd answers again */
	wire_encode(&stepd_order_desc, o, &b);
	mo_buf_add(&b, "\n", 1);
	if (supervisor_send(d->supervisor, b.data, b.len) == 0)
		return;
	disconnect(d); /* half an order must not stay in the stream */
	word_is_due(d);
	mo_timer_in(d->timer, RETRY_US);
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
	if (mo_timer_new(m->loop, on_timer, d, &d->timer) < 0)
		abort(); /* timers take no descriptor: only memory can be missing */
	*MO_GROW(m->steps, m->n_steps) = d;
	return d;
}

static int open_dir(struct step_dir *d)
{
	d->fd = mo_open_at(AT_FDCWD, d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (d->fd < 0)
		return -errno;
	journal_init(&d->journal, d->fd);
	return 0;
}

static void loaded(struct step_dir *d)
{
	mo_desc_done(&nodeinfo_desc, &d->spool.info); /* only stepd needs it */
	d->n_exited = (size_t)MO_MAX(d->spool.launch.n_local, 0);
	free(d->exited);
	d->exited = mo_alloc_array(d->n_exited + 1, sizeof(bool));
}

void step_dir_remove(struct step_dir *d)
{
	struct manager *m = d->manager;
	struct mo_log_where w = where(d);
	/* The entry goes first: an agent that is killed half-way leaves no step behind that
	 * seems to wait for its start. */
	if (d->fd >= 0)
		mo_remove_at(d->fd, "launch.json", 0);
	int r = mo_rm_rf(d->path);
	if (r < 0)
		mo_log(MO_WARNING, NULL, &w, "%s cannot be removed: %s", d->path, strerror(-r));
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

/* What else lives on this node; caller frees. */
static struct neighbour *neighbours(const struct step_dir *self, size_t *ret_n)
{
	struct manager *m = self->manager;
	struct neighbour *all = mo_alloc_array(m->n_steps + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < m->n_steps; i++) {
		const struct step_dir *d = m->steps[i];

		if (d != self)
			all[n++] = (struct neighbour){ .binds = d->spool.binds,
						       .n_binds = d->spool.n_binds,
						       .over = d->gone || d->forgotten };
	}
	*ret_n = n;
	return all;
}

char *step_cgroup(const struct step_dir *d)
{
	const struct manager *m = d->manager;

	if (m->starter->in_units)
		return mo_strdup("unit");
	return m->cgroup_base ? mo_path(m->cgroup_base, "j%lld.a%lld", (long long)d->job,
					(long long)d->attempt)
			      : NULL;
}

static void fill_spool(struct step_dir *d, const struct command *c)
{
	const struct agent_config *config = d->manager->config;
	size_t n_others = 0;
	_cleanup_(mo_freep) struct neighbour *others = neighbours(d, &n_others);
	_cleanup_(mo_freep) char *random = mo_random_hex(8), *cgroup = step_cgroup(d);
	_cleanup_(mo_freep) char *layer = path_layer(config, d->job, d->attempt);
	_cleanup_(mo_freep) char *log_dir = path_logs(config, d->job, d->attempt);
	_cleanup_(mo_freep) char *step_id = mo_printf("j%lld.a%lld.%s.%s", (long long)d->job,
						      (long long)d->attempt, config->node, random);
	const struct node_terms terms = {
		.node = config->node,
		.boot_id = d->manager->boot_id,
		.step_id = step_id,
		.log_dir = log_dir,
		.cgroup = cgroup,
		.tmpdir = config->tmpdir,
		.layer = layer,
		.images_dir = config->images_dir,
		.runtimes = config->runtimes,
		.squashfs = config->squashfs,
		.info = &d->manager->info,
		.devices_root = config->topology,
		.allow_root = config->allow_root,
		.own_namespace = mo_uid() == 0,
		.min_uid = config->min_uid,
		.log_bytes = config->log_bytes,
		.nofile = config->nofile,
		.memlock_bytes = config->memlock_bytes,
		.core_bytes = config->core_bytes,
		.memory_bytes = config->memory_bytes,
		.pids = config->pids,
		.reserve_cores = config->reserve_cores,
	};

	spool_make(c, &terms, others, n_others, &d->spool);
}

int step_dir_spool(struct step_dir *d, const struct command *c, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *file = mo_path(d->path, "launch.json");
	fill_spool(d, c);
	wire_encode(&spool_desc, &d->spool, &b);
	/* A root agent's ranks of other users pass through to their notify socket and their own
	 * directory; they cannot list it. */
	int r = mo_mkdir(d->path, 0700) < 0 && errno != EEXIST       ? -errno
		: mo_chmod(d->path, mo_uid() == 0 ? 0711 : 0700) < 0 ? -errno
								     : open_dir(d);
	if (r == 0 && d->spool.layer)
		r = layers_make(d->manager->layers, d->job, d->attempt);
	if (r == 0)
		/* outlives the agent; a power loss ends the step with it, as the boot id shows */
		r = mo_write_file(file, b.data, b.len, 0600, false);
	loaded(d);
	return r < 0 ? mo_error_set(err, r, "the spool entry %s on %s could not be written: %s",
				    file, d->manager->config->node, strerror(-r))
		     : 0;
}

static int load(struct step_dir *d)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct mo_log_where w = where(d);
	int r = open_dir(d);
	if (r == 0)
		r = mo_read_file_at(d->fd, "launch.json", LAUNCH_BYTES_MAX, &b);
	if (r == 0)
		r = wire_decode(&spool_desc, b.data ? b.data : "", b.len, false, &d->spool, &err);
	if (r == 0 && (d->spool.launch.job != d->job || d->spool.launch.attempt != d->attempt ||
		       !d->spool.step_id))
		r = mo_error_set(&err, -EINVAL, "it is of another step");
	if (r < 0 && r != -ENOENT)
		mo_log(MO_ERR, NULL, &w, "%s/launch.json: %s", d->path, mo_error_text(&err, r));
	return r;
}

static void adopt(struct manager *m, int64_t job, int64_t attempt)
{
	struct step_dir *d = step_dir_new(m, job, attempt);
	struct mo_log_where w = where(d);
	enum step_left left = load(d) < 0 ? step_left_read(d) : STEP_LEFT_ID;
	bool held = !take_lock(d);
	loaded(d);
	if (left == STEP_LEFT_NOTHING && !held) {
		step_dir_remove(d);
		return;
	}
	/* of which boot an unknown one is nothing says: it is not taken for one that is over */
	bool same = !d->spool.boot_id || mo_streq(d->spool.boot_id, m->boot_id);
	struct launch *l = mo_desc_dup(&launch_desc, &d->spool.launch);
	struct agent_event e = { .type = AE_SPOOLED_STEP,
				 .job = job,
				 .attempt = attempt,
				 .lock_held = held,
				 .boot_same = same,
				 .launch = l };
	queue_event(m, &e);
	if (!same)
		return;
	step_dir_read(d);
	mo_log(MO_NOTICE, MSG_STEP_ADOPTED, &w, "%s: %s", d->path,
	       held      ? "adopting a running step"
	       : d->gone ? "a finished step is waiting for the controller"
			 : "the supervisor of this step died; what is left of its ranks is killed");
}

void step_dirs_adopt(struct manager *m)
{
	_cleanup_(mo_freep) char *path = mo_path(m->config->runtime_dir, "steps");
	_cleanup_(mo_dir_freep) struct mo_dir *dir = mo_dir_open(AT_FDCWD, path, 0);
	for (const char *name; (name = mo_dir_next(dir));) {
		const char *dot = strstr(name, ".a");
		int64_t job, attempt;
		_cleanup_(mo_freep) char *first =
			name[0] == 'j' && dot ? mo_strndup(name + 1, (size_t)(dot - name) - 1)
					      : NULL;
		if (first && mo_parse_i64(first, 1, INT64_MAX, &job) == 0 &&
		    mo_parse_i64(dot + 2, 1, INT64_MAX, &attempt) == 0)
			adopt(m, job, attempt);
	}
}
