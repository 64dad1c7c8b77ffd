/* See begin.h. */
#include "agent/stepd/begin.h"

#include "agent/core/text/lines.h"
#include "agent/stepd/entry.h"
#include "agent/stepd/journal.h"
#include "agent/stepd/link.h"
#include "agent/stepd/loop.h"
#include "agent/stepd/sources.h"
#include "agent/stepd/tree.h"

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

int stepd_open(struct stepd *s, struct mo_error *err)
{
	int r = stepd_open_loop(s, err);

	if (r == 0)
		r = entry_load(s, err);
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
