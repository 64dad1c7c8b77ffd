/* See images.h. */
#include "daemon/images.h"

#include <stdio.h>
#include <string.h>

#include "daemon/agent_link.h"
#include "daemon/api.h"
#include "daemon/core/core.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/prefetch.h"
#include "lib/model/limits.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define AT_ONCE_MAX 16

struct image_question {
	int64_t id;
	uint64_t request;
	char *what, **nodes;
	size_t n_nodes;
	size_t waiting; /* nodes that have not answered */
	struct images_view view;
};
struct image_questions {
	struct image_question *items[AT_ONCE_MAX];
	size_t n;
	int64_t n_asked;
};
/* One node's part of it. */
struct part {
	struct manager *manager;
	int64_t id;
	char node[MO_LONGEST_NAME + 1];
};

static const struct mo_field image_silence_fields[] = {
	MO_D(image_silence, node, MO_STR, "name of the node"),
	MO_D(image_silence, why, MO_STR, "why nothing is known of it"),
};
static const struct mo_desc image_silence_desc = MO_DESC(image_silence, image_silence_fields);

static const struct mo_field images_view_fields[] = {
	MO_D_VEC(images_view, items, &image_stored_desc, "the images, by node"),
	MO_D(images_view, next, MO_STR, "null: there is one page"),
	MO_D_VEC(images_view, unasked, &image_silence_desc, "nodes of which nothing is known"),
	MO_D_APART(images_view, pulls, &prefetch_desc,
		   "images that people have brought to nodes, the newest last"),
};
const struct mo_desc images_view_desc = MO_DESC(images_view, images_view_fields);

void image_questions_new(struct manager *m)
{
	m->image_questions = mo_alloc(sizeof(*m->image_questions));
}

static void forget(struct image_questions *all, size_t i)
{
	struct image_question *q = all->items[i];

	all->items[i] = all->items[--all->n];
	mo_desc_done(&images_view_desc, &q->view);
	mo_strs_clear(&q->nodes, &q->n_nodes);
	free(q->what);
	free(q);
}

struct image_questions *image_questions_free(struct image_questions *q)
{
	while (q && q->n > 0)
		forget(q, q->n - 1);
	free(q);
	return NULL;
}

static size_t place(const struct image_questions *all, int64_t id)
{
	size_t i = 0;

	while (i < all->n && all->items[i]->id != id)
		i++;
	return i;
}

int64_t image_questions_add(struct manager *m, uint64_t request, const char *what,
			    char *const *nodes, size_t n_nodes)
{
	struct image_questions *all = m->image_questions;

	if (all->n == AT_ONCE_MAX)
		return 0;
	struct image_question *q = all->items[all->n++] = mo_alloc(sizeof(*q));

	q->id = ++all->n_asked;
	q->request = request;
	q->what = mo_strdup(what);
	for (size_t i = 0; i < n_nodes; i++)
		mo_strs_add(&q->nodes, &q->n_nodes, nodes[i]);
	mo_desc_init(&images_view_desc, &q->view);
	return q->id;
}

void image_questions_drop(struct manager *m, int64_t id)
{
	size_t i = place(m->image_questions, id);

	if (i < m->image_questions->n)
		forget(m->image_questions, i);
}

static int by_node(const void *a, const void *b)
{
	const struct image_stored *x = a, *y = b;
	int r = strcmp(x->node, y->node);

	return r ? r : strcmp(x->digest ? x->digest : "", y->digest ? y->digest : "");
}

/* Nobody has such an image, and nobody was silent. */
static bool is_nowhere(const struct image_question *q)
{
	return q->what && q->view.n_items == 0 && q->view.n_unasked == 0;
}

