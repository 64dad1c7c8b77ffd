/* What links do to the messages of agents and to their answers: those are lost, late (by minutes,
 * too), doubled, played again long after; a connection is reset at any byte, so that who sent hears
 * so and who reads has nothing; or what was read by then is taken for all of it, as behind somebody
 * who closes the rest in good order. Such a piece must be refused (control.c, network.c).
 * Partitions have ways: what a node says is lost, or what it would hear, or both. */
#include "tests/sim/sim.h"

#include <string.h>

#define OLDEST_S 300 /* what is played again is no older */

/* From the first byte to before the last. */
static size_t piece(struct sim *s, size_t n)
{
	return n ? (size_t)sim_random(s) % n : 0;
}

static int64_t some_delay(struct sim *s, int node)
{
	int64_t delay = sim_between(s, 50, 3 * MS);

	if (sim_fault(s, F_DELAY, 0.01))
		delay = sim_between(s, 5 * MS, 9 * S);
	else if (sim_fault(s, F_DELAY_MINUTES, 0.0005))
		delay = sim_between(s, 10 * S, 240 * S);
	if (delay > 3 * MS)
		sim_trouble(s, node);
	return delay;
}

static void again(struct sim *s, const struct message *m, int64_t after)
{
	struct message *copy = mo_alloc(sizeof(*copy));

	*copy = *m;
	copy->request = ++s->ctl.request; /* its answer goes nowhere */
	copy->text = mo_strndup(m->text, m->n);
	copy->token = mo_strdup(m->token);
	sim_at(s, s->now + after, K_MESSAGE, 0, 0, copy, NULL);
}

/* Its sender hears that the connection is gone. */
static void reset(struct sim *s, int kind, int node, int64_t request, int64_t instance,
		  int64_t after)
{
	struct answer *a = mo_alloc(sizeof(*a));

	*a = (struct answer){
		.kind = kind, .node = node, .request = request, .instance = instance
	};
	sim_at(s, s->now + after, K_ANSWER, node, 0, a, NULL);
}

void wire_request(struct sim *s, struct message *m)
{
	const struct simnode *n = &s->nodes[m->node];

	token_swap(s, m);
	if (n->mute_until > s->now || sim_fault(s, F_LOSE_REQUEST, 0.004)) {
		sim_trouble(s, m->node);
		message_free(m);
		return;
	}
	int64_t delay = some_delay(s, m->node);

	if (sim_fault(s, F_RESET_REQUEST, 0.002)) {
		sim_trouble(s, m->node);
		reset(s, m->kind, m->node, m->request, m->instance, delay);
		message_free(m);
		return;
	}
	if (sim_fault(s, F_DUPLICATE, 0.005))
		again(s, m, sim_between(s, MS, 15 * S));
	if (sim_fault(s, F_OLD_REQUEST, 0.002))
		again(s, m, sim_between(s, 15 * S, OLDEST_S * S));
	if (sim_fault(s, F_CUT_REQUEST, 0.002)) {
		sim_trouble(s, m->node);
		m->n = piece(s, m->n);
		m->text[m->n] = '\0';
		m->cut = true;
	}
	sim_at(s, s->now + delay, K_MESSAGE, 0, 0, m, NULL);
}

/* Repetition is harmless, says the protocol. */
static void old_answer(struct sim *s, const struct answer *a)
{
	struct answer *copy = mo_alloc(sizeof(*copy));

	*copy = *a;
	copy->old = true;
	copy->text = mo_strndup(a->text, a->n);
	sim_at(s, s->now + sim_between(s, MS, 60 * S), K_ANSWER, a->node, 0, copy, NULL);
}

void wire_answer(struct sim *s, struct answer *a)
{
	if (s->nodes[a->node].deaf_until > s->now || sim_fault(s, F_LOSE_REPLY, 0.004)) {
		sim_trouble(s, a->node);
		answer_free(a);
		return;
	}
	int64_t delay = some_delay(s, a->node);

	if (a->text && strstr(a->text, "\"commands\":[{") && sim_fault(s, F_OLD_REPLY, 0.02))
		old_answer(s, a);
	if (a->status && sim_fault(s, F_RESET_ANSWER, 0.002)) {
		sim_trouble(s, a->node);
		reset(s, a->kind, a->node, a->request, a->instance, delay);
		answer_free(a);
		return;
	}
	if (a->status / 100 == 2 && sim_fault(s, F_CUT_ANSWER, 0.002)) {
		sim_trouble(s, a->node);
		a->n = piece(s, a->n);
		a->text[a->n] = '\0';
		a->cut = true;
	}
	sim_at(s, s->now + delay, K_ANSWER, a->node, 0, a, NULL);
}
