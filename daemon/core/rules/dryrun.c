/* Dry run (see dryrun.h): the production placement and launch order on a copy of the state.
 * Nothing here changes the state. */
#include "daemon/core/rules/dryrun.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/rules/launch.h"
#include "daemon/core/rules/place.h"
#include "lib/base/buf.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"
#include "lib/model/runtime.h"

#define NODE_GPUS 8 /* of an MI300X/MI325X/MI350X/MI355X platform */
/* two sockets of 48 cores, two threads each: the smaller of the usual hosts */
#define NODE_CORES 96
#define NODE_NUMA 2
/* shown as MASTER_PORT before the first attempt, which gets a free one */
#define DRY_PORT 29500

const char *const dryrun_placed_names[] = { "nodes", "idle-nodes", "example" };

static void numa_add(struct nodeinfo *info, int64_t id)
{
	struct numa_node *n = MO_ADD(info, numa, &numa_node_desc);
	_cleanup_(mo_buf_done) struct mo_buf cores = { 0 }, l3 = { 0 };
	int64_t per = NODE_CORES / NODE_NUMA, first = id * per;
	for (int64_t c = first; c < first + per; c++)
		mo_buf_printf(&cores, "%s%lld,%lld", c > first ? ";" : "", (long long)c,
			      (long long)(c + NODE_CORES));
	for (int64_t c = first; c < first + per; c += 8)
		mo_buf_printf(&l3, "%s%lld-%lld,%lld-%lld", c > first ? ";" : "", (long long)c,
			      (long long)c + 7, (long long)(c + NODE_CORES),
			      (long long)(c + NODE_CORES + 7));
	n->id = id;
	n->cpus = mo_printf("%lld-%lld,%lld-%lld", (long long)first, (long long)(first + per - 1),
			    (long long)(first + NODE_CORES),
			    (long long)(first + NODE_CORES + per - 1));
	n->cores = mo_buf_take(&cores);
	n->l3 = mo_buf_take(&l3);
	n->distances = mo_strdup(id ? "32 10" : "10 32");
}

static void slot_add(struct nodeinfo *info, int64_t index, int64_t n_gpus, const char *model)
{
	struct gpu_slot *g = MO_ADD(info, gpus, &gpu_slot_desc);
	g->index = index;
	g->vendor = mo_strdup(mo_starts_with(model, "mi") ? "amd" : "nvidia");
	g->model = mo_strdup(model);
	g->numa_node = index * NODE_NUMA / MO_MAX(n_gpus, NODE_NUMA);
	g->nic = mo_printf("rdma%lld", (long long)index);
}

void dryrun_cluster(const struct recipe *r, struct state *s)
{
	int64_t gpus = MO_MAX(r->gpus, 1), per = MO_MIN(gpus, NODE_GPUS),
		n = (gpus + per - 1) / per;
	const char *model = r->gpu ? r->gpu : "mi300x";
	for (int64_t i = 0; i < n; i++) {
		struct node *node = MO_INSERT(s, nodes, s->n_nodes, &node_desc);
		/* nodes are in ascending order of name */
		node->name = mo_printf("example-%05lld", (long long)i);
		node->boot.id = mo_strdup("dry-run");
		node->agent.instance = mo_strdup("dry-run");
		node->agent.address = mo_strdup(node->name);
		node->state = NODE_UP;
		node->agent.reconciled = true;
		node->info.hostname = mo_strdup(node->name);
		node->info.cpus = NODE_CORES * 2;
		node->info.images = true;
		node->info.image_root = true;
		for (size_t k = 0; runtime_names[k]; k++)
			mo_strs_add(&node->info.holders, &node->info.n_holders, runtime_names[k]);
		for (int64_t k = 0; k < NODE_NUMA; k++)
			numa_add(&node->info, k);
		for (int64_t k = 0; k < per; k++)
			slot_add(&node->info, k, per, model);
	}
}

struct who {
	const struct submit *spec;
	int64_t job, attempt, port;
};

/* The job as the core would have it right after placement. */
static struct job *job_with_places(struct state *s, const struct who *who, struct place *places,
				   size_t n_places)
{
	struct job *j = MO_INSERT(s, jobs, s->n_jobs, &job_desc);
	mo_desc_copy(&submit_desc, &j->spec, who->spec);
	j->id = who->job;
	j->state = JOB_STARTING;
	j->attempt = who->attempt;
	j->run.resume = -1;
	j->run.port = who->port;
	j->run.places = places;
	j->run.n_places = n_places;
	return j;
}