static void answer(struct manager *m, struct image_question *q)
{
	struct http_request *r = http_find(m->http, q->request);
	struct images_view *v = &q->view;
	const struct prefetch *p;

	if (!r)
		return;
	if (is_nowhere(q)) {
		http_problem(r, 404, "image %s: no node has it; see 'moectl image list'", q->what);
		return;
	}
	if (v->n_items > 0)
		qsort(v->items, v->n_items, sizeof(*v->items), by_node);
	for (size_t i = 0; !q->what && (p = prefetch_at(m->core, i)); i++)
		*MO_GROW(v->pulls, v->n_pulls) = (struct prefetch *)p;
	api_send_doc(r, 200, &images_view_desc, v);
	free(v->pulls);
	v->pulls = NULL;
	v->n_pulls = 0;
}

static void silent(struct image_question *q, const char *node, const char *why)
{
	struct image_silence *s = MO_ADD(&q->view, unasked, &image_silence_desc);

	s->node = mo_strdup(node);
	s->why = mo_strdup(why);
}

/* One line of a node; false: it cannot be read. */
static bool read_line(const struct part *p, struct image_question *q, const char *line, size_t n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct image_stored *i = MO_ADD(&q->view, items, &image_stored_desc);

	if (wire_decode(&image_stored_desc, line, n, false, i, &err) < 0) {
		mo_desc_done(&image_stored_desc, i);
		q->view.n_items--;
		return false;
	}
	mo_str_set(&i->node, p->node);
	mo_strs_clear(&i->jobs, &i->n_jobs);
	images_jobs(p->manager->core, p->node, i->digest, &i->jobs, &i->n_jobs);
	return true;
}

static void read_answer(const struct part *p, struct image_question *q, const char *text)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	bool ok = wire_affordable(text, strlen(text), &err) >= 0;

	for (const char *end; ok && (end = strchr(text, '\n')); text = end + 1)
		ok = read_line(p, q, text, (size_t)(end - text));
	if (!ok)
		silent(q, p->node, "what it says of its images cannot be read");
}

static void over_one(struct manager *m, size_t i)
{
	struct image_question *q = m->image_questions->items[i];

	if (--q->waiting > 0)
		return;
	answer(m, q);
	forget(m->image_questions, i);
}

static void on_answer(void *arg, const struct query_answer *a, const char *why)
{
	const struct part *p = arg;
	size_t i = place(p->manager->image_questions, p->id);

	if (i == p->manager->image_questions->n)
		return;
	struct image_question *q = p->manager->image_questions->items[i];

	if (!a || a->error)
		silent(q, p->node, a ? a->error : why);
	else
		read_answer(p, q, a->text ? a->text : "");
	over_one(p->manager, i);
}

static void ask_node(struct manager *m, struct image_question *q, const char *node)
{
	const struct node *n = node_find(manager_state(m), node);
	const char *why = !n                      ? "there is no such node"
			  : n->state == NODE_DOWN ? "it is down"
			  : images_known(m->core, node)
				  ? NULL
				  : "its agent is of an older version, or its node runs no images";

	if (why) {
		silent(q, node, why);
		return;
	}
	struct part *p = mo_alloc(sizeof(*p));
	const struct command c = { .what = (char *)(q->what ? IMAGES_REMOVE_WHAT : IMAGES_WHAT),
				   .dir = q->what };

	p->manager = m;
	p->id = q->id;
	snprintf(p->node, sizeof(p->node), "%s", node);
	q->waiting++;
	link_query_image(m, node, &c, on_answer, p);
}

void image_questions_ask(struct manager *m, int64_t id)
{
	size_t i = place(m->image_questions, id);
	const struct state *s = manager_state(m);

	if (i == m->image_questions->n)
		return;
	struct image_question *q = m->image_questions->items[i];

	q->waiting = 1; /* this function */
	for (size_t k = 0; k < q->n_nodes; k++)
		ask_node(m, q, q->nodes[k]);
	for (size_t k = 0; q->n_nodes == 0 && k < s->n_nodes; k++)
		ask_node(m, q, s->nodes[k]->name);
	over_one(m, i);
}
