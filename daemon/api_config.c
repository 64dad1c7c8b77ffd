/* GET /v1/jobs/{id}/config: the engine's own configuration as the job's record keeps it: what was read of the engine's files for the
 * submit, with the words of the command as they are launched, which a plan and a resume add to. */
#include <errno.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/forked.h"
#include "daemon/visible.h"
#include "lib/base/fd.h"
#include "lib/recipe/config_explain.h"

#define HERE_MAX (64 << 10) /* bytes of the texts that are read in the loop; more by a child */

struct question {
	const struct job *job;
	const char *key; /* NULL: all of it */
};

static char *not_kept(const struct job *j)
{
	if (!j->spec.engine.experiment && !j->spec.engine.config_words)
		return mo_printf("job j-%lld: engine %s has no configuration file that is read; "
				 "its command is in `moectl submit --dry-run`",
				 (long long)j->id, j->spec.recipe.engine.kind);
	return mo_printf("job j-%lld: the experiment %s was not read for it yet: its files are not "
			 "where moectl submit ran, and no node has started it",
			 (long long)j->id,
			 j->spec.recipe.engine.entry ? j->spec.recipe.engine.entry : "");
}

static const char *recipe_of(const struct job *j)
{
	return j->spec.recipe_text ? j->spec.recipe_text : "";
}

/* 200 with the document in b, or the status of what *ret_detail says (caller frees). */
static int answer(const struct question *q, struct mo_buf *b, char **ret_detail)
{
	const struct job *j = q->job;
	const struct submit *s = &j->spec;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(rank_command_done) struct rank_command command =
		rank_command_of(&s->engine, &s->recipe);

	if (j->attempt > 0)
		engine_resume_argv(&s->engine, &s->recipe, j->resume, &command.words,
				   &command.n_words);
	const char *text = recipe_of(j);
	const struct config_given given = {
		&s->engine, &s->recipe, text, strlen(text), NULL, 0, &command
	};
	int e = config_explain_record(&given, j->config, q->key, b, &err);

	if (e == -ENOENT) {
		*ret_detail = not_kept(j);
		return 404;
	}
	if (e < 0) {
		*ret_detail = mo_printf("job j-%lld: its record of the engine's configuration: %s",
					(long long)j->id, mo_error_text(&err, e));
		return 422;
	}
	return 200;
}

static int answer_in_child(const struct manager *m, const void *arg, int fd)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *detail = NULL;
	int status = answer(arg, &b, &detail);

	if (detail)
		return forked_problem(fd, status, detail);
	int r = forked_status(fd, status);

	return r < 0 ? r : mo_write_all(fd, b.data, b.len);
}

void api_job_config(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(mo_freep) char *detail = NULL;

	if (!j || !visible_to(m, r, j, "configuration"))
		return;
	const struct question q = { j, http_query(r, "key") };

	if (strlen(recipe_of(j)) + (j->config ? strlen(j->config) : 0) > HERE_MAX) {
		const struct forked_work work = { .kind = FORKED_RECIPE,
						  .user = http_caller(r)->user,
						  .viewer = http_caller(r)->role == ROLE_VIEWER,
						  .run = answer_in_child,
						  .arg = &q,
						  .content_type = "application/json" };
		forked_answer(m, r, &work);
		return;
	}
	int status = answer(&q, &b, &detail);

	if (detail)
		http_problem(r, status, "%s", detail);
	else
		api_send(r, status, &b);
}
