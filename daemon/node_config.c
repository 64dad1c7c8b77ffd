/* See node_config.h. */
#include "daemon/node_config.h"

#include <errno.h>
#include <string.h>

#include "daemon/admit.h"
#include "daemon/forked.h"
#include "daemon/forked_child.h"
#include "daemon/input.h"
#include "daemon/spec.h"
#include "lib/base/fd.h"
#include "lib/loop/loop.h"
#include "lib/recipe/experiment_judge.h"
#include "lib/recipe/experiment_record.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"

#define AGAIN_US 1000000 /* when no child could be made */

struct node_configs {
	struct manager *manager;
	int64_t *jobs;
	size_t n_jobs; /* waiting; the first one is being judged while busy */
	bool busy;
	int64_t attempt; /* of the one that is */
	uint64_t fork;
	struct mo_timer *timer;
};

static void submit_freep(struct submit **s)
{
	mo_desc_free(&submit_desc, *s);
}
static void read_freep(struct config_read **r)
{
	mo_desc_free(&config_read_desc, *r);
}

/* ---- in the child ---- */

/* The job as its submit would have been with these files, and whether its plan admits it. */
static void plan(const struct manager *m, const struct job *j, const struct experiment_verdict *v,
		 struct config_read *ret)
{
	_cleanup_(submit_freep) struct submit *s = mo_desc_dup(&submit_desc, &j->spec);
	const struct recipe_set set = { (char *)"experiment", v->document, (char *)"experiment" };
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	char *text = recipe_apply_sets(s->recipe_text, strlen(s->recipe_text), &set, 1, &errors);

	recipe_take_read(&s->recipe, &v->recipe);
	free(s->recipe_text);
	s->recipe_text = text ? text : mo_strdup("");
	mo_strs_clear(&s->warnings, &s->n_warnings);
	if (!spec_admit(m, s, &ret->refused))
		return;
	ret->promise = TAKE_PTR(s->promise);
	for (size_t i = 0; i < s->n_warnings; i++)
		mo_strs_add(&ret->warnings, &ret->n_warnings, s->warnings[i]);
}

static char *directory_said(const struct job *j, const struct experiment *x)
{
	const struct engine *e = &j->spec.engine;
	const char *key = e->save_names[e->n_save_names - 1].key;
	_cleanup_(mo_freep) char *place = experiment_place(x, config_get(x->names, key)->place);

	return mo_printf("%s: %s", place, key);
}

static void judge(const struct manager *m, const struct job *j, const struct experiment *x,
		  struct config_read *ret)
{
	_cleanup_(experiment_verdict_done) struct experiment_verdict v;
	const char *text = j->spec.recipe_text ? j->spec.recipe_text : "";

	experiment_judge(&j->spec.engine, &j->spec.recipe, text, strlen(text), x, &v);
	ret->hash = mo_printf("crc32c:%08x", x->crc);
	ret->refused = TAKE_PTR(v.refused);
	ret->unjudged = TAKE_PTR(v.unjudged);
	if (v.directory)
		ret->directory_said = directory_said(j, x);
	ret->directory = TAKE_PTR(v.directory);
	for (size_t i = 0; i < v.n_warnings; i++)
		mo_strs_add(&ret->warnings, &ret->n_warnings, v.warnings[i]);
	if (ret->refused || ret->unjudged)
		return;
	plan(m, j, &v, ret);
	ret->recipe = mo_desc_dup(&recipe_desc, &v.recipe);
}

static int judge_in_child(const struct manager *m, const void *arg, int fd)
{
	const struct job *j = job_find(manager_state(m), *(const int64_t *)arg);
	_cleanup_(mo_freep) char *doc = mo_printf("experiment: %s\n", j->config.text);
	_cleanup_(read_freep) struct config_read *read = mo_desc_new(&config_read_desc);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct experiment x;
	int r = experiment_of_text(doc, strlen(doc), &x, &err);

	if (r < 0) {
		read->unjudged = mo_printf("what %s read is no configuration: %s", j->config.node,
					   mo_error_text(&err, r));
	} else {
		judge(m, j, &x, read);
		experiment_done(&x);
	}
	wire_encode(&config_read_desc, read, &b);
	r = forked_status(fd, 200);
	return r < 0 ? r : mo_write_all(fd, b.data, b.len);
}

/* ---- in the loop ---- */

static void next(struct node_configs *c);

/* Takes read. */
static void tell(struct node_configs *c, struct config_read *read)
{
	struct input *in = input_new(IN_CONFIG, NULL);

	in->core.config = mo_desc_new(&in_config_desc);
	*in->core.config =
		(struct in_config){ .job = c->jobs[0], .attempt = c->attempt, .read = read };
	memmove(c->jobs, c->jobs + 1, --c->n_jobs * sizeof(*c->jobs));
	c->busy = false;
	input_push(c->manager, in);
}

static void on_judged(void *arg, int status, const char *body, size_t n)
{
	struct node_configs *c = arg;
	struct config_read *read = mo_desc_new(&config_read_desc);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (status != 200) {
		read->unjudged =
			mo_printf("the engine's configuration could not be judged: %.300s", body);
	} else if (wire_decode(&config_read_desc, body, n, false, read, &err) < 0) {
		mo_desc_free(&config_read_desc, read);
		read = mo_desc_new(&config_read_desc);
		read->unjudged = mo_printf("what a child said of the engine's configuration cannot "
					   "be used: %s",
					   mo_error_text(&err, -EINVAL));
	}
	tell(c, read);
	next(c);
}

static void next(struct node_configs *c)
{
	while (!c->busy && c->n_jobs) {
		const struct job *j = job_find(manager_state(c->manager), c->jobs[0]);
		const struct forked_work work = { .kind = FORKED_CONFIG,
						  .user = j ? j->spec.user : NULL,
						  .run = judge_in_child,
						  .arg = &c->jobs[0],
						  .done = on_judged,
						  .done_arg = c };

		if (!j || !j->config.due) {
			memmove(c->jobs, c->jobs + 1, --c->n_jobs * sizeof(*c->jobs));
			continue;
		}
		c->attempt = j->attempt;
		if (!j->config.text) { /* core: retained.c */
			struct config_read *read = mo_desc_new(&config_read_desc);

			read->unjudged =
				mo_strdup("the engine's configuration was not judged: there is no "
					  "room for it beside those of all unfinished jobs");
			tell(c, read);
			continue;
		}
		if (forked_alone(c->manager, &work, &c->fork) < 0) {
			mo_timer_in(c->timer, AGAIN_US);
			return;
		}
		c->busy = true;
	}
}

static void on_time(void *arg)
{
	next(arg);
}

void node_config_ask(struct manager *m, int64_t job)
{
	mo_ints_add(&m->node_configs->jobs, &m->node_configs->n_jobs, job);
	next(m->node_configs);
}

void node_configs_new(struct manager *m)
{
	struct node_configs *c = mo_alloc(sizeof(*c));

	c->manager = m;
	m->node_configs = c;
	if (mo_timer_new(m->loop, on_time, c, &c->timer) < 0)
		abort();
}

struct node_configs *node_configs_free(struct node_configs *c)
{
	if (!c)
		return NULL;
	if (c->busy)
		forked_cancel(c->manager, c->fork);
	mo_timer_free(c->timer);
	free(c->jobs);
	free(c);
	return NULL;
}
