/* GET /v1/jobs/{id}/config: the engine's own configuration as the job's record keeps it: what
 * was read of the engine's files for the submit, with the words of the command as they are
 * launched, which a plan and a resume add to. */
#include "daemon/api_config.h"

#include <errno.h>
#include <string.h>

#include "daemon/api.h"
#include "daemon/core/rules/config.h"
#include "daemon/forked.h"
#include "daemon/forked_child.h"
#include "daemon/visible.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/config_explain.h"
#include "lib/wire/encode.h"

#define HERE_MAX (64 << 10) /* bytes of the texts that are read in the loop; more by a child */

struct question {
	const struct job *job;
	const char *key; /* NULL: all of it */
};

/* Why the launch of the newest attempt was refused, NULL = it was not. */
static const char *refused_cause(const struct job *j)
{
	for (size_t i = 0; i < j->n_steps; i++)
		if (j->steps[i].attempt == j->attempt && j->steps[i].refused)
			return j->steps[i].refused_cause ? j->steps[i].refused_cause : "refused";
	/* steps are forgotten some time after the end of the job */
	const struct incident *last = j->n_incidents ? &j->incidents[j->n_incidents - 1] : NULL;
	bool refused = last && last->attempt == j->attempt && last->first_rank == MO_NONE &&
		       mo_streq(last->class, "user_error") && !j->saves.elsewhere;

	return refused ? last->cause : NULL;
}

/* What became of reading it on the job's node. Caller frees. */
static char *not_read_there(const struct job *j)
{
	const char *state = mo_enum_name(job_state_names, _JOB_STATE_N, j->state);
	const char *refused = j->attempt > 0 ? refused_cause(j) : NULL;
	bool began = j->started_at != MO_NONE && j->attempt > 0;

	if (!began && job_state_final(j->state))
		return mo_printf("the job is %s, and no node ever started it", state);
	if (!began)
		return mo_printf("the job is %s: the node that starts it reads them", state);
	if (mo_streq(refused, "prepare"))
		return mo_strdup(
			"engine.prepare failed before its node read them; `moectl why` says how");
	if (mo_streq(refused, "config"))
		return mo_strdup("its node could not load them; `moectl why` says where and why");
	if (refused)
		return mo_printf("attempt %lld ended before or while its node read them: %s; "
				 "`moectl why` says more",
				 (long long)j->attempt, refused);
	if (j->state == JOB_STARTING)
		return mo_strdup("its node reads them now, before the ranks start");
	return mo_printf("the node that started attempt %lld did not find them either, or could "
			 "not read them in time: the log of its agent says which",
			 (long long)j->attempt);
}

static char *not_retained(const struct job *j)
{
	const struct engine *e = &j->spec.engine;
	const char *entry = j->spec.recipe.engine.entry;

	if (!e->experiment && !e->config_words)
		return mo_printf("job j-%lld: of engine %s no configuration is read: it lies in "
				 "what the command starts; `moectl submit RECIPE --dry-run` shows "
				 "the command, `moectl explain env j-%lld` its variables",
				 (long long)j->id, j->spec.recipe.engine.kind, (long long)j->id);
	if (!e->experiment)
		return mo_printf("job j-%lld: the files of engine %s are not where moectl submit "
				 "ran, and nodes do not read them",
				 (long long)j->id, j->spec.recipe.engine.kind);
	_cleanup_(mo_freep) char *there = not_read_there(j);

	return mo_printf("job j-%lld: the files of the experiment %s are not where moectl submit "
			 "ran; %s",
			 (long long)j->id, entry ? entry : "", there);
}

/* Answered with what is still known of it, so that it can be made again. */
char *api_let_go(const struct job *j)
{
	const struct recipe *r = &j->spec.recipe;

	return mo_printf("job j-%lld: its recipe, words and configuration (%lld bytes) are kept no "
			 "more: of finished jobs %lld MiB are, those that ended last. It ran "
			 "engine %s%s%s%s%s; `moectl explain config RECIPE` tells the same of its "
			 "files as they are now",
			 (long long)j->id, (long long)j->let_go, MO_RETAINED_TEXTS_MAX >> 20,
			 r->engine.kind, r->engine.entry ? " with " : "",
			 r->engine.entry ? r->engine.entry : "",
			 r->experiment_hash ? ", read as " : "",
			 r->experiment_hash ? r->experiment_hash : "");
}

static const char *recipe_of(const struct job *j)
{
	return j->spec.recipe_text ? j->spec.recipe_text : "";
}

static void text_or_null(const char *s, struct mo_buf *b)
{
	if (s)
		wire_string(s, b);
	else
		mo_buf_str(b, "null");
}

/* `read` into the document: by which node, and whether its files are those that the submit read. */
static void add_read(const struct job *j, struct mo_buf *b)
{
	const char *submit = j->spec.recipe.experiment_hash;

	b->data[--b->len] = '\0'; /* its last brace */
	mo_buf_str(b, ",\"read\":{\"node\":");
	text_or_null(j->config.hash ? j->config.node : NULL, b);
	mo_buf_str(b, ",\"hash\":");
	text_or_null(j->config.hash, b);
	mo_buf_str(b, ",\"submit\":");
	text_or_null(submit, b);
	mo_buf_printf(b, ",\"differs\":%s}}", config_differs(j) ? "true" : "false");
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
		engine_resume_argv(&s->engine, &s->recipe, j->run.resume, &command.words,
				   &command.n_words);
	skip_words(&s->engine, j->skips, j->n_skips, &command.words, &command.n_words);
	const char *text = recipe_of(j);
	const struct config_given given = { &s->engine, &s->recipe, text,    strlen(text),
					    NULL,       0,          &command };
	int e = config_explain_record(&given, j->config.text, q->key, b, &err);

	if (e == -ENOENT) {
		*ret_detail = not_retained(j);
		return 409; /* 404 says that there is no such job */
	}
	if (e < 0) {
		*ret_detail = mo_printf("job j-%lld: its record of the engine's configuration: %s",
					(long long)j->id, mo_error_text(&err, e));
		return 422;
	}
	add_read(j, b);
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
	if (j->let_go != MO_NONE && !j->config.text && !j->spec.recipe_text) {
		detail = api_let_go(j);
		http_problem(r, 410, "%s", detail);
		return;
	}
	const struct question q = { j, http_query(r, "key") };

	if (strlen(recipe_of(j)) + (j->config.text ? strlen(j->config.text) : 0) > HERE_MAX) {
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
