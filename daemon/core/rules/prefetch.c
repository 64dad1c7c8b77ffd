/* See prefetch.h. As with a job, the first node that can says which image the name means, and the
 * others are asked for that one. An order has an end: each node has the image, has failed, or the
 * time is over. */
#include "daemon/core/rules/prefetch.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/images.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/update/wake.h"
#include "lib/base/buf.h"

#define LASTS_US (12 * 3600 * 1000000LL) /* as moe-agent lets one moe-image be */
#define AT_ONCE_MAX 16
#define KEPT_MAX 64 /* those that ended too */
#define TRIES_MAX 3 /* of a node, when what went wrong may pass */

static void forget(struct core *c, size_t i)
{
	prefetch_free(c->prefetches[i]);
	memmove(&c->prefetches[i], &c->prefetches[i + 1],
		(c->n_prefetches - i - 1) * sizeof(*c->prefetches));
	c->n_prefetches--;
}

void prefetches_clear(struct core *c)
{
	while (c->n_prefetches > 0)
		forget(c, c->n_prefetches - 1);
	free(c->prefetches);
	c->prefetches = NULL;
}

void prefetches_shift(struct core *c, int64_t shift)
{
	for (size_t i = 0; i < c->n_prefetches; i++) {
		struct prefetch *p = c->prefetches[i];

		p->until += shift;
		p->ended_at += p->ended_at == MO_NONE ? 0 : shift;
	}
}

const struct prefetch *prefetch_at(const struct core *c, size_t i)
{
	return i < c->n_prefetches ? c->prefetches[i] : NULL;
}

const struct prefetch *prefetch_find(const struct core *c, int64_t id)
{
	for (size_t i = 0; i < c->n_prefetches; i++)
		if (c->prefetches[i]->id == id)
			return c->prefetches[i];
	return NULL;
}

/* Room for one more. False: as many go on as may. */
static bool make_room(struct core *c)
{
	size_t going = 0;

	for (size_t i = 0; i < c->n_prefetches; i++)
		going += c->prefetches[i]->ended_at == MO_NONE;
	for (size_t i = 0; i < c->n_prefetches && c->n_prefetches >= KEPT_MAX;)
		if (c->prefetches[i]->ended_at != MO_NONE)
			forget(c, i);
		else
			i++;
	return going < AT_ONCE_MAX;
}

static void add_node(struct prefetch *p, const char *node)
{
	struct prefetch_node *n = MO_GROW(p->nodes, p->n_nodes);

	*n = (struct prefetch_node){ .node = mo_strdup(node), .done = MO_NONE, .size = MO_NONE };
}

static bool has_node(const struct prefetch *p, const char *node)
{
	for (size_t i = 0; i < p->n_nodes; i++)
		if (mo_streq(p->nodes[i].node, node))
			return true;
	return false;
}

/* false after the refusal */
static bool choose_nodes(struct turn *t, struct prefetch *p)
{
	const struct in_prefetch *in = t->input->prefetch;
	const struct state *s = &t->core->state;

	for (size_t i = 0; i < in->n_nodes; i++) {
		if (!node_find(s, in->nodes[i])) {
			turn_reply(t, 404, MO_NONE, "node %s: no such node; see 'moectl nodes'",
				   in->nodes[i]);
			return false;
		}
		if (!has_node(p, in->nodes[i]))
			add_node(p, in->nodes[i]);
	}
	for (size_t i = 0; in->n_nodes == 0 && i < s->n_nodes; i++)
		if (s->nodes[i]->state != NODE_DOWN)
			add_node(p, s->nodes[i]->name);
	if (p->n_nodes == 0)
		turn_reply(t, 409, MO_NONE, "no node is up that could bring an image");
	return p->n_nodes > 0;
}

static void tell_begun(struct turn *t, const struct prefetch *p)
{
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };

	data_str(&data, "user", p->user);
	data_str(&data, "via", t->input->by.via);
	data_str(&data, "image", p->order.image);
	data_int(&data, "nodes", (int64_t)p->n_nodes);
	event_emit(t, EVENT_IMAGE_PULLING, MO_NONE, NULL, MO_NONE, MO_NONE, data_end(&data),
		   "%s has image %s brought to %zu node%s", p->user ? p->user : "somebody",
		   p->order.image, p->n_nodes, p->n_nodes == 1 ? "" : "s");
}

void prefetch_begin(struct turn *t)
{
	const struct in_prefetch *in = t->input->prefetch;
	struct core *c = t->core;

	if (!make_room(c)) {
		turn_reply(t, 429, MO_NONE,
			   "%d images are being brought for people already; wait for one to end",
			   AT_ONCE_MAX);
		return;
	}
	struct prefetch *p = mo_desc_new(&prefetch_desc);

	p->order = (struct image_order){ .image = mo_strdup(in->image), .pull = PULL_MISSING };
	p->user = mo_strdup(t->input->by.user);
	if (in->auth_file) {
		p->order.user = mo_strdup(t->input->by.user);
		p->order.auth_file = mo_strdup(in->auth_file);
		p->order.allow_root = in->allow_root;
	}
	p->until = t->now + LASTS_US;
	if (!choose_nodes(t, p)) {
		prefetch_free(p);
		return;
	}
	p->id = ++c->n_prefetched;
	*MO_GROW(c->prefetches, c->n_prefetches) = p;
	c->queue_dirty = true;
	tell_begun(t, p);
	turn_reply(t, 202, p->id, NULL);
}

