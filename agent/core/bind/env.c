/* The environment of one rank. Called by stepd before the fork, by moectl explain env and by
 * dry-run. Later layers win; the launch layer wins always, and names that only the launcher may
 * set are dropped from every other layer, also where the launcher leaves them out: a second
 * visibility variable would filter the GPUs twice, a stray RANK would be believed. */
#include "agent/core/bind/env.h"

#include "agent/core/bind/env_nic.h"
#include "agent/core/bind/walls.h"
#include "agent/core/text/words.h"

#include <string.h>

#include "lib/base/assert.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"
#include "lib/model/env_names.h"
#include "lib/model/mask.h"
#include "lib/model/recorder.h"

/* When no layer has them (an installation with other profiles): a rank without PATH finds
 * nothing. */
static const struct {
	const char *name, *value, *reason;
} fallback[] = {
	{ "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	  "where programs are found; nothing of the daemon's own PATH" },
	{ "LANG", "C.UTF-8", "the same text encoding on every node" },
	{ "PYTHONUNBUFFERED", "1", "lines are seen when they are printed" },
};

bool env_is_launch_name(const char *name)
{
	return mo_env_launch_name(name);
}

void env_hide(struct env_item *item)
{
	char *shown = mo_mask_value(item->name, item->value);
	free(item->value);
	item->value = shown;
}

struct list {
	struct env_item **items;
	size_t *n, from;
};

/* The item of that name, made if there is none; what it replaces is noted in words. */
static struct env_item *claim(struct list *l, const char *name, int layer)
{
	for (size_t i = l->from; i < *l->n; i++) {
		struct env_item *old = &(*l->items)[i];
		if (!mo_streq(old->name, name))
			continue;
		_cleanup_(mo_freep) char *was = mo_mask_value(name, old->value);
		char *overrides =
			mo_printf("%s (%s)",
				  was         ? was
				  : old->file ? old->file
					      : "unset",
				  mo_enum_name(env_layer_names, _ENV_LAYER_N, old->layer));
		mo_desc_done(&env_item_desc, old);
		old->name = mo_strdup(name);
		old->overrides = overrides;
		old->layer = layer;
		return old;
	}
	struct env_item *item = mo_vec_add(&env_item_desc, (void **)l->items, l->n);
	item->name = mo_strdup(name);
	item->layer = layer;
	return item;
}

static void set(struct list *l, int layer, const char *source, const char *name, const char *value,
		const char *reason)
{
	if (!value)
		return;
	struct env_item *item = claim(l, name, layer);
	item->value = mo_strdup(value);
	item->reason = mo_strdup(reason);
	item->source = mo_strdup(source);
}

static void set_int(struct list *l, const char *name, int64_t value, const char *reason)
{
	_cleanup_(mo_freep) char *text = mo_printf("%lld", (long long)value);

	set(l, ENV_LAUNCH, "launch", name, text, reason);
}

static struct env_item *find(const struct list *l, const char *name)
{
	for (size_t i = l->from; i < *l->n; i++)
		if (mo_streq((*l->items)[i].name, name))
			return &(*l->items)[i];
	return NULL;
}

/* The node's own part of the base layer: below every layer that came with the launch. */
static void add_node_base(struct list *l, const struct rank_bind *b, const struct env_rank *r)
{
	_cleanup_(mo_freep) char *threads =
		mo_printf("%lld", (long long)(b && b->n_cpus > 0 ? b->n_cpus : 1));

	set(l, ENV_BASE, "node", "HOME", r->home, "home of the user the rank runs as");
	set(l, ENV_BASE, "node", "USER", r->user, "user the rank runs as");
	set(l, ENV_BASE, "node", "LOGNAME", r->user, "user the rank runs as");
	set(l, ENV_BASE, "node", "SHELL", r->shell, "login shell of the user the rank runs as");
	set(l, ENV_BASE, "node", "TMPDIR", r->tmpdir, "temporary files on this node");
	set(l, ENV_BASE, "node", "OMP_NUM_THREADS", threads,
	    "this rank's share of the node's cores; unset, every library starts a thread per CPU "
	    "it sees (others: Primus' launchers leave it unset, its MLPerf and bench "
	    "configurations say 1, torchrun says 1)");
}

/* Whose words {rank} and the like are replaced in the engine's layer; NULL = nobody's. */
struct speaker {
	const struct launch *launch;
	const struct env_rank *rank;
};

static void add_item(struct list *l, const struct env_item *from, const struct speaker *who)
{
	if (!from->name || env_is_launch_name(from->name))
		return;
	struct env_item *item = claim(l, from->name, from->layer);
	item->value = who && from->layer == ENV_ENGINE
			      ? words_expand(who->launch, who->rank->local_rank, who->rank->home,
					     from->value)
			      : mo_strdup(from->value);
	item->file = mo_strdup(from->file);
	item->reason = mo_strdup(from->reason);
	item->source = mo_strdup(from->source);
}

static void add_node_nics(struct list *l, const struct launch *launch, const struct nodeinfo *info,
			  const struct env_rank *r)
{
	struct env_item *gid = find(l, "NCCL_IB_GID_INDEX");
	struct env_item *items = NULL;
	size_t n = 0;

	env_nics(launch, info, gid, r->ifname, &items, &n);
	for (size_t i = 0; i < n; i++)
		add_item(l, &items[i], NULL);
	mo_vec_clear(&env_item_desc, (void **)&items, &n);
}

static const struct env_item *of_image(const struct launch *launch, const char *name)
{
	for (size_t i = 0; launch->container && i < launch->n_env; i++)
		if (launch->env[i].layer == ENV_IMAGE && mo_streq(launch->env[i].name, name))
			return &launch->env[i];
	return NULL;
}

/* The lowest layer. */
static void add_image(struct list *l, const struct launch *launch)
{
	for (size_t i = 0; launch->container && i < launch->n_env; i++)
		if (launch->env[i].layer == ENV_IMAGE)
			add_item(l, &launch->env[i], NULL);
}

/* Where programs lie in an image only it knows: no file of this node's counts against it. */
static bool image_knows(const struct launch *launch, const struct env_item *item)
{
	return item->layer == ENV_BASE && mo_streq(item->name, "PATH") && of_image(launch, "PATH");
}

/* Lists of directories that hold parts of the image's own program: what others say comes first,
 * and the image's stays. */
static void join_image(struct list *l, const struct launch *launch)
{
	static const char *const lists[] = { "LD_LIBRARY_PATH", "PYTHONPATH" };

	for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
		const struct env_item *own = of_image(launch, lists[i]);
		struct env_item *item = own ? find(l, lists[i]) : NULL;

		if (!item || item->layer == ENV_IMAGE || !item->value || !own->value)
			continue;
		_cleanup_(mo_freep) char *both =
			mo_printf("%s%s%s", item->value, *item->value ? ":" : "", own->value);
		mo_str_set(&item->value, both);
	}
}

