/* Tokens of nodes, which production's agents trade with production's controller (agent/token.c,
 * daemon/agent_tokens.c): who brings nodes in, what goes wrong with what they were given, and who
 * puts that right. Most begin with a join token of all, some with a local cluster's token of no
 * node. A node that is refused waits for a person, who is told by its log. */
#include "tests/sim/moed.h"

#include <string.h>

#include "daemon/core/state/token.h"
#include "tests/unit/seams/world.h"

#define REFUSED_US (10 * S) /* then a person looks */
#define HELP_US (60 * S)    /* and again */
#define TRADED_MAX 2        /* the one in use, and what it was traded for */

char *token_file(const struct simnode *n)
{
	return mo_printf("/%s/etc/token", n->name);
}

static void put(struct simnode *n, const char *text)
{
	_cleanup_(mo_freep) char *path = token_file(n);

	seam_put(path, text);
}

/* Node -1: for all. kind: "join" or "agent". */
static void ask(struct sim *s, int node, const char *kind)
{
	struct op *op = user_op(s, IN_TOKEN);

	op->node = node;
	op->when = kind;
	user_send(s, op);
}

void token_begin(struct sim *s)
{
	const char *of_none = seam_text(MOED_DIR "/agent.token");

	for (int n = 0; of_none && n < NODES; n++)
		if (((uint64_t)n + s->seed) % 4 == 0)
			put(&s->nodes[n], of_none);
	ask(s, -1, "join");
}

/* What a node keeps for its own: /NODE/state/agent.token. */
static void forget_own(struct simnode *n)
{
	static const char *const names[] = { "agent.token", "agent.token.before" };

	mo_str_set(&n->own_token, NULL);
	mo_str_set(&n->new_token, NULL);
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("/%s/state/%s", n->name, names[i]);

		seam_remove(path);
	}
}

void token_answer(struct sim *s, struct op *op, int status)
{
	if (op->type != IN_TOKEN || status != 201)
		return;
	for (int n = 0; n < NODES; n++) {
		_cleanup_(mo_freep) char *path = token_file(&s->nodes[n]);

		if (op->node != n && (op->node >= 0 || seam_exists(path)))
			continue;
		seam_put(path, op->secret);
		if (mo_streq(op->when, "agent"))
			forget_own(&s->nodes[n]);
	}
}

/* By the number of one that it has, all of a node's go. */
static bool revoke(struct sim *s, int node)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (size_t i = 0; i < st->n_tokens; i++)
		if (token_bound_to(&st->tokens[i], s->nodes[node].name)) {
			struct op *op = user_op(s, IN_TOKEN_REVOKE);

			op->node = node;
			snprintf(op->token, sizeof(op->token), "%s", st->tokens[i].id);
			user_send(s, op);
			return true;
		}
	return false;
}

bool token_mishap(struct sim *s, int fault)
{
	int n = (int)(sim_random(s) % NODES);

	/* a node that traded already trades such a one 600 s later: some seeds wait for that */
	if (fault == F_TOKEN_SHORT && s->seed % 16)
		return false;

	switch (fault) {
	case F_TOKEN_REVOKED: return revoke(s, n);
	case F_TOKEN_GONE: forget_own(&s->nodes[n]); return true;
	default: ask(s, n, "agent"); return true;
	}
}

static bool expired(const struct sim *s, int node)
{
	const struct node *n = node_find(core_state(s->ctl.shadow), s->nodes[node].name);

	return n && n->agent.token_expired;
}

void token_help(struct sim *s, double chance)
{
	for (int n = 0; n < NODES; n++) {
		struct simnode *node = &s->nodes[n];
		int64_t since = node->refused_since;
		bool waits = since ? s->now - since >= REFUSED_US : expired(s, n);

		if (!node->agent || !waits || node->helped_at > s->now - HELP_US ||
		    !sim_chance(s, chance))
			continue;
		s->fault_counts[F_TOKEN_HELP]++;
		/* the same machine with nothing of its own, or another: its name is in use */
		if (since && revoke(s, n))
			continue;
		ask(s, n, "join");
		node->helped_at = s->now;
	}
}

/* What was traded and never spoken with goes at the next trade: a node has no more than two. */
void token_check(struct sim *s)
{
	const struct state *st = core_state(s->ctl.shadow);

	for (int n = 0; n < NODES; n++) {
		int traded = 0;

		for (size_t i = 0; i < st->n_tokens; i++)
			traded += st->tokens[i].from &&
				  token_bound_to(&st->tokens[i], s->nodes[n].name);
		if (traded > TRADED_MAX)
			sim_violation(s, "%s has %d tokens that it traded", s->nodes[n].name,
				      traded);
	}
}

/* Its first word, as tokens are; NULL: there is none. Caller frees. */
static char *own(const struct simnode *n)
{
	_cleanup_(mo_freep) char *path = mo_printf("/%s/state/agent.token", n->name);
	const char *text = seam_text(path);

	return text ? mo_strndup(text, strcspn(text, "\n")) : NULL;
}

/* Whose first one was half written when its agent died is not followed before the next. */
static bool is_followed(const struct simnode *n)
{
	return n->own_token || n->new_token;
}

void token_spoken(struct simnode *n, const char *token)
{
	_cleanup_(mo_freep) char *kept = own(n);

	if (!is_followed(n) || !kept || !mo_streq(kept, token))
		return;
	mo_str_set(&n->own_token, kept);
	mo_str_set(&n->new_token, NULL);
}

void token_written(struct simnode *n, bool died)
{
	_cleanup_(mo_freep) char *there = own(n);

	if (!died || is_followed(n))
		mo_str_set(&n->new_token, there);
}

void token_check_kept(struct sim *s, struct simnode *n)
{
	_cleanup_(mo_freep) char *kept = own(n);

	if (!is_followed(n))
		return;
	if (n->own_token && !mo_streq(n->own_token, kept) &&
	    !(n->new_token && mo_streq(n->new_token, kept)))
		sim_violation(s, "%s has lost the token that it spoke with", n->name);
	mo_str_set(&n->own_token, kept);
	mo_str_set(&n->new_token, NULL);
}

void token_swap(struct sim *s, struct message *m)
{
	const struct simnode *other = &s->nodes[(m->node + 1) % NODES];

	if (!is_followed(other) || !sim_fault(s, F_TOKEN_FOREIGN, 0.001))
		return;
	m->foreign = true;
	free(m->token);
	m->token = mo_strdup(other->new_token ? other->new_token : other->own_token);
}

void token_heard(struct sim *s, const struct answer *a)
{
	struct simnode *n = &s->nodes[a->node];
	bool refused = a->status == 401 || a->status == 403 ||
		       (a->kind == M_TRADE && a->status / 100 == 4);

	s->fault_counts[F_TOKEN_TRADED] += a->status == 201 && !a->cut;
	s->fault_counts[F_TOKEN_REFUSED] += refused;
	if (refused)
		sim_trouble(s, a->node);
	if (refused && !n->refused_since)
		n->refused_since = s->now;
	if (a->status == 200)
		n->refused_since = 0;
}
