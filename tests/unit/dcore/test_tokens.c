/* Tokens: joining, trading, renewing; what an expired one still may. */
#include "tests/unit/dcore/world.h"

#include <stdio.h>
#include <string.h>

#define DAY (86400LL * S)

static size_t n_of(const struct world *w, const char *user)
{
	size_t n = 0;

	for (size_t i = 0; i < core_state(w->core)->n_tokens; i++)
		n += mo_streq(core_state(w->core)->tokens[i].user, user);
	return n;
}

static bool has(const struct world *w, const char *id)
{
	for (size_t i = 0; i < core_state(w->core)->n_tokens; i++)
		if (mo_streq(core_state(w->core)->tokens[i].id, id))
			return true;
	return false;
}

/* nodes: of a join token, else MO_NONE. The status of the answer. */
static int make(struct world *w, const char *id, const char *role, const char *user, const char *from, int64_t nodes)
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
	world_step(w, &(struct core_event){ .type = EV_TOKEN, .token = &t, .request = 1, .user = from ? NULL : "root", .via = from ? NULL : "socket" });
	mo_desc_done(&token_desc, &t);
	return w->reply_status;
}

static void use(struct world *w, const char *id)
{
	world_step(w, &(struct core_event){ .type = EV_TOKEN_USED, .text = id });
}

static int drop(struct world *w, const char *id)
{
	world_step(w, &(struct core_event){ .type = EV_TOKEN_REVOKE, .text = id, .request = 1, .user = "ada", .via = "token 12345678" });
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
	assert_non_null(strstr(core_state(w.core)->events[core_state(w.core)->n_events - 1].message, "ada (token 12345678) revoked token t1"));
	world_crash(&w);
	assert_false(has(&w, "t1"));
	assert_int_equal(drop(&w, "t1"), 404);
	world_done(&w);
}

/* As many nodes as it was made for; a node that lost the answer asks again and takes no place of another; a node's name that is in use is not given twice. */
static void join(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	assert_int_equal(make(&w, "j", "join", NULL, NULL, 2), 201);
	assert_int_equal(make(&w, "a1", "agent", "a", "j", MO_NONE), 201);
	assert_true(world_event_seen(&w, "audit.token_joined"));
	assert_int_equal(make(&w, "a2", "agent", "a", "j", MO_NONE), 201);   /* the first answer was lost */
	assert_int_equal(n_of(&w, "a"), 1);
	assert_true(has(&w, "a2"));
	use(&w, "a2");
	assert_int_equal(make(&w, "a3", "agent", "a", "j", MO_NONE), 409);   /* another machine of this name, or a thief */
	assert_non_null(strstr(w.reply_text, "moectl token revoke a2"));
	world_crash(&w);
	assert_int_equal(make(&w, "b1", "agent", "b", "j", MO_NONE), 201);
	assert_int_equal(make(&w, "c1", "agent", "c", "j", MO_NONE), 403);
	assert_non_null(strstr(w.reply_text, "2 nodes"));
	assert_int_equal(make(&w, "d1", "agent", "d", "gone", MO_NONE), 403);
	assert_int_equal(drop(&w, "a2"), 200);
	assert_int_equal(make(&w, "a4", "agent", "a", "j", MO_NONE), 201);   /* the operator said that it is the same machine */
	world_done(&w);
}

/* The old one is good until its node speaks with the new one, and then for nothing. */
static void renewal(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	make(&w, "j", "join", NULL, NULL, 1);
	make(&w, "t1", "agent", "a", "j", MO_NONE);
	use(&w, "t1");
	assert_int_equal(make(&w, "t2", "agent", "a", "t1", MO_NONE), 201);
	assert_int_equal(make(&w, "t3", "agent", "a", "t1", MO_NONE), 201);  /* lost, or not written to its disk */
	assert_true(has(&w, "t1") && !has(&w, "t2") && has(&w, "t3"));
	use(&w, "t3");
	world_crash(&w);
	assert_true(!has(&w, "t1") && has(&w, "t3") && has(&w, "j"));
	assert_int_equal(n_of(&w, "a"), 1);
	assert_int_equal(make(&w, "x", "agent", "b", "t3", MO_NONE), 403);   /* not for another node */
	use(&w, "t3");                                                       /* again: nothing */
	assert_int_equal(n_of(&w, "a"), 1);
	world_done(&w);
}

/* The token of a local cluster, which is for any node there, stays; who trades it again gets a new one. */
static void unbound(void **state)
{
	struct world w;

	world_init(&w, 1, 1);
	make(&w, "any", "agent", NULL, NULL, MO_NONE);
	assert_int_equal(make(&w, "t1", "agent", "a", "any", MO_NONE), 201);
	use(&w, "t1");
	assert_int_equal(make(&w, "t2", "agent", "a", "any", MO_NONE), 201); /* its state directory was lost */
	use(&w, "t2");
	assert_true(has(&w, "any"));
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
	assert_true(has(&w, "old"));                                         /* still listed, as expired */
	world_tick(&w, 2 * DAY);
	make(&w, "n2", "user", "ada", NULL, MO_NONE);
	assert_true(!has(&w, "old") && has(&w, "node"));                     /* an agent's may still speak for its node */
	world_done(&w);
}

/* A job trains on through expiry, over restarts of controller and agent; nothing new starts there; a stop is obeyed; a good token ends it. */
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
	world_verb(&w, EV_CANCEL, job);
	world_run(&w, 3 * S);
	assert_int_equal(world_job(&w, job)->state, JOB_CANCELLED);
	w.toys[0].token_expired = false;
	world_run(&w, 3 * S);
	assert_true(world_event_seen(&w, "node.token_good"));
	assert_int_equal(world_job(&w, waits)->state, JOB_RUNNING);
	world_done(&w);
}

/* Placed before it expired and not yet taken: it is not sent, `why` says so, and it can be cancelled. */
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
		cmocka_unit_test(revoked), cmocka_unit_test(join), cmocka_unit_test(renewal), cmocka_unit_test(unbound), cmocka_unit_test(forgotten), cmocka_unit_test(expired),
		cmocka_unit_test(expired_before_launch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
