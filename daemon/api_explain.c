/* Explanations of a rank: its environment and its binding. The environment of a rank that was
 * started is what its node recorded; where the node cannot say (not started yet, forgotten,
 * down, silent for 2 s) it is what a launch would give, and `source` and `note` say so. */
#include "daemon/api_explain.h"

#include <string.h>
#include "agent/core/bind/env.h"
#include "agent/core/bind/env_record.h"
#include "agent/core/bind/explain.h"
#include "agent/core/bind/preview.h"
#include "daemon/agent_link.h"
#include "daemon/api.h"
#include "daemon/api_config.h"
#include "daemon/api_logs.h"
#include "daemon/core/rules/dryrun.h"
#include "daemon/core/rules/launch.h"
#include "daemon/quota.h"
#include "daemon/visible.h"
#include "lib/model/launch.h"
#include "lib/model/limits.h"
#include "lib/model/recipe.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

struct ranks {
	struct dryrun_rank *items;
	size_t n;
};
static void ranks_done(struct ranks *r)
{
	mo_vec_clear(&dryrun_rank_desc, (void **)&r->items, &r->n);
}
MO_DEFINE_DONE(launch)
MO_DEFINE_DONE(env_record)
struct items {
	struct env_item *items;
	size_t n;
};
static void items_done(struct items *i)
{
	mo_vec_clear(&env_item_desc, (void **)&i->items, &i->n);
}

/* The place of the current attempt that has the rank; NULL while the job has none. */
static const struct place *place_of_rank(const struct job *j, int64_t rank, size_t *ret_index)
{
	for (size_t i = 0; i < j->run.n_places; i++)
		if (rank >= j->run.places[i].first_rank &&
		    rank < j->run.places[i].first_rank + j->run.places[i].n_ranks) {
			*ret_index = i;
			return &j->run.places[i];
		}
	return NULL;
}

static int keep_ranks(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
		      size_t n, struct mo_error *err)
{
	struct ranks *retained = arg;

	for (size_t i = 0; i < n; i++)
		mo_desc_copy(&dryrun_rank_desc,
			     mo_vec_add(&dryrun_rank_desc, (void **)&retained->items, &retained->n),
			     &ranks[i]);
	return 0;
}

/* Ranks that share the rank's node in the current placement; of a dry run while the job has no
 * place. */
static int preview(struct manager *m, const struct job *j, int64_t rank, struct ranks *ret,
		   struct mo_error *err)
{
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = keep_ranks, .arg = ret, .from = rank, .to = rank + 1
	};
	const struct state *s = manager_state(m);
	size_t i = 0;
	const struct place *p = place_of_rank(j, rank, &i);
	const struct node *n = p ? node_find(s, p->node) : NULL;
	_cleanup_(launch_done) struct launch l;

	mo_desc_init(&launch_desc, &l);
	if (!n)
		return dryrun_walk_job(s, j, &walk, err);
	launch_make(s, j, i, &l);
	return preview_ranks(p->node, &n->info, &l, &ret->items, &ret->n, err);
}

/* Where the items come from; stands in front of them. placed_on: enum dryrun_placed of a
 * preview, -1 = it is none. Borrows its texts. */
struct explained_view {
	const char *source, *note;
	int placed_on;
};
static const struct mo_field explained_view_fields[] = {
	MO_D(explained_view, source, MO_STR,
	     "node: what the node recorded; preview: what a launch would give"),
	MO_D(explained_view, note, MO_STR, "what of it is guessed, and why"),
	MO_D_ENUM(explained_view, placed_on, dryrun_placed_names,
		  "of a preview before the job has nodes: which it is made for", .omit = true),
};
const struct mo_desc explained_view_desc = MO_DESC(explained_view, explained_view_fields);

/* What a preview shows that is no fact. */
static const char *placed_note(int placed)
{
	switch (placed) {
	case DRYRUN_IDLE: return "; it is placed as if nothing else ran on these nodes";
	case DRYRUN_EXAMPLE:
		return "; no nodes of this cluster can take the job, so this is an EXAMPLE: its "
		       "nodes, GPUs, CPUs, NUMA nodes and NICs are invented";
	default: return "";
	}
}

static void send_env(struct http_request *r, const struct explained_view *from,
		     const struct env_item *items, size_t n)
{
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	bool started = !after;

	if (!list_start_with(r, &l, &explained_view_desc, from))
		return;
	for (size_t i = 0; i < n; i++) {
		bool skip = !started;
		started |= after && strcmp(items[i].name, after) == 0;
		if (skip)
			continue;
		if (!list_room(&l))
			break;
		/* recorded by an earlier version, it may show more */
		struct env_item *shown = mo_desc_dup(&env_item_desc, &items[i]);
		env_hide(shown);
		list_add(&l, &env_item_desc, shown, shown->name);
		mo_desc_free(&env_item_desc, shown);
	}
	list_send(r, &l);
}