struct ranks {
	struct dryrun_rank *items;
	size_t n;
};

static void ranks_done(struct ranks *r)
{
	mo_vec_clear(&dryrun_rank_desc, (void **)&r->items, &r->n);
}
MO_DEFINE_DONE(launch)

static int one_node(const struct state *s, const struct job *j, size_t place,
		    const struct dryrun_walk *walk, struct mo_error *err)
{
	const struct node *node = node_find(s, j->run.places[place].node);
	_cleanup_(launch_done) struct launch launch;
	_cleanup_(ranks_done) struct ranks ranks = { 0 };

	mo_desc_init(&launch_desc, &launch);
	launch_make(s, j, place, &launch);
	int r = walk->ranks(node->name, &node->info, &launch, &ranks.items, &ranks.n, err);
	return r < 0 ? r : walk->node(walk->arg, &node->info, ranks.items, ranks.n, err);
}

/* Takes places. */
static int walk_places(struct state *s, const struct who *who, struct place *places,
		       size_t n_places, const struct dryrun_walk *walk, struct mo_error *err)
{
	const struct job *j = job_with_places(s, who, places, n_places);

	for (size_t i = 0; i < n_places; i++) {
		const struct place *p = &j->run.places[i];

		if (p->first_rank + p->n_ranks <= walk->from ||
		    (walk->to != MO_NONE && p->first_rank >= walk->to))
			continue;
		int r = one_node(s, j, i, walk, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A state of the same nodes, on which nothing runs: they are borrowed, because thousands of them
 * are more than all else together. */
static void borrow_nodes(struct state *copy, const struct state *s)
{
	mo_desc_init(&state_desc, copy);
	copy->nodes = s->nodes;
	copy->n_nodes = s->n_nodes;
	copy->next_job = s->next_job;
	copy->next_port = s->next_port;
}

static void give_back(struct state *copy)
{
	copy->nodes = NULL;
	copy->n_nodes = 0;
}

MO_DEFINE_DONE(state)

static int dry_run(const struct state *s, const struct who *who, const struct dryrun_walk *walk,
		   struct mo_error *err)
{
	const struct submit *spec = who->spec;
	_cleanup_(state_done) struct state idle = { 0 }, free_cluster = { 0 };
	struct place *places = NULL;
	struct state *found = &idle;
	enum dryrun_placed placed = DRYRUN_NOW;
	size_t n = 0;

	if (!walk->large && spec->recipe.gpus > MO_DRYRUN_RANKS_MAX)
		return mo_error_set(err, -E2BIG,
				    "%lld ranks are more than the %d that one document shows; try "
				    "with --set cluster.gpus=%d",
				    (long long)spec->recipe.gpus, MO_DRYRUN_RANKS_MAX,
				    MO_DRYRUN_RANKS_MAX);
	mo_desc_init(&state_desc, &free_cluster);
	borrow_nodes(&idle, s);
	int r = place_find(s, &spec->recipe, &places, &n, NULL);
	if (r > 0) {
		placed = DRYRUN_IDLE;
		r = place_find(&idle, &spec->recipe, &places, &n, NULL);
	}
	if (r > 0) {
		placed = DRYRUN_EXAMPLE;
		dryrun_cluster(&spec->recipe, &free_cluster);
		found = &free_cluster;
		r = place_find(found, &spec->recipe, &places, &n, err);
	}
	if (r > 0)
		r = mo_error_set(err, -EINVAL, "no cluster of this shape can hold the job");
	if (r == 0) {
		place_processes(&spec->engine, places, n);
		r = walk_places(found, who, places, n, walk, err);
	}
	give_back(&idle);
	return r < 0 ? r : (int)placed;
}

int dryrun_walk(const struct state *s, const struct submit *spec, const struct dryrun_walk *walk,
		struct mo_error *err)
{
	const struct who who = { spec, MO_MAX(s->next_job, 1), 1, DRY_PORT };

	return dry_run(s, &who, walk, err);
}

int dryrun_walk_job(const struct state *s, const struct job *j, const struct dryrun_walk *walk,
		    struct mo_error *err)
{
	const struct who who = { &j->spec, j->id, MO_MAX(j->attempt, 1),
				 j->run.port > 0 ? j->run.port : DRY_PORT };

	return dry_run(s, &who, walk, err);
}
