/* See begin.h. */
#include "agent/stepd/begin.h"

#include <errno.h>
#include <string.h>

#include "agent/core/text/lines.h"
#include "agent/stepd/journal.h"
#include "agent/stepd/link.h"
#include "agent/stepd/loop.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/tree.h"
#include "lib/base/fd.h"
#include "lib/wire/decode.h"

#define LAUNCH_BYTES_MAX (64 * 1024 * 1024)

static int load_spool(struct stepd *s, struct mo_error *err)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int r = mo_read_file_at(s->dir_fd, "launch.json", LAUNCH_BYTES_MAX, &b);
	if (r < 0)
		return mo_error_set(err, r, "%s/launch.json: %s", s->dir, strerror(-r));
	_cleanup_(mo_error_done) struct mo_error e = { 0 };
	r = wire_decode(&spool_desc, b.data ? b.data : "", b.len, false, &s->spool, &e);
	if (r < 0)
		return mo_error_set(err, r, "%s/launch.json: %s", s->dir, mo_error_text(&e, r));
	const struct launch *l = &s->spool.launch;
	if (!s->spool.step_id || !s->spool.node || !s->spool.log_dir || l->n_argv == 0 ||
	    l->n_local < 1 || l->n_local > MO_GPUS_PER_NODE_MAX || s->spool.log_bytes <= 0)
		return mo_error_set(err, -EINVAL,
				    "%s/launch.json: a field that every step needs is missing",
				    s->dir);
	return 0;
}

static void make_rank(struct rank *r, int64_t rank, size_t local)
{
	r->rank = rank;
	r->local = local;
	r->start_time = MO_NONE;
	r->log_fd = r->pidfd.fd = r->report.fd = r->notify.fd = r->out.source.fd =
		r->err.source.fd = -1;
}

static int make_ranks(struct stepd *s, struct mo_error *err)
{
	const struct launch *l = &s->spool.launch;
	s->n_ranks = (size_t)l->n_local;
	s->gpus = l->job_gpus > 0 ? l->job_gpus : l->world;
	s->ranks = mo_alloc_array(s->n_ranks, sizeof(*s->ranks));
	s->progress_sent = mo_alloc_array(s->n_ranks, sizeof(*s->progress_sent));
	for (size_t i = 0; i < s->n_ranks; i++) {
		struct rank *r = &s->ranks[i];
		make_rank(r, l->first_rank + (int64_t)i, i);
		mo_desc_init(&rank_progress_desc, &s->progress_sent[i]);
		s->progress_sent[i].rank = r->rank;
	}
	make_rank(&s->hook, l->first_rank, 0);
	s->hook_ms = MO_NONE;
	int r = lines_new(l->rules, l->n_rules, &s->lines, err);
	if (r >= 0)
		lines_steps(s->lines, l->steps);
	return r;
}

void stepd_init(struct stepd *s)
{
	*s = (struct stepd){ .lock_fd = -1,
			     .cgroup_fd = -1,
			     .mnt_fd = -1,
			     .root_fd = -1,
			     .image_fd = -1,
			     .holder = { .fd = -1 },
			     .life_fd = -1,
			     .heartbeat_fd = -1,
			     .keeper_fd = -1,
			     .cgroup_procs_fd = -1,
			     .port_fds = { -1, -1, -1, -1 },
			     .port_names = { -1, -1, -1, -1 },
			     .journal = { .fd = -1 },
			     .listener = { .fd = -1 } };
	mo_desc_init(&spool_desc, &s->spool);
}

/* Before anything is forked: where the spool entry is lost, an agent finds by it what is of the
 * step; the marker of its namespace is a mount of this file. */
static int write_id(struct stepd *s, struct mo_error *err)
{
	_cleanup_(mo_freep) char *path = mo_path(s->dir, "step_id");
	_cleanup_(mo_freep) char *id = mo_printf("%s\n", s->spool.step_id);
	int r = mo_write_file(path, id, strlen(id), 0444, false);

	return r < 0 ? mo_error_set(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int stepd_open(struct stepd *s, struct mo_error *err)
{
	int r = stepd_open_loop(s, err);

	if (r == 0)
		r = load_spool(s, err);
	if (r == 0)
		r = write_id(s, err);
	if (r == 0)
		r = make_ranks(s, err);
	if (r < 0)
		return r;
	s->core = stepd_core_new(&s->spool.launch, s->spool.own_namespace);
	tree_open_cgroup(s);
	r = journal_open(s, err);
	if (r == 0)
		r = link_open(s, err);
	if (r == 0)
		stepd_queue(s, SE_LAUNCH, NULL);
	return r;
}