static void add_layers(struct list *l, const struct launch *launch, const struct nodeinfo *info,
		       const struct env_rank *r)
{
	const struct speaker who = { launch, r };

	for (int layer = ENV_BASE; layer < ENV_LAUNCH; layer++) {
		for (size_t i = 0; i < launch->n_env; i++)
			if (launch->env[i].layer == layer && !image_knows(launch, &launch->env[i]))
				add_item(l, &launch->env[i], &who);
		if (layer == ENV_PROFILE)
			add_node_nics(l, launch, info, r);
	}
}

/* A recipe or profile says how many entries PyTorch's flight recorder keeps, and not none. PyTorch
 * 2.11 reads the first name, older ones the second. */
static bool recorder_wanted(struct list *l)
{
	static const char *const sizes[] = { "TORCH_FR_BUFFER_SIZE",
					     "TORCH_NCCL_TRACE_BUFFER_SIZE" };

	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		const struct env_item *size = find(l, sizes[i]);

		if (size && size->value && *size->value && !mo_streq(size->value, "0"))
			return true;
	}
	return false;
}

/* Where PyTorch takes the question what its ranks wait in, and answers it (agent/recorder.c). Not
 * without being asked for: engines look at these variables. Megatron-LM has each of its ranks dump
 * at its end where one of the places is named, and PyTorch 2.11 did not come to its end then. Who
 * names another place is not asked: the answer would lie where nobody looks. */
