/* See step_entry.h. */
#include "agent/step_entry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/core/agent/spool_make.h"
#include "agent/layers.h"
#include "agent/messages.h"
#include "agent/paths.h"
#include "agent/queue.h"
#include "agent/starter.h"
#include "agent/step_left.h"
#include "lib/base/fd.h"
#include "lib/base/identity.h"
#include "lib/base/log.h"
#include "lib/base/parse.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define LAUNCH_BYTES_MAX (64 * 1024 * 1024)

static struct mo_log_where where(const struct step_dir *d)
{
	return (struct mo_log_where){
		.job = d->job, .attempt = d->attempt, .rank = -1, .node = d->manager->config->node
	};
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

int step_entry_write(struct step_dir *d, const struct command *c, struct mo_error *err)
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
		/* also where the directory outlives a loss of power: its boot id proves the step
		 * over. Memory, which it is by default, costs no sync. */
		r = mo_write_file(file, b.data, b.len, 0600, true);
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
	bool held = !step_dir_lock(d);
	loaded(d);
	if (left == STEP_LEFT_NOTHING && !held) {
		step_dir_forget(d);
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

/* Of one that an agent before this one had begun to remove. */
static void remove_rest(const char *steps, const char *name)
{
	_cleanup_(mo_freep) char *path = mo_path(steps, "%s", name);
	int r = mo_rm_rf(path);

	if (r < 0)
		mo_log(MO_WARNING, NULL, NULL, "%s cannot be removed: %s", path, strerror(-r));
}

void step_entries_adopt(struct manager *m)
{
	_cleanup_(mo_freep) char *path = mo_path(m->config->runtime_dir, "steps");
	_cleanup_(mo_dir_freep) struct mo_dir *dir = mo_dir_open(AT_FDCWD, path, 0);
	for (const char *name; (name = mo_dir_next(dir));) {
		if (mo_starts_with(name, STEP_GONE)) {
			remove_rest(path, name);
			continue;
		}
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
