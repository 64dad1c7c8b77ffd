/* What nodes have and what runs on it. GET /v1/nodes/{name}/topology: drawn, an SVG for people's
 * pages, a text tree for terminals. GET /v1/cluster/topology: of all nodes, as data. */
#include "daemon/api_topology.h"

#include <string.h>

#include "daemon/api.h"
#include "daemon/core/view/draw_node.h"
#include "daemon/core/state/slot_health.h"
#include "daemon/core/view/draw_node_svg.h"
#include "daemon/core/view/topology.h"

#define COLUMNS_MAX 400
#define NODES_MAX 256 /* of one answer: 8 GPUs each are 400 kB */

struct uses {
	struct slot_use *items;
	size_t n;
};

static void uses_done(struct uses *u)
{
	for (size_t i = 0; i < u->n; i++)
		free((char *)u->items[i].text);
	free(u->items);
}

/* Which rank of which job is on which slot. */
static void uses_find(const struct state *s, const char *node, struct uses *u)
{
	for (size_t i = 0; i < state_n_holders(s); i++) {
		const struct job *j = state_holder(s, i);
		const struct place *p = j ? place_of(j, node) : NULL;
		for (size_t k = 0; p && k < p->n_gpus; k++) {
			struct slot_use *use = MO_GROW(u->items, u->n);
			use->slot = p->gpus[k];
			use->text = mo_printf("j-%lld rank %lld", (long long)j->id,
					      (long long)place_rank(p, k));
		}
	}
}

struct troubles {
	struct slot_trouble *items;
	size_t n;
	char **notes;
	size_t n_notes;
};

static void troubles_done(struct troubles *t)
{
	for (size_t i = 0; i < t->n; i++)
		free((char *)t->items[i].text);
	free(t->items);
	for (size_t i = 0; i < t->n_notes; i++)
		free(t->notes[i]);
	free(t->notes);
}

/* Slots whose GPU is missing, cannot be read or has a critical finding, and who uses them. */
static void troubles_find(const struct node *n, const struct uses *u, struct troubles *t)
{
	for (size_t i = 0; i < n->info.n_gpus; i++) {
		const struct gpu_slot *g = &n->info.gpus[i];
		struct slot_health h;
		const char *use = NULL;

		if (!slot_health(n, g->index, &h) || !slot_matters(&h))
			continue;
		for (size_t k = 0; k < u->n && !use; k++)
			use = u->items[k].slot == g->index ? u->items[k].text : NULL;
		struct slot_trouble *trouble = MO_GROW(t->items, t->n);
		*trouble = (struct slot_trouble){ .slot = g->index,
						  .missing = h.missing,
						  .text = slot_health_words(&h) };
		_cleanup_(mo_freep) char *note =
			mo_printf("GPU %lld %s: %s: %s%s%s", (long long)g->index, g->bdf,
				  trouble->text, h.finding->text ? h.finding->text : "",
				  use ? "; used by " : "", use ? use : "");
		mo_strs_add(&t->notes, &t->n_notes, note);
	}
}

void api_nodes_topology(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct node *n = api_node(m, r);
	const char *format = http_query(r, "format");
	_cleanup_(uses_done) struct uses uses = { 0 };
	_cleanup_(troubles_done) struct troubles troubles = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t width;

	if (!n || !api_int(r, "width", 40, COLUMNS_MAX, 100, &width))
		return;
	if (format && strcmp(format, "svg") != 0 && strcmp(format, "text") != 0) {
		http_problem(r, 400, "format: must be svg or text");
		return;
	}
	uses_find(manager_state(m), n->name, &uses);
	troubles_find(n, &uses, &troubles);
	struct node_drawing d = {
		.name = n->name,
		.state = mo_enum_name(node_state_names, _NODE_STATE_N, node_shown_state(n)),
		.info = &n->info,
		.uses = uses.items,
		.n_uses = uses.n,
		.troubles = troubles.items,
		.n_troubles = troubles.n,
		.notes = (const char *const *)troubles.notes,
		.n_notes = troubles.n_notes,
		.width = (int)width,
	};
	bool text = format && strcmp(format, "text") == 0;
	(text ? draw_node_text : draw_node_svg)(&d, &b);
	http_reply(r, 200, text ? "text/plain; charset=utf-8" : "image/svg+xml", b.data, b.len,
		   (const char *const[]){ "Cache-Control: no-cache", NULL });
}

void api_cluster_topology(void *arg, struct http_request *r)
{
	const struct state *s = manager_state(arg);
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	struct topology_view v;

	if (!list_start(r, &l))
		return;
	l.limit = MO_MIN(l.limit, NODES_MAX);
	for (size_t i = 0; i < s->n_nodes; i++) {
		if (after && strcmp(s->nodes[i]->name, after) <= 0)
			continue;
		if (!list_room(&l))
			break;
		mo_desc_init(&topology_view_desc, &v);
		topology_view(s, s->nodes[i], &v);
		list_add(&l, &topology_view_desc, &v, v.name);
		mo_desc_done(&topology_view_desc, &v);
	}
	list_send(r, &l);
}
