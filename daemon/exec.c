/* See exec.h. A command is here from its request on, so that no more than EXEC_AT_ONCE of a job are
 * under way; its node is asked when its event is on the disk. */
#include "daemon/exec.h"

#include <string.h>

#include "daemon/agent_link.h"
#include "daemon/api_logs.h"
#include "daemon/core/core.h"
#include "lib/base/fd.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

#define EXECS_MAX 64
#define KEPT_US (10 * 60 * 1000000LL)
#define SLACK_MS 20000 /* for the way there and back, after the node's own patience */
#define ID_BYTES 8

struct execs {
	struct exec *items[EXECS_MAX];
	size_t n;
};

static const struct mo_field exec_fields[] = {
	MO_D(exec, id, MO_STR, "id of the command"),
	MO_D_ID(exec, job, job_prefix, "id of the job"),
	MO_D(exec, attempt, MO_INT, "number of the attempt"),
	MO_D(exec, rank, MO_INT, "number of the rank that it runs beside"),
	MO_D(exec, node, MO_STR, "name of the node"),
	MO_D(exec, user, MO_STR, "who asked for it"),
	MO_D_LIST(exec, command, MO_STRS, "the command and its arguments"),
	MO_D_SUB(exec, result, MO_OPT, &exec_result_desc, "what came of it; null: it runs"),
};
const struct mo_desc exec_desc = MO_DESC(exec, exec_fields);

void execs_new(struct manager *m)
{
	m->execs = mo_alloc(sizeof(*m->execs));
}

static void forget(struct execs *x, size_t i)
{
	mo_desc_free(&exec_desc, x->items[i]);
	x->items[i] = x->items[--x->n];
}

struct execs *execs_free(struct execs *x)
{
	while (x && x->n > 0)
		forget(x, x->n - 1);
	free(x);
	return NULL;
}

/* Those that are over for long; when there is no room, the one that is over for longest. */
static void make_room(struct execs *x)
{
	int64_t now = mo_clock_boot_us();
	size_t oldest = EXECS_MAX;

	for (size_t i = x->n; i-- > 0;)
		if (x->items[i]->result && x->items[i]->ended_at + KEPT_US < now)
			forget(x, i);
	for (size_t i = 0; i < x->n; i++)
		if (x->items[i]->result &&
		    (oldest == EXECS_MAX || x->items[i]->ended_at < x->items[oldest]->ended_at))
			oldest = i;
	if (x->n == EXECS_MAX && oldest < EXECS_MAX)
		forget(x, oldest);
}

struct exec *execs_add(struct manager *m, int64_t job, bool *ret_of_job)
{
	struct execs *x = m->execs;
	size_t of_job = 0;

	make_room(x);
	for (size_t i = 0; i < x->n; i++)
		of_job += x->items[i]->job == job && !x->items[i]->result;
	*ret_of_job = of_job >= EXEC_AT_ONCE;
	if (*ret_of_job || x->n == EXECS_MAX)
		return NULL;
	struct exec *e = x->items[x->n++] = mo_desc_new(&exec_desc);

	e->id = mo_random_hex(ID_BYTES);
	e->job = job;
	e->manager = m;
	return e;
}

static size_t place(const struct execs *x, const char *id)
{
	size_t i = 0;

	while (i < x->n && !mo_streq(x->items[i]->id, id))
		i++;
	return i;
}

const struct exec *execs_find(const struct manager *m, const char *id)
{
	size_t i = place(m->execs, id);

	return i < m->execs->n ? m->execs->items[i] : NULL;
}

static void over(struct exec *e, struct exec_result *result, const char *error)
{
	if (error)
		mo_str_set(&result->error, error);
	e->result = result;
	e->ended_at = mo_clock_boot_us();
}

static void on_answer(void *arg, const struct query_answer *a, const char *why)
{
	struct exec *e = arg;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct exec_result *result = mo_desc_new(&exec_result_desc);
	const char *problem = a ? a->error : why, *text = a && a->text ? a->text : "";
	size_t n = strlen(text);

	if (!problem && (wire_affordable(text, n, &err) < 0 ||
			 wire_decode(&exec_result_desc, text, n, false, result, &err) < 0))
		problem = "what the node says of it cannot be read";
	over(e, result, problem);
}

void execs_decided(struct manager *m, const char *id, bool ok)
{
	size_t i = place(m->execs, id);

	if (i == m->execs->n)
		return;
	if (!ok) {
		forget(m->execs, i);
		return;
	}
	struct exec *e = m->execs->items[i];
	const struct job *j = job_find(manager_state(m), e->job);
	const char *node = j ? api_node_of(j, j->attempt, e->rank) : NULL;

	if (!node) {
		over(e, mo_desc_new(&exec_result_desc), "the rank has ended");
		return;
	}
	e->attempt = j->attempt;
	e->node = mo_strdup(node);
	const struct command c = {
		.job = e->job,
		.attempt = e->attempt,
		.rank = e->rank,
		.wait_ms = e->timeout_ms,
		.what = (char *)EXEC_WHAT,
		.argv = e->command,
		.n_argv = e->n_command,
	};

	link_query_exec(m, e->node, &c, e->timeout_ms + SLACK_MS, on_answer, e);
}