static void add_recorder(struct list *l, const struct env_rank *r)
{
	static const char *const places[] = { "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
					      "TORCH_FR_DUMP_TEMP_FILE",
					      "TORCH_NCCL_DEBUG_INFO_TEMP_FILE" };

	if (!r->recorder_dir || !recorder_wanted(l))
		return;
	for (size_t i = 0; i < ELEMENTSOF(places); i++)
		if (find(l, places[i]))
			return;
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		_cleanup_(mo_freep) char *stem =
			mo_printf("%s/%s", r->recorder_dir, i ? RECORDER_DUMP : RECORDER_PIPE);

		set(l, ENV_BASE, "node", places[i], stem,
		    i ? "where PyTorch's flight recorder leaves its last collectives, by rank"
		      : "pipe by which a rank is asked for them when its job may hang");
	}
	if (!find(l, "TORCH_NCCL_EXTRA_DUMP_ON_EXEC"))
		set(l, ENV_BASE, "node", "TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "0",
		    "ranks that also dump at their end may not come to it");
}

/* With both, each stream's pool of kernel arguments lies in VRAM: said at both, because neither
 * name tells (hardware facts 2.5). */
static void note_kernarg(struct list *l)
{
	struct env_item *force = find(l, "HIP_FORCE_DEV_KERNARG"),
			*pool = find(l, "HSA_KERNARG_POOL_SIZE");
	int64_t bytes;

	if (!force || !pool || !mo_streq(force->value, "1") || !pool->value ||
	    mo_parse_i64(pool->value, 0, INT64_MAX, &bytes) < 0)
		return;
	for (int i = 0; i < 2; i++) {
		struct env_item *item = i ? pool : force;
		_cleanup_(mo_freep) char *reason =
			mo_printf("%s; with HIP_FORCE_DEV_KERNARG=1 the pool lies in VRAM: %.1f "
				  "MiB for each stream",
				  item->reason ? item->reason : "", (double)bytes / (1 << 20));
		mo_str_set(&item->reason, reason);
	}
}

/* One variable with all GPUs of this job on the node; LOCAL_RANK is the index into it. HIP, not
 * ROCR: peers in one process stay reachable and LOCAL_RANK keeps its meaning (hardware facts
 * 2.6). */
static void add_visibility(struct list *l, const struct launch *launch, const struct nodeinfo *info)
{
	const char *vendor = NULL;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	for (size_t i = 0; i < launch->n_gpus; i++)
		mo_buf_printf(&text, "%s%lld", i ? "," : "",
			      (long long)walls_number(launch, info, launch->gpus[i]));
	for (size_t i = 0; launch->n_gpus && i < info->n_gpus; i++)
		if (info->gpus[i].index == launch->gpus[0])
			vendor = info->gpus[i].vendor;
	if (mo_streq(vendor, "amd"))
		set(l, ENV_LAUNCH, "launch", "HIP_VISIBLE_DEVICES", text.data,
		    walls_gpus(launch, info)
			    ? "all GPUs of this job on the node, LOCAL_RANK is the index; they "
			      "count from 0, for its ranks see the device files of no other; the "
			      "only visibility variable, two would filter twice"
			    : "all GPUs of this job on the node, LOCAL_RANK is the index; the only "
			      "visibility variable, two would filter twice");
	else if (mo_streq(vendor, "nvidia"))
		set(l, ENV_LAUNCH, "launch", "CUDA_VISIBLE_DEVICES", text.data,
		    "all GPUs of this job on the node, LOCAL_RANK is the index");
}

/* The names that no two ranks of a node have alike. */
static void add_own(struct list *l, const struct launch *launch, const struct env_rank *r)
{
	int64_t rank = launch->first_rank + r->local_rank;

	set_int(l, "RANK", rank,
		launch->n_local < (int64_t)launch->n_gpus
			? "number of this process in the job: there is one per node, with all its "
			  "GPUs"
			: "number of this rank in the job");
	set_int(l, "LOCAL_RANK", r->local_rank,
		"number of this rank on its node, index into the visible GPUs");
	set_int(l, "ROLE_RANK", rank, "torchrun's roles: there is one, so this is RANK");
	set(l, ENV_LAUNCH, "launch", "TORCHELASTIC_ERROR_FILE", r->error_file,
	    "where programs decorated with @record write their exception");
	set(l, ENV_LAUNCH, "launch", "MOE_NOTIFY_SOCKET", r->notify_socket,
	    "takes KEY=VALUE datagrams about progress; optional to use");
}

