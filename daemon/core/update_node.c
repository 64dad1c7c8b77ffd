/* update.c's part for nodes: the four record types that change a node. Called by core_update() only. */
#include "daemon/core/inner.h"

#include <errno.h>
#include <string.h>

/* Nodes stand in name order; their live parts move along. */
static struct node *node_insert(struct core *c, const char *name)
{
	struct state *s = &c->state;
	size_t n_lives = s->n_nodes, at = 0;

	MO_GROW(c->lives, n_lives);
	MO_ADD(s, nodes, &node_desc);
	while (at < s->n_nodes - 1 && strcmp(s->nodes[at].name, name) < 0)
		at++;
	memmove(&s->nodes[at + 1], &s->nodes[at], (s->n_nodes - 1 - at) * sizeof(*s->nodes));
	memmove(&c->lives[at + 1], &c->lives[at], (s->n_nodes - 1 - at) * sizeof(*c->lives));
	mo_desc_init(&node_desc, &s->nodes[at]);
	memset(&c->lives[at], 0, sizeof(c->lives[at]));
	s->nodes[at].name = mo_strdup(name);
	return &s->nodes[at];
}

/* What is replaced by something else cannot come back. */
static void remember(char ***past, size_t *n, const char *old, const char *new)
{
	if (!old || mo_streq(old, new))
		return;
	mo_strs_add(past, n, old);
	if (*n <= PAST_MAX)
		return;
	free((*past)[0]);
	memmove(*past, *past + 1, --*n * sizeof(**past));
}

int update_node(struct core *c, const struct record *r)
{
	const struct agent_hello *h = r->hello;
	struct node *n;

	if (!h || !h->node || !h->boot_id)
		return -EINVAL;
	n = node_find(&c->state, h->node);
	if (!n) {
		n = node_insert(c, h->node);
		n->registered_at = r->time;
		n->state = NODE_UP;
	}
	remember(&n->past_boots, &n->n_past_boots, n->boot_id, h->boot_id);
	remember(&n->past_instances, &n->n_past_instances, n->instance, h->instance);
	if (!mo_streq(n->instance, h->instance)) {
		struct live *l = core_live(c, h->node);

		l->last_beat = 0;
		l->told = 0;
	}
	mo_str_set(&n->boot_id, h->boot_id);
	mo_str_set(&n->instance, h->instance);
	mo_str_set(&n->version, h->version);
	mo_str_set(&n->address, h->address);
	n->protocol = h->protocol;
	mo_desc_copy(&nodeinfo_desc, &n->info, &h->info);
	n->heard_at = r->time;
	n->reconciled = true;
	c->queue_dirty = true;
	return 0;
}

static void count_steps(struct core *c, const char *node, const struct live *l, int sign)
{
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_find(&c->state, l->jobs[i]);
		const struct step *st = j ? step_find(j, j->attempt, node) : NULL;

		if (st)
			step_count(c, j, st, sign);
	}
}

/* Ranks of a silent node are shown as lost; their job looks again at what that means. */
int update_node_state(struct core *c, const struct record *r)
{
	struct node *n = node_find(&c->state, r->node);
	struct live *l = core_live(c, r->node);

	if (!n || r->value < NODE_UP || r->value > NODE_DOWN)
		return -EINVAL;
	count_steps(c, r->node, l, -1);
	n->state = (int)r->value;
	count_steps(c, r->node, l, 1);
	mo_str_set(&n->reason, r->text);
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_find(&c->state, l->jobs[i]);
		struct step *st = j ? step_find(j, j->attempt, r->node) : NULL;

		core_touch(c, l->jobs[i]);
		for (int64_t k = st ? st->first_rank : 0; st && k < st->first_rank + st->n_ranks && (size_t)k < j->n_ranks; k++) {
			struct rank *rank = &j->ranks[k];

			if (rank->state == RANK_RUNNING && n->state == NODE_DOWN)
				rank->state = RANK_LOST;
			else if (rank->state == RANK_LOST && n->state == NODE_UP)
				rank->state = RANK_RUNNING;
		}
	}
	c->queue_dirty = true;
	return 0;
}

int update_drain(struct core *c, const struct record *r)
{
	struct node *n = node_find(&c->state, r->node);
	struct live *l = core_live(c, r->node);

	if (!n)
		return -EINVAL;
	c->n_draining -= n->drain && !n->drained;
	if (r->value == 1) {
		n->drained = true;
		return 0;
	}
	c->n_draining += r->flag;
	for (size_t i = 0; i < l->n_jobs; i++) {
		struct job *j = job_find(&c->state, l->jobs[i]);

		if (j && place_of(j, r->node))
			j->n_drained += r->flag - n->drain;
	}
	n->drain = r->flag;
	n->drained = false;
	n->drain_at = r->flag ? r->time : MO_NONE;
	mo_str_set(&n->drain_when, r->cause);
	mo_str_set(&n->reason, r->text);
	for (size_t i = 0; i < l->n_jobs; i++)
		core_touch(c, l->jobs[i]);
	c->queue_dirty = true;
	return 0;
}

int update_strange(struct core *c, const struct record *r)
{
	struct node *n = node_find(&c->state, r->node);

	if (!n)
		return -EINVAL;
	n->strange_steps = r->flag;
	c->queue_dirty = true;
	return 0;
}
