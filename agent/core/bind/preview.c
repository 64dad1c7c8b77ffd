/* Preview of a launch (see preview.h). Called by moed and moectl, never by the agent itself. */
#include "agent/core/bind/preview.h"

#include "agent/core/bind/bind_launch.h"
#include "agent/core/bind/env.h"
#include "lib/model/mask.h"
#include "lib/model/recorder.h"

struct binds {
	struct rank_bind *items;
	size_t n;
};

static void binds_done(struct binds *b)
{
	mo_vec_clear(&rank_bind_desc, (void **)&b->items, &b->n);
}

static void place(struct dryrun_rank *k, const struct launch *l, size_t i,
		  const struct rank_bind *b, const char *node)
{
	k->rank = l->first_rank + (int64_t)i;
	k->node = mo_strdup(node);
	k->local_rank = (int64_t)i;
	k->cpus = mo_strdup(b->cpus);
	k->numa_node = b->numa_node;
	k->gpu = l->gpus[i];
	k->nic = mo_strdup(b->nic);
}

int preview_binds(const char *node, const struct nodeinfo *info, const struct launch *l,
		  struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err)
{
	_cleanup_(binds_done) struct binds binds = { 0 };
	int r = bind_launch(info, l, &l->bind, "", &binds.items, &binds.n, err);

	for (size_t i = 0; r >= 0 && i < binds.n; i++)
		place(mo_vec_add(&dryrun_rank_desc, (void **)ranks, n_ranks), l, i, &binds.items[i],
		      node);
	return r < 0 ? r : 0;
}

int preview_ranks(const char *node, const struct nodeinfo *info, const struct launch *l,
		  struct dryrun_rank **ranks, size_t *n_ranks, struct mo_error *err)
{
	_cleanup_(binds_done) struct binds binds = { 0 };
	_cleanup_(mo_freep) char *dir = mo_printf("/run/moe-agent/steps/j%lld.a%lld",
						  (long long)l->job, (long long)l->attempt);
	_cleanup_(mo_freep) char *step =
		mo_printf("j%lld.a%lld.%s", (long long)l->job, (long long)l->attempt, node);
	const char *user = l->user ? l->user : "root";
	_cleanup_(mo_freep) char *home =
		mo_streq(user, "root") ? mo_strdup("/root") : mo_printf("/home/%s", user);
	int r = bind_launch(info, l, &l->bind, "", &binds.items, &binds.n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < binds.n; i++) {
		const struct rank_bind *b = &binds.items[i];
		struct dryrun_rank *k = mo_vec_add(&dryrun_rank_desc, (void **)ranks, n_ranks);
		int64_t rank = l->first_rank + (int64_t)i;
		_cleanup_(mo_freep) char *error_file = mo_printf("%s/error.%lld.json", dir,
								 (long long)rank),
					 *notify =
						 mo_printf("%s/notify.%lld", dir, (long long)rank);
		_cleanup_(mo_freep) char *recorder = mo_printf("%s/" RECORDER_DIR, dir);
		const struct env_rank who = { .local_rank = (int64_t)i,
					      .step_id = step,
					      .notify_socket = notify,
					      .error_file = error_file,
					      .recorder_dir = recorder,
					      .home = home,
					      .user = user,
					      .shell = "/bin/bash",
					      .tmpdir = "/tmp" };
		place(k, l, i, b, node);
		for (size_t w = 0; w < l->n_argv; w++)
			mo_strs_add(&k->argv, &k->n_argv, l->argv[w]);
		mo_mask_words(k->argv, k->n_argv);
		env_compose(l, info, b, &who, &k->env, &k->n_env);
		for (size_t e = 0; e < k->n_env; e++)
			env_hide(&k->env[e]);
	}
	return 0;
}
