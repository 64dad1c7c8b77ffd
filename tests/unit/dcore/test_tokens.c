/* Tokens: joining, trading, renewing; what an expired one still may. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>

#include "daemon/core/state/token.h"

#define DAY (86400LL * S)

static size_t n_of(const struct world *w, const char *user)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_tokens; i++)
		n += mo_streq(core_state(w->core)->tokens[i].user, user) &&
		     !core_state(w->core)->tokens[i].revoked;
	return n;
}

static bool has(const struct world *w, const char *id)
{
	for (size_t i = 0; i < core_state(w->core)->n_tokens; i++)
		if (mo_streq(core_state(w->core)->tokens[i].id, id) &&
		    !core_state(w->core)->tokens[i].revoked)
			return true;
	return false;
}

/* nodes: of a join token, else MO_NONE. The status of the answer. */
static int make(struct world *w, const char *id, const char *role, const char *user,
		const char *from, int64_t nodes)
{
	struct token t;

	mo_desc_init(&token_desc, &t);
	t.id = mo_strdup(id);
	t.role = mo_strdup(role);
	t.user = mo_strdup(user);
	t.from = mo_strdup(from);
	t.nodes = nodes;
	t.created_at = w->now;
	t.expires_at = w->now + 30 * DAY;
	world_step(w, &(struct core_input){ .type = IN_TOKEN,
					    .token = &t,
					    .request = 1,
					    .by = { .user = (char *)(from ? NULL : "root"),
						    .via = (char *)(from ? NULL : "socket") } });
	mo_desc_done(&token_desc, &t);
	return w->reply_status;
}

static void use(struct world *w, const char *id)
{
	world_step(w, &(struct core_input){ .type = IN_TOKEN_USED,
					    .token_id = &(struct in_token_id){ (char *)id } });
}

/* Node a has joined with token j, and speaks with this one. */
static void joined(struct world *w, const char *id, int64_t nodes)
{
	world_init(w, 1, 1);
	make(w, "j", "join", NULL, NULL, nodes);
	assert_int_equal(make(w, id, "agent", "a", "j", MO_NONE), 201);
	use(w, id);
}

static int drop(struct world *w, const char *id)
{
	world_step(w, &(struct core_input){
			      .type = IN_TOKEN_REVOKE,
			      .token_id = &(struct in_token_id){ (char *)id },
			      .request = 1,
			      .by = { .user = (char *)"ada", .via = (char *)"token 12345678" } });
	return w->reply_status;
}

static void revoked(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	assert_int_equal(make(&w, "t1", "user", "ada", NULL, MO_NONE), 201);
	assert_true(world_event_seen(&w, "audit.token_created"));
	assert_int_equal(drop(&w, "t1"), 200);
	assert_true(world_event_seen(&w, "audit.token_revoked"));
	assert_non_null(strstr(core_state(w.core)->events[core_state(w.core)->n_events - 1].message,
			       "ada (token 12345678) revoked token t1"));
	world_crash(&w);
	assert_false(has(&w, "t1"));
	assert_int_equal(drop(&w, "t1"), 404);
	world_done(&w);
}

/* As many nodes as it was made for; a node that lost the answer asks again and takes no place of
 * another; a node's name that is in use is not given twice. */
static void join(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	assert_int_equal(make(&w, "j", "join", NULL, NULL, 2), 201);
	assert_int_equal(make(&w, "a1", "agent", "a", "j", MO_NONE), 201);
	assert_true(world_event_seen(&w, "audit.token_joined"));
	/* the first answer was lost */
	assert_int_equal(make(&w, "a2", "agent", "a", "j", MO_NONE), 201);
	assert_int_equal(n_of(&w, "a"), 1);
	assert_true(has(&w, "a2"));
	use(&w, "a2");
	/* another machine of this name, or a thief */
	assert_int_equal(make(&w, "a3", "agent", "a", "j", MO_NONE), 409);
	assert_non_null(strstr(w.reply_text, "moectl token revoke a2"));
	world_crash(&w);
	assert_int_equal(make(&w, "b1", "agent", "b", "j", MO_NONE), 201);
	assert_int_equal(make(&w, "c1", "agent", "c", "j", MO_NONE), 403);
	assert_non_null(strstr(w.reply_text, "2 nodes"));
	assert_int_equal(make(&w, "d1", "agent", "d", "gone", MO_NONE), 403);
	make(&w, "j2", "join", NULL, NULL, 5);
	make(&w, "e1", "agent", "e", NULL, MO_NONE);
	/* it was made for that node, which is not there yet */
	assert_int_equal(make(&w, "e2", "agent", "e", "j2", MO_NONE), 409);
	world_done(&w);
}

