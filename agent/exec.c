/* `moectl exec`: what the controller asks becomes the file exec.ID.ask in the step's directory and
 * an order to the step's supervisor, which takes the file away and leaves exec.ID.json when the
 * command is over (agent/stepd/exec.c). An agent that is started meanwhile is asked again by the
 * controller, and finds it there. Nothing of the command runs in this process or below it. */
#include "agent/exec.h"

#include <errno.h>
#include <string.h>

#include "agent/link.h"
#include "agent/step_talk.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "lib/model/exec.h"
#include "lib/wire/encode.h"

#define POLL_US 50000
#define SAY_AGAIN_US 2000000 /* the order: the supervisor may not have been heard of yet */
#define TAKE_US 7000000      /* within which a supervisor that knows such orders takes it */
#define SLACK_US 10000000    /* after the deadline of the command */
#define RESULT_BYTES_MAX (8 * 1024 * 1024)
#define EXECS_MAX 64

struct exec {
	struct command *command;
	char *ask, *result;
	int64_t said_us, take_us, end_us;
};
struct execs {
	struct manager *m;
	struct mo_timer *timer;
	struct exec items[EXECS_MAX];
	size_t n;
};

static void answer(struct execs *x, const struct command *c, const char *error, char *text)
{
	struct query_answer a;

	mo_desc_init(&query_answer_desc, &a);
	a.node = mo_strdup(x->m->config->node);
	a.query = c->query;
	a.error = mo_strdup(error);
	a.text = text;
	a.end = true;
	link_answer(x->m->link, &a);
	mo_desc_done(&query_answer_desc, &a);
}

static void remove_exec(struct execs *x, struct exec *e)
{
	mo_desc_free(&command_desc, e->command);
	free(e->ask);
	free(e->result);
	*e = x->items[--x->n];
}

static void say(struct execs *x, struct exec *e)
{
	struct step_dir *d = step_dir_find(x->m, e->command->job, e->command->attempt);

	e->said_us = mo_clock_boot_us();
	if (d)
		step_talk_order(d, &(struct stepd_order){ .cmd = (char *)"exec",
							  .signal = MO_NONE,
							  .grace_us = MO_NONE,
							  .exec = e->command->query });
}

/* Why nothing will come of it; NULL: it may. */
static const char *lost(struct execs *x, struct exec *e, int64_t now)
{
	const struct step_dir *d = step_dir_find(x->m, e->command->job, e->command->attempt);

	if (!d || d->gone)
		return "the step has ended, and the command with it";
	if (d->lock_fd >= 0)
		return "the step lost its supervisor, and the command ends with it";
	/* whoever removes the question first has it */
	if (now >= e->take_us && mo_remove_at(AT_FDCWD, e->ask, 0) == 0)
		return "the step's supervisor does not take the command: it hangs, or it is older "
		       "than the agent of its node, and the job's next attempt has one that does";
	return now >= e->end_us ? "nothing was heard of the command after its deadline" : NULL;
}

/* True when it was answered. */
static bool try_answer(struct execs *x, struct exec *e)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t now = mo_clock_boot_us();

	/* in this order: a result of a step that just ended counts */
	const char *why = lost(x, e, now);
	int r = mo_read_file(e->result, RESULT_BYTES_MAX, &b);
	if (r == 0 || why) {
		answer(x, e->command, r == 0 ? NULL : why, r == 0 ? mo_buf_take(&b) : NULL);
		return true;
	}
	if (now >= e->said_us + SAY_AGAIN_US && mo_access(e->ask, F_OK) == 0)
		say(x, e);
	return false;
}

static void on_timer(void *arg)
{
	struct execs *x = arg;

	for (size_t i = x->n; i-- > 0;)
		if (try_answer(x, &x->items[i]))
			remove_exec(x, &x->items[i]);
	if (x->n > 0)
		mo_timer_in(x->timer, POLL_US);
}

static int leave_ask(const struct exec *e)
{
	const struct command *c = e->command;
	const struct exec_ask ask = {
		.rank = c->rank,
		.argv = c->argv,
		.n_argv = c->n_argv,
		.deadline_ms = c->wait_ms,
	};
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(&exec_ask_desc, &ask, &b);
	return mo_write_file(e->ask, b.data, b.len, 0600, false);
}

static bool is_asked(const struct execs *x, int64_t query)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->items[i].command->query == query)
			return true;
	return false;
}

static void take(struct execs *x, const struct command *c)
{
	const struct step_dir *d = step_dir_find(x->m, c->job, c->attempt);
	int64_t now = mo_clock_boot_us();

	if (!d || x->n == EXECS_MAX) {
		answer(x, c,
		       d ? "too many commands run on this node; try again"
			 : "the node does not have this step",
		       NULL);
		return;
	}
	struct exec *e = &x->items[x->n++];
	int64_t ms = MO_MIN(MO_MAX(c->wait_ms, 0), EXEC_DEADLINE_MAX_MS);

	*e = (struct exec){ .command = mo_desc_dup(&command_desc, c),
			    .ask = mo_path(d->path, "exec.%lld.ask", (long long)c->query),
			    .result = mo_path(d->path, "exec.%lld.json", (long long)c->query),
			    .take_us = now + TAKE_US,
			    .end_us = now + ms * 1000 + SLACK_US };
	int r = mo_access(e->result, F_OK) == 0 ? 0 : leave_ask(e);
	if (r < 0) {
		_cleanup_(mo_freep) char *why = mo_printf("%s: %s", e->ask, strerror(-r));

		answer(x, c, why, NULL);
		remove_exec(x, e);
		return;
	}
	say(x, e);
	mo_timer_in(x->timer, POLL_US);
}

bool exec_query(struct execs *x, const struct command *c)
{
	if (!mo_streq(c->what, EXEC_WHAT))
		return false;
	if (!is_asked(x, c->query))
		take(x, c);
	return true;
}

int execs_new(struct manager *m, struct execs **ret)
{
	struct execs *x = mo_alloc(sizeof(*x));
	int r = mo_timer_new(m->loop, on_timer, x, &x->timer);

	x->m = m;
	if (r < 0)
		execs_free(x);
	else
		*ret = x;
	return r;
}

struct execs *execs_free(struct execs *x)
{
	if (!x)
		return NULL;
	while (x->n > 0)
		remove_exec(x, &x->items[x->n - 1]);
	mo_timer_free(x->timer);
	free(x);
	return NULL;
}