static void send_preview(struct manager *m, struct http_request *r, const struct job *j,
			 int64_t rank, const char *why)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(ranks_done) struct ranks ranks = { 0 };
	const struct dryrun_rank *k = NULL;

	if (j->let_go != MO_NONE && !j->spec.recipe_text && !j->spec.n_argv &&
	    job_state_final(j->state)) {
		_cleanup_(mo_freep) char *gone = api_let_go(j);
		http_problem(r, 410, "%s", gone);
		return;
	}
	int e = preview(m, j, rank, &ranks, &err);
	for (size_t i = 0; i < ranks.n && !k; i++)
		k = ranks.items[i].rank == rank ? &ranks.items[i] : NULL;
	if (!k) {
		http_problem(r, e < 0 ? 422 : 404, "rank %lld of job j-%lld: %s", (long long)rank,
			     (long long)j->id,
			     e < 0 ? mo_error_text(&err, e) : "there is no such rank");
		return;
	}
	_cleanup_(mo_freep) char *note =
		mo_printf("%s: this is what a launch gives; HOME, paths in the step's directory "
			  "and the end of MOE_STEP are guessed, interfaces%s are left out%s",
			  why,
			  j->spec.recipe.engine.container
				  ? " and the variables of the image, which come first,"
				  : "",
			  placed_note(e));
	const struct explained_view from = { "preview", note, e };

	send_env(r, &from, k->env, k->n_env);
}

/* ended: no place has that attempt any more. */
struct env_question {
	struct manager *manager;
	uint64_t request;
	int64_t job, rank, attempt;
	bool ended;
};

static void on_env(void *arg, const struct query_answer *a, const char *why)
{
	const struct env_question *q = arg;
	struct http_request *r = http_find(q->manager->http, q->request);
	const struct job *j = job_find(manager_state(q->manager), q->job);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(env_record_done) struct env_record record;
	_cleanup_(items_done) struct items items = { 0 };

	mo_desc_init(&env_record_desc, &record);
	if (!r)
		return;
	if (!j) {
		http_problem(r, 404, "job j-%lld is not known any more", (long long)q->job);
		return;
	}
	const char *problem = a ? a->error : why, *text = a && a->text ? a->text : "";
	size_t n = strlen(text);
	if (!problem && (wire_affordable(text, n, &err) < 0 ||
			 wire_decode(&env_record_desc, text, n, false, &record, &err) < 0))
		problem = "what the node recorded cannot be read";
	else if (!problem && !env_record_of(&record, q->rank, &items.items, &items.n))
		problem = "the node's record does not have this rank";
	if (problem) {
		send_preview(q->manager, r, j, q->rank, problem);
		return;
	}
	_cleanup_(mo_freep) char *note =
		q->ended ? mo_printf("attempt %lld has ended: this is what it was given",
				     (long long)q->attempt)
			 : NULL;

	const struct explained_view from = { "node", note, -1 };

	send_env(r, &from, items.items, items.n);
}

void api_job_env(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	size_t index;
	int64_t rank;

	if (!j || !visible_to(m, r, j, "environment") ||
	    !api_int(r, "rank", 0, INT64_MAX, 0, &rank))
		return;
	const struct place *p = place_of_rank(j, rank, &index);
	const char *where = p ? p->node : api_node_of(j, j->attempt, rank);
	const struct node *n = where ? node_find(manager_state(m), where) : NULL;

	if (!p && rank >= job_world(j)) {
		http_problem(r, 404, "rank %lld of job j-%lld: there is no such rank",
			     (long long)rank, (long long)j->id);
	} else if (!where) {
		send_preview(m, r, j, rank, "the job has no place now");
	} else if (!n || n->state == NODE_DOWN) {
		_cleanup_(mo_freep) char *why = mo_printf("node %s is down", where);
		send_preview(m, r, j, rank, why);
	} else if (quota_hold(m, r)) {
		struct env_question *q = mo_alloc(sizeof(*q));
		*q = (struct env_question){ m, http_id(r), j->id, rank, j->attempt, !p };
		http_hold(r);
		link_query_env(m, where, j->id, j->attempt, on_env, q);
	}
}

/* What of all ranks is asked for: one, or those above `after`. Whole nodes are explained, and no
 * more of them than one answer holds. */