/* Who revokes a node's token puts the node out: what was made for it before brings it back by no
 * way; a new decision does. */
static void put_out(void **state)
{
	struct world w;

	joined(&w, "a1", 5);
	make(&w, "any", "agent", NULL, NULL, MO_NONE);
	make(&w, "b1", "agent", "b", "j", MO_NONE);
	world_tick(&w, S);
	assert_int_equal(drop(&w, "a1"), 200);
	assert_int_equal(drop(&w, "a1"), 404);
	assert_int_equal(make(&w, "a2", "agent", "a", "j", MO_NONE), 403);
	assert_non_null(
		strstr(w.reply_text,
		       "its token was revoked after join token j was made: make a new one"));
	world_crash(&w);
	assert_int_equal(make(&w, "a2", "agent", "a", "j", MO_NONE), 403);
	/* whenever that was made: no person did it for this node */
	assert_int_equal(make(&w, "a2", "agent", "a", "any", MO_NONE), 403);
	assert_true(has(&w, "b1"));
	/* other names are as they were */
	assert_int_equal(make(&w, "c1", "agent", "c", "j", MO_NONE), 201);
	world_tick(&w, S);
	make(&w, "j2", "join", NULL, NULL, 1);
	assert_int_equal(make(&w, "a3", "agent", "a", "j2", MO_NONE), 201);
	/* a thief's still is not */
	assert_int_equal(make(&w, "a4", "agent", "a", "j", MO_NONE), 403);
	use(&w, "a3");
	world_tick(&w, S);
	assert_int_equal(drop(&w, "a3"), 200);
	assert_int_equal(make(&w, "a5", "agent", "a", "j2", MO_NONE), 403);
	assert_int_equal(make(&w, "a6", "agent", "a", NULL, MO_NONE), 201); /* by hand */
	world_done(&w);
}

/* What was renewed from a revoked token goes with it, and what it was renewed from: who held one
 * held the other. */
static void revoked_chain(void **state)
{
	struct world w;

	joined(&w, "a1", 5);
	world_tick(&w, DAY);
	assert_int_equal(make(&w, "a2", "agent", "a", "a1", MO_NONE), 201);
	assert_int_equal(drop(&w, "a1"), 200);
	assert_true(!has(&w, "a1") && !has(&w, "a2") && has(&w, "j"));
	assert_non_null(strstr(core_state(w.core)->events[core_state(w.core)->n_events - 1].message,
			       "and a2, its other"));
	make(&w, "b1", "agent", "b", "j", MO_NONE);
	use(&w, "b1");
	world_tick(&w, DAY);
	assert_int_equal(make(&w, "b2", "agent", "b", "b1", MO_NONE), 201);
	assert_int_equal(drop(&w, "b2"), 200);
	assert_true(!has(&w, "b1") && !has(&w, "b2"));
	/* of a join token nothing else goes: nodes that joined keep theirs */
	make(&w, "c1", "agent", "c", "j", MO_NONE);
	assert_int_equal(drop(&w, "j"), 200);
	assert_true(has(&w, "c1"));
	world_done(&w);
}

/* A name that was put out is remembered for as long as there is something that could bring it
 * back. */
static void out_for_as_long(void **state)
{
	struct world w;
	char id[8];

	world_init(&w, 1, 1);
	make(&w, "j", "join", NULL, NULL, 5);
	for (int i = 0; i < 3; i++) {
		world_tick(&w, S);
		snprintf(id, sizeof(id), "hand%d", i);
		make(&w, id, "agent", "a", NULL, MO_NONE);
		assert_int_equal(drop(&w, id), 200);
	}
	assert_int_equal(core_state(w.core)->n_tokens, 2); /* of one name once */
	assert_int_equal(drop(&w, "j"), 200);
	assert_int_equal(core_state(w.core)->n_tokens, 0);
	world_done(&w);
}

