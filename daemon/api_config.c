/* GET /v1/jobs/{id}/config: the engine's own configuration as the job's record keeps it: what was read of the engine's files for the
 * submit, with the words of the command as they are launched, which a plan and a resume add to. */
#include <errno.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/visible.h"
#include "lib/recipe/config_explain.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/experiment_record.h"

static void not_kept(struct http_request *r, const struct job *j)
{
	const char *kind = j->spec.recipe.engine.kind;

	if (!j->spec.engine.experiment && !j->spec.engine.config_words)
		http_problem(r, 404,
			     "job j-%lld: engine %s has no configuration file that is read; its "
			     "command is in `moectl submit --dry-run`",
			     (long long)j->id, kind);
	else
		http_problem(
			r, 404,
			"job j-%lld: the experiment %s was not read for it yet: its files are not "
			"where moectl submit ran, and no node has started it",
			(long long)j->id,
			j->spec.recipe.engine.entry ? j->spec.recipe.engine.entry : "");
}

static void send_config(struct http_request *r, const struct job *j, const struct experiment *x,
			const struct rank_command *command)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	const struct submit *s = &j->spec;
	const struct config_given given = {
		&s->engine, &s->recipe, s->recipe_text, strlen(s->recipe_text), NULL, 0, command
	};
	_cleanup_(config_teller_freep) struct config_teller *t = config_teller_new(&given, x);

	config_explain(t, http_query(r, "key"), true, &b);
	api_send(r, 200, &b);
}

/* As the job's node read it, else as the submit did. */
static int config_of(const struct job *j, const struct rank_command *command,
		     struct experiment *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *told =
		j->config ? mo_printf("experiment: %s\n", j->config) : NULL;
	const char *text = told ? told : j->spec.recipe_text;
	int r = text ? experiment_of_text(text, strlen(text), ret, err) : -ENOENT;

	if (told) /* a node reads it with the words as they are */
		return r;
	if (j->spec.engine.config_words && (r == 0 || r == -ENOENT))
		return config_files_command(&j->spec.engine, ret, command->words, command->n_words,
					    err);
	return r < 0 ? r : experiment_command(ret, command->words, command->n_words, err);
}

void api_job_config(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(experiment_done) struct experiment x = { 0 };

	if (!j || !visible_to(m, r, j, "configuration"))
		return;
	const struct submit *s = &j->spec;
	_cleanup_(rank_command_done) struct rank_command command =
		rank_command_of(&s->engine, &s->recipe);

	if (j->attempt > 0)
		engine_resume_argv(&s->engine, &s->recipe, j->resume, &command.words,
				   &command.n_words);
	int e = config_of(j, &command, &x, &err);

	if (e == -ENOENT)
		not_kept(r, j);
	else if (e < 0)
		http_problem(r, 422, "job j-%lld: its record of the engine's configuration: %s",
			     (long long)j->id, mo_error_text(&err, e));
	else
		send_config(r, j, &x, &command);
}