static void add_launch(struct list *l, const struct launch *launch, const struct env_rank *r)
{
	_cleanup_(mo_freep) char *job = mo_printf("j-%lld", (long long)launch->job);

	add_own(l, launch, r);
	set_int(l, "WORLD_SIZE", launch->world, "ranks of the job");
	set_int(l, "LOCAL_WORLD_SIZE", launch->n_local, "ranks of the job on this node");
	set_int(l, "GROUP_RANK", launch->node_rank,
		"torchrun's word for the node's number in the job");
	set_int(l, "GROUP_WORLD_SIZE", launch->n_nodes, "torchrun's word for the number of nodes");
	set_int(l, "ROLE_WORLD_SIZE", launch->world,
		"torchrun's roles: there is one, so this is WORLD_SIZE");
	set_int(l, "NODE_RANK", launch->node_rank, "number of this node in the job");
	set_int(l, "NNODES", launch->n_nodes, "nodes of the job");
	set(l, ENV_LAUNCH, "launch", "MASTER_ADDR",
	    launch->master_addr ? launch->master_addr : "127.0.0.1",
	    "address of the node of rank 0");
	set_int(l, "MASTER_PORT", launch->master_port,
		"first of four ports in a row, new for every attempt so that no old store or "
		"socket is met");
	set(l, ENV_LAUNCH, "launch", "TORCHELASTIC_RUN_ID", job, "the job's id");
	set_int(l, "TORCHELASTIC_RESTART_COUNT", launch->attempt - 1, "attempts before this one");
	set(l, ENV_LAUNCH, "launch", "MOE_JOB", job, "the job's id");
	set_int(l, "MOE_ATTEMPT", launch->attempt, "attempt of the job, from 1");
	set(l, ENV_LAUNCH, "launch", "MOE_STEP", r->step_id,
	    "marks every process of this attempt on this node, so that none is left behind");
	set(l, ENV_LAUNCH, "recipe: checkpoint.dir", "MOE_CHECKPOINT_DIR", launch->checkpoint_dir,
	    "the recipe's checkpoint directory");
	set_int(l, "MOE_RESUME_ITERATION", launch->resume >= 0 ? launch->resume : -1,
		"newest complete checkpoint this attempt resumes from; -1 = a fresh start");
}

void env_compose(const struct launch *launch, const struct nodeinfo *info,
		 const struct rank_bind *b, const struct env_rank *r, struct env_item **items,
		 size_t *n_items)
{
	struct list l = { .items = items, .n = n_items, .from = *n_items };

	add_image(&l, launch);
	add_node_base(&l, b, r);
	add_layers(&l, launch, info, r);
	for (size_t i = 0; i < ELEMENTSOF(fallback); i++)
		if (!find(&l, fallback[i].name))
			set(&l, ENV_BASE, "built in", fallback[i].name, fallback[i].value,
			    fallback[i].reason);
	add_recorder(&l, r);
	join_image(&l, launch);
	note_kernarg(&l);
	add_visibility(&l, launch, info);
	add_launch(&l, launch, r);
}

static bool engine_names_rank(const struct launch *launch)
{
	for (size_t i = 0; i < launch->n_env; i++) {
		const struct env_item *e = &launch->env[i];

		if (e->layer == ENV_ENGINE && words_name_rank(e->value))
			return true;
	}
	return false;
}

void env_compose_next(const struct launch *launch, const struct nodeinfo *info,
		      const struct env_first *first, const struct rank_bind *b,
		      const struct env_rank *r, struct env_item **items, size_t *n_items)
{
	struct list own = { .items = items, .n = n_items, .from = *n_items };
	struct env_item *all = NULL;
	size_t n = 0;

	if (b->n_cpus == first->bind->n_cpus && !engine_names_rank(launch)) {
		add_own(&own, launch, r);
		return;
	}
	env_compose(launch, info, b, r, &all, &n);
	mo_assert(n == first->n_items);
	for (size_t i = 0; i < n; i++)
		if (!mo_desc_equal(&env_item_desc, &all[i], &first->items[i]))
			mo_desc_copy(&env_item_desc,
				     mo_vec_add(&env_item_desc, (void **)items, n_items), &all[i]);
	mo_vec_clear(&env_item_desc, (void **)&all, &n);
}
