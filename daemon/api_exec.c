/* POST /v1/jobs/{id}/exec: a command beside a rank of the job, and GET for what came of it. Whether
 * it may run the core decides (core/rules/exec.c); here its words are read, and there are never
 * too many. */
#include "daemon/api_exec.h"

#include <string.h>

#include "daemon/api.h"
#include "daemon/core/rules/exec.h"
#include "daemon/input.h"

struct exec_body {
	int64_t rank, timeout_s;
	char **command;
	size_t n_command;
};
static const struct mo_field exec_body_fields[] = {
	MO_D(exec_body, rank, MO_INT, "number of the rank; not given: 0"),
	MO_D_LIST(exec_body, command, MO_STRS, "the command and its arguments",
		  .max = EXEC_WORDS_MAX),
	MO_D(exec_body, timeout_s, MO_INT,
	     "seconds after which it is killed, at most 600; not given: 60"),
};
const struct mo_desc exec_body_desc = MO_DESC(exec_body, exec_body_fields);

static bool is_admin(const struct http_request *r)
{
	return http_caller(r)->role == ROLE_ADMIN;
}

/* The job of {id}, of which the caller may know this; NULL after 403 or 404 was sent. */
static const struct job *job_of(struct manager *m, struct http_request *r)
{
	const struct job *j = api_job(m, r);
	_cleanup_(mo_freep) char *why =
		j ? exec_forbidden(j, http_caller(r)->user, is_admin(r)) : NULL;

	if (why)
		http_problem(r, 403, "%s", why);
	return why ? NULL : j;
}

/* false after 422 was sent */
static bool check(struct http_request *r, struct exec_body *b)
{
	_cleanup_(mo_freep) char *words = exec_words_problem(b->command, b->n_command);

	if (b->rank == MO_NONE)
		b->rank = 0;
	if (b->timeout_s == MO_NONE)
		b->timeout_s = EXEC_DEADLINE_MS / 1000;
	if (words)
		http_problem(r, 422, "%s", words);
	else if (b->rank < 0)
		http_problem(r, 422, "rank: must be 0 or more");
	else if (b->timeout_s < 1 || b->timeout_s > EXEC_DEADLINE_MAX_MS / 1000)
		http_problem(r, 422, "timeout_s: must be from 1 to %d seconds",
			     EXEC_DEADLINE_MAX_MS / 1000);
	else
		return true;
	return false;
}

static void push(struct manager *m, struct http_request *r, const struct job *j,
		 struct exec_body *b)
{
	bool of_job;
	struct exec *e = execs_add(m, j->id, &of_job);

	if (!e) {
		http_problem(r, 429, "exec: %s; wait for one to end",
			     of_job ? "four commands run beside ranks of this job already"
				    : "too many commands run beside ranks of all jobs");
		return;
	}
	e->rank = b->rank;
	e->timeout_ms = b->timeout_s * 1000;
	e->user = mo_strdup(http_caller(r)->user);
	for (size_t i = 0; i < b->n_command; i++)
		mo_strs_add(&e->command, &e->n_command, b->command[i]);
	struct input *in = input_new(IN_EXEC, r);

	in->core.exec = mo_desc_new(&in_exec_desc);
	in->core.exec->job = j->id;
	in->core.exec->rank = b->rank;
	in->core.exec->admin = is_admin(r);
	in->core.exec->argv = TAKE_PTR(b->command);
	in->core.exec->n_argv = b->n_command;
	b->n_command = 0;
	in->answer = ANSWER_EXEC;
	in->answer_text = mo_strdup(e->id);
	input_push(m, in);
}

void api_job_exec(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = job_of(m, r);
	struct exec_body b;

	if (!j)
		return;
	mo_desc_init(&exec_body_desc, &b);
	if (api_body(r, &exec_body_desc, &b) && check(r, &b))
		push(m, r, j, &b);
	mo_desc_done(&exec_body_desc, &b);
}

void api_job_exec_get(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = job_of(m, r);
	const struct exec *e = execs_find(m, http_param(r, "exec"));

	if (!j)
		return;
	if (e && e->job == j->id)
		api_send_doc(r, 200, &exec_desc, e);
	else
		http_problem(r, 404,
			     "job j-%lld has no command %.40s: what came of one is kept for ten "
			     "minutes, and not over a start of the controller",
			     (long long)j->id, http_param(r, "exec"));
}