static void fail(struct prefetch_node *n, const char *why)
{
	n->state = PREFETCH_FAILED;
	mo_str_set(&n->error, why);
}

/* Why it will never have the image; NULL: it may. */
static const char *hopeless(const struct turn *t, const struct prefetch *p,
			    const struct prefetch_node *n)
{
	const struct node *node = node_find(&t->core->state, n->node);
	const struct live *l = live_of(t->core, n->node);

	if (!node || node->state == NODE_DOWN)
		return "the node is down";
	if (l->last_beat > 0 && !l->brings)
		return "its agent brings no images: it is of an older version, or its node cannot "
		       "run them";
	return t->now >= p->until ? "it was not there within 12 h" : NULL;
}

static void end(struct turn *t, struct prefetch *p)
{
	const struct prefetch_node *bad = NULL;
	_cleanup_(mo_buf_done) struct mo_buf data = { 0 };
	int64_t failed = 0;

	for (size_t i = p->n_nodes; i-- > 0;)
		if (p->nodes[i].state == PREFETCH_FAILED) {
			bad = &p->nodes[i];
			failed++;
		}
	p->ended_at = t->now;
	data_str(&data, "image", p->order.image);
	data_str(&data, "digest", p->order.digest);
	data_int(&data, "nodes", (int64_t)p->n_nodes);
	if (!bad) {
		event_emit(t, EVENT_IMAGE_READY, MO_NONE, NULL, MO_NONE, MO_NONE, data_end(&data),
			   "%zu node%s ha%s %s, which is %s", p->n_nodes,
			   p->n_nodes == 1 ? "" : "s", p->n_nodes == 1 ? "s" : "ve", p->order.image,
			   p->order.digest);
		return;
	}
	data_int(&data, "failed", failed);
	event_emit(t, EVENT_IMAGE_FAILED, MO_NONE, bad->node, MO_NONE, MO_NONE, data_end(&data),
		   "%lld of %zu nodes have not got image %s; %s: %s", (long long)failed, p->n_nodes,
		   p->order.image, bad->node, bad->error);
}

static const struct image_report *report_of(const struct live *l, const struct prefetch *p)
{
	for (size_t i = 0; i < l->n_images; i++)
		if (image_answers(&l->images[i], &p->order))
			return &l->images[i];
	return NULL;
}

/* True: it is asked from now on, or was before. */
static bool ask(struct turn *t, struct prefetch *p, struct prefetch_node *n)
{
	struct live *l = core_live(t->core, n->node);
	const struct image_report *r = report_of(l, p);

	if (!l->brings || !images_may_ask(t, l, r && r->ready))
		return false;
	ids_add(&l->prefetches, &l->n_prefetches, p->id);
	n->state = PREFETCH_BRINGING;
	wake_node(t->core, n->node);
	return true;
}

static void pass(struct turn *t, struct prefetch *p)
{
	bool first = true, over = true;

	for (size_t i = 0; i < p->n_nodes; i++) {
		struct prefetch_node *n = &p->nodes[i];
		const char *why = prefetch_node_over(n) ? NULL : hopeless(t, p, n);

		if (why)
			fail(n, why);
		if (prefetch_node_over(n))
			continue;
		over = false;
		if (p->order.digest || first)
			first = !ask(t, p, n) && first;
	}
	if (over)
		end(t, p);
	else
		turn_deadline(t, p->until);
}

void prefetch_pass(struct turn *t)
{
	for (size_t i = 0; i < t->core->n_prefetches; i++)
		if (t->core->prefetches[i]->ended_at == MO_NONE)
			pass(t, t->core->prefetches[i]);
}

/* True: others may be asked now. */
static bool heard(struct prefetch *p, struct prefetch_node *n, const struct image_report *r)
{
	bool resolved = !p->order.digest && image_digest_valid(r->digest);

	n->done = r->done;
	n->size = r->total;
	n->unpacking = r->unpacking;
	mo_str_set(&n->error, r->error);
	if (resolved)
		p->order.digest = mo_strdup(r->digest);
	if (r->ready && p->order.digest)
		n->state = PREFETCH_READY;
	else if (r->error && (r->refused || r->tries >= TRIES_MAX))
		n->state = PREFETCH_FAILED;
	return resolved || prefetch_node_over(n);
}

void prefetch_heard(struct turn *t, const char *node, bool news)
{
	struct live *l = core_live(t->core, node);

	for (size_t i = 0; i < t->core->n_prefetches; i++) {
		struct prefetch *p = t->core->prefetches[i];
		const struct image_report *r = report_of(l, p);

		for (size_t k = 0; k < p->n_nodes && p->ended_at == MO_NONE; k++) {
			struct prefetch_node *n = &p->nodes[k];

			if (!mo_streq(n->node, node) || prefetch_node_over(n))
				continue;
			if (n->state == PREFETCH_WAITING)
				t->core->queue_dirty |= news || !l->brings;
			else if (n->state == PREFETCH_BRINGING && r)
				t->core->queue_dirty |= heard(p, n, r);
		}
	}
}
