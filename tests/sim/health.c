/* In place of agent/health.c, as far as agent/link.c asks it: what a node finds of itself. */
#include "agent/health.h"

#include "daemon/core/state/health.h"
#include "tests/sim/shell.h"

static void add_health(struct sim *s, struct simnode *n, struct agent_sync *sync)
{
	size_t retained = 0;

	if (!n->health.preflight_done && n->looked_at <= s->now) {
		n->health.preflight_done = true;
		n->health.version++;
	}
	for (size_t i = 0; i < n->n_orders; i++) {
		if (n->orders[i].done_at > s->now) {
			n->orders[retained++] = n->orders[i];
			continue;
		}
		*MO_ADD(&n->health, checked, &checked_attempt_desc) =
			(struct checked_attempt){ n->orders[i].job, n->orders[i].attempt };
		n->health.version++;
	}
	n->n_orders = retained;
	if (n->health.version != n->health_acked)
		sync->health = mo_desc_dup(&node_health_desc, &n->health);
}

void health_reply(struct sim *s, struct simnode *n, const struct sync_reply *r)
{
	size_t retained = 0;

	n->health_acked = r->health;
	for (size_t i = 0; i < r->n_commands; i++) {
		const struct command *c = &r->commands[i];
		bool known = c->kind != CMD_CHECK || health_checked(&n->health, c->job, c->attempt);

		for (size_t k = 0; k < n->n_orders; k++)
			known |= n->orders[k].job == c->job && n->orders[k].attempt == c->attempt;
		if (!known)
			*MO_GROW(n->orders, n->n_orders) = (struct order){
				c->job, c->attempt,
				s->now + (sim_fault(s, F_CHECK_LATE, 0.2)
						  ? 100 * S
						  : sim_between(s, 50 * MS, 5 * S))
			};
	}
	if (n->health_acked != n->health.version)
		return;
	for (size_t i = 0; i < n->health.n_checked; i++) {
		bool repeated = false;

		for (size_t k = 0; k < r->n_commands; k++)
			repeated |= r->commands[k].kind == CMD_CHECK &&
				    r->commands[k].job == n->health.checked[i].job &&
				    r->commands[k].attempt == n->health.checked[i].attempt;
		if (repeated)
			n->health.checked[retained++] = n->health.checked[i];
	}
	n->health.version += n->health.n_checked != retained;
	n->health.n_checked = retained;
}

void node_finding(struct sim *s, int node, const char *check, int action)
{
	struct node_health *h = &s->nodes[node].health;
	struct check_result *r;

	if (health_find(h, check, "gpu0"))
		return;
	r = MO_ADD(h, results, &check_result_desc);
	r->check = mo_strdup(check);
	r->object = mo_strdup("gpu0");
	r->text = mo_strdup("broken");
	r->state = CHECK_CRIT;
	r->action = action;
	r->when = WHEN_PREFLIGHT | WHEN_PERIODIC | WHEN_FAILURE;
	h->version++;
}

void node_well(struct sim *s, int node)
{
	struct node_health *h = &s->nodes[node].health;

	if (h->n_results)
		h->version++;
	mo_vec_clear(&check_result_desc, (void **)&h->results, &h->n_results);
}

void watch_sync(struct watch *w, struct agent_sync *sync)
{
	add_health(w->shell->sim, shell_node(w->shell), sync);
}

void watch_urgent(struct watch *w, struct agent_sync *sync)
{
	watch_sync(w, sync);
}

bool watch_doubts(const struct watch *w)
{
	return false;
}