/* Ids are short and drawn by chance. */
static void same_id(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	make(&w, "t1", "user", "ada", NULL, MO_NONE);
	assert_int_equal(make(&w, "t1", "admin", "bob", NULL, MO_NONE), 503);
	assert_int_equal(n_of(&w, "bob"), 0);
	make(&w, "j", "join", NULL, NULL, 1);
	make(&w, "a1", "agent", "a", NULL, MO_NONE);
	drop(&w, "a1");
	/* a name's that is out */
	assert_int_equal(make(&w, "a1", "user", "ada", NULL, MO_NONE), 503);
	world_done(&w);
}

/* An answer may be lost a few times; a node that trades all the time is stopped, but not one whose
 * time has come. */
static void trades_are_few(void **state)
{
	struct world w;
	char id[8];
	int n = 0;

	world_init(&w, 1, 1);
	make(&w, "j", "join", NULL, NULL, 1);
	for (int i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "u%d", i);
		n += make(&w, id, "agent", "a", "j", MO_NONE) == 201;
	}
	assert_in_range(n, 3, 10);
	assert_int_equal(w.reply_status, 429);
	world_tick(&w, 120 * S);
	assert_int_equal(make(&w, "t1", "agent", "a", "j", MO_NONE), 201);
	use(&w, "t1");
	/* it was just made, and used */
	assert_int_equal(make(&w, "t2", "agent", "a", "t1", MO_NONE), 429);
	world_crash(&w);
	assert_int_equal(make(&w, "t2", "agent", "a", "t1", MO_NONE), 429);
	world_tick(&w, DAY);
	assert_int_equal(make(&w, "t2", "agent", "a", "t1", MO_NONE), 201);
	world_done(&w);
}

/* The old one is good until its node speaks with the new one, and then for nothing. */
static void renewal(void **state)
{
	struct world w;

	joined(&w, "t1", 1);
	world_tick(&w, DAY);
	assert_int_equal(make(&w, "t2", "agent", "a", "t1", MO_NONE), 201);
	/* lost, or not written to its disk */
	assert_int_equal(make(&w, "t3", "agent", "a", "t1", MO_NONE), 201);
	assert_true(has(&w, "t1") && !has(&w, "t2") && has(&w, "t3"));
	use(&w, "t3");
	world_crash(&w);
	assert_true(!has(&w, "t1") && has(&w, "t3") && has(&w, "j"));
	assert_int_equal(n_of(&w, "a"), 1);
	/* not for another node */
	assert_int_equal(make(&w, "x", "agent", "b", "t3", MO_NONE), 403);
	use(&w, "t3"); /* again: nothing */
	assert_int_equal(n_of(&w, "a"), 1);
	world_done(&w);
}

/* The token of a local cluster, which is for any node there, stays; who trades it again gets a new
 * one. */
static void unbound(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	make(&w, "any", "agent", NULL, NULL, MO_NONE);
	assert_int_equal(make(&w, "t1", "agent", "a", "any", MO_NONE), 201);
	use(&w, "t1");
	world_tick(&w, DAY);
	/* its state directory was lost */
	assert_int_equal(make(&w, "t2", "agent", "a", "any", MO_NONE), 201);
	assert_true(has(&w, "t1"));
	use(&w, "t2");
	/* a copy of what was lost is worth nothing */
	assert_true(has(&w, "any") && !has(&w, "t1"));
	world_tick(&w, 15 * DAY);
	assert_int_equal(make(&w, "t3", "agent", "a", "t2", MO_NONE), 201);
	assert_int_equal(n_of(&w, "a"), 2);
	world_done(&w);
}

/* A person made one for the node, as it had lost its own: that one keeps its name no longer. */
static void made_for_node(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	joined(&w, "t1", 1);
	make(&w, "p", "agent", "a", NULL, MO_NONE);
	assert_true(has(&w, "t1"));
	use(&w, "p");
	assert_true(!has(&w, "t1") && has(&w, "p"));
	assert_int_equal(make(&w, "t2", "agent", "a", "p", MO_NONE), 201);
	world_done(&w);
}