struct views {
	struct bind_view *items;
	size_t n;
	int64_t rank, after;
};
static void views_done(struct views *v)
{
	mo_vec_clear(&bind_view_desc, (void **)&v->items, &v->n);
}

/* info: what the node is, NULL = nobody knows any more. */
static void add_node(const struct job *j, const struct nodeinfo *info, const struct rank *ranks,
		     size_t n, struct views *ret)
{
	int64_t first = ranks[0].rank, last = ranks[n - 1].rank;

	if (last > ret->after &&
	    (ret->rank == MO_NONE || (ret->rank >= first && ret->rank <= last)) &&
	    ret->n <= API_LIMIT_MAX)
		bind_explain(info, &j->spec.recipe.bind, ranks, n, &ret->items, &ret->n);
}

struct previewed {
	const struct job *job;
	struct views *views;
};

/* Ranks of a dry run look like ranks that were not read back. */
static int add_previewed(void *arg, const struct nodeinfo *info, const struct dryrun_rank *from,
			 size_t n, struct mo_error *err)
{
	const struct previewed *p = arg;
	_cleanup_(mo_freep) struct rank *ranks = mo_alloc_array(n, sizeof(*ranks));

	for (size_t k = 0; k < n; k++)
		ranks[k] = (struct rank){ .rank = from[k].rank,
					  .node = from[k].node,
					  .local_rank = from[k].local_rank,
					  .cpus = from[k].cpus,
					  .numa_node = from[k].numa_node,
					  .gpu = from[k].gpu,
					  .nic = from[k].nic,
					  .bind_verified = -1 };
	if (n)
		add_node(p->job, info, ranks, n, p->views);
	return 0;
}

/* One node of the rank, or as many as one answer holds. */
static int preview_views(const struct state *s, const struct job *j, struct views *v,
			 struct mo_error *err)
{
	struct previewed into = { j, v };
	int64_t from = v->rank != MO_NONE ? v->rank : MO_MIN(v->after, MO_RANKS_MAX) + 1;
	const struct dryrun_walk walk = { .ranks = preview_binds,
					  .node = add_previewed,
					  .arg = &into,
					  .from = from,
					  .to = from +
						(v->rank != MO_NONE ? 1 : API_LIMIT_MAX + 1) };

	return dryrun_walk_job(s, j, &walk, err);
}

/* Ranks of the current or last attempt, node by node. */
static void add_ranks(const struct state *s, const struct job *j, struct views *ret)
{
	for (size_t i = 0, n; i < j->run.n_ranks; i += n) {
		for (n = 1; i + n < j->run.n_ranks &&
			    mo_streq(j->run.ranks[i + n].node, j->run.ranks[i].node);
		     n++)
			;
		const struct node *node =
			j->run.ranks[i].node ? node_find(s, j->run.ranks[i].node) : NULL;

		add_node(j, node ? &node->info : NULL, &j->run.ranks[i], n, ret);
	}
}

void api_job_bind(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct state *s = manager_state(m);
	const struct job *j = api_job(m, r);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(views_done) struct views views = { 0 };
	_cleanup_(list_done) struct list l = { 0 };

	if (!j || !api_int(r, "rank", 0, INT64_MAX, MO_NONE, &views.rank) ||
	    !api_int(r, "after", 0, INT64_MAX, -1, &views.after))
		return;
	bool started = j->run.n_ranks > 0;
	int placed = -1;

	if (views.rank != MO_NONE && views.rank >= job_world(j)) {
		http_problem(r, 404, "rank %lld of job j-%lld: there is no such rank",
			     (long long)views.rank, (long long)j->id);
		return;
	}
	if (started) {
		add_ranks(s, j, &views);
	} else if ((placed = preview_views(s, j, &views, &err)) < 0) {
		http_problem(r, 422, "binding of job j-%lld: %s", (long long)j->id,
			     mo_error_text(&err, -1));
		return;
	}
	const char *where =
		placed == DRYRUN_NOW ? ": this is where it would go now" : placed_note(placed);
	_cleanup_(mo_freep) char *note =
		started ? NULL : mo_printf("the job was not started yet%s", where);
	const struct explained_view from = { started ? "node" : "preview", note, placed };

	if (!list_start_with(r, &l, &explained_view_desc, &from))
		return;
	for (size_t i = 0; i < views.n; i++) {
		if (views.items[i].rank <= views.after ||
		    (views.rank != MO_NONE && views.items[i].rank != views.rank))
			continue;
		if (!list_room(&l))
			break;
		list_add_numbered(&l, &bind_view_desc, &views.items[i], views.items[i].rank);
	}
	list_send(r, &l);
}