static void forgotten(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	make(&w, "old", "user", "ada", NULL, MO_NONE);
	make(&w, "node", "agent", "a", NULL, MO_NONE);
	world_tick(&w, 59 * DAY);
	make(&w, "n1", "user", "ada", NULL, MO_NONE);
	/* still listed, as expired */
	assert_true(has(&w, "old"));
	world_tick(&w, 2 * DAY);
	make(&w, "n2", "user", "ada", NULL, MO_NONE);
	/* an agent's may still speak for its node */
	assert_true(!has(&w, "old") && has(&w, "node"));
	world_done(&w);
}

/* A trade forgets what expired long ago, and tokens behind it move: that an answer was lost is
 * counted by what its own node traded, not by the token that came to that place. */
static void forgotten_at_trade(void **state)
{
	struct world w;
	const struct token *a2;

	world_init(&w, 1, 1);
	make(&w, "old", "user", "ada", NULL, MO_NONE);
	world_tick(&w, 59 * DAY);
	make(&w, "j", "join", NULL, NULL, 2);
	assert_int_equal(make(&w, "a1", "agent", "a", "j", MO_NONE), 201); /* lost */
	assert_int_equal(make(&w, "b1", "agent", "b", "j", MO_NONE), 201);
	use(&w, "b1");
	world_tick(&w, 2 * DAY);
	assert_true(has(&w, "old"));
	assert_int_equal(make(&w, "a2", "agent", "a", "j", MO_NONE), 201);
	assert_false(has(&w, "old"));
	a2 = token_find(core_state(w.core), "a2");
	assert_non_null(a2);
	assert_int_equal(a2->tries, 1);
	world_done(&w);
}

/* A job trains on through expiry, over restarts of controller and agent; nothing new starts there;
 * a stop is obeyed; a good token ends it. */
static void expired(void **state)
{
	struct world w;
	int64_t job, waits;

	world_init(&w, 1, 2);
	job = world_submit_gpus(&w, 1);
	world_run(&w, 2 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_RUNNING);
	w.toys[0].token_expired = true;
	world_run(&w, 2 * S);
	assert_true(world_event_seen(&w, "node.token_expired"));
	assert_int_equal(world_node(&w, 0)->state, NODE_UP);
	waits = world_submit_gpus(&w, 1);
	world_crash(&w);
	snprintf(w.toys[0].instance, sizeof(w.toys[0].instance), "again");
	world_hello(&w, 0);
	world_run(&w, 5 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_RUNNING);
	assert_int_equal(world_job(&w, job)->attempt, 1);
	assert_int_equal(world_job(&w, waits)->state, JOB_QUEUED);
	assert_int_equal(world_count(&w, 0, CMD_LAUNCH), 1);
	world_why_has(&w, waits, "its token has expired");
	world_verb(&w, IN_CANCEL, job);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_CANCELLED);
	w.toys[0].token_expired = false;
	world_run(&w, 3 * S);
	assert_true(world_event_seen(&w, "node.token_good"));
	assert_int_equal(world_job(&w, waits)->state, JOB_RUNNING);
	world_done(&w);
}

/* Placed before it expired and not yet taken: it is not sent, `why` says so, and it can be
 * cancelled. */
static void expired_before_launch(void **state)
{
	struct world w;
	int64_t job;

	world_init(&w, 1, 2);
	w.toys[0].deaf = true;
	job = world_submit_gpus(&w, 1);
	assert_int_equal(world_job(&w, job)->state, JOB_STARTING);
	w.toys[0].deaf = false;
	w.toys[0].token_expired = true;
	world_run(&w, 3 * S);
	assert_int_equal(world_count(&w, 0, CMD_LAUNCH), 0);
	world_why_has(&w, job, "its token has expired");
	w.toys[0].token_expired = false;
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_RUNNING);
	assert_int_equal(world_count(&w, 0, CMD_LAUNCH), 1);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(revoked),
		cmocka_unit_test(join),
		cmocka_unit_test(renewal),
		cmocka_unit_test(unbound),
		cmocka_unit_test(made_for_node),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(forgotten_at_trade),
		cmocka_unit_test(expired),
		cmocka_unit_test(expired_before_launch),
		cmocka_unit_test(put_out),
		cmocka_unit_test(revoked_chain),
		cmocka_unit_test(out_for_as_long),
		cmocka_unit_test(same_id),
		cmocka_unit_test(trades_are_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
