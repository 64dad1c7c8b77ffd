/* What a node read of the engine's own configuration (note.config), once the shell has judged it
 * by the rules for recipes: the job is from then on what that says, and what the two break
 * together ends the attempt as it would have ended the submit. Only files of nodes count for
 * what the ranks do, so what a submit read elsewhere is held against them.
 *   REC_NOTES with a configuration -> job.config.due, FX_CONFIG -> (shell) IN_CONFIG -> REC_CONFIG
 * A controller that dies in between asks again at its start. */
#include "daemon/core/rules/config.h"

#include <string.h>

#include "daemon/core/rules/events.h"
#include "daemon/core/rules/turn.h"
#include "daemon/core/rules/words.h"
#include "lib/base/buf.h"
#include "lib/base/utf8.h"
#include "lib/model/limits.h"

#define WARNINGS_REPORTED 10
/* an attempt that trains for so long was not judged at its start */
#define LATE_US (60 * 1000000LL)

void config_ask(struct turn *t, const struct job *j)
{
	turn_effect(t, FX_CONFIG, NULL)->job = j->id;
}

bool config_awaited(const struct job *j)
{
	return j->config.due && !j->failure.decided && j->state != JOB_STOPPING &&
	       recipe_leaves(&j->spec.recipe, "steps");
}

/* Another one that was launched and has not ended, and saves there. A place below the home, of a
 * job without engine.workdir, is that of one user. */
static const struct job *saver_of(const struct state *s, const struct job *j, const char *dir)
{
	for (size_t i = 0; dir && i < s->n_jobs; i++) {
		const struct job *k = s->jobs[i];

		if (k->id != j->id && k->attempt > 0 && !job_state_final(k->state) &&
		    (*dir == '/' || mo_streq(k->spec.user, j->spec.user)) &&
		    (mo_streq(k->saves.dir, dir) || mo_streq(k->saves.by_config, dir)))
			return k;
	}
	return NULL;
}

/* What the engine's configuration names is a path in the job's image. */
static void name_on_node(const struct job *j, struct config_read *c)
{
	char *dir = container_on_node(j->spec.recipe.engine.container, c->directory);

	free(c->directory);
	c->directory = dir;
}

static void refuse_shared(const struct state *s, const struct job *j, struct config_read *c)
{
	const struct job *k = c->refused ? NULL : saver_of(s, j, c->directory);

	if (!k)
		return;
	c->refused = mo_printf("%s: the engine saves to %s, which is that of j-%lld (%s), which is "
			       "%s: give this job a checkpoint.dir of its own, or submit it when "
			       "j-%lld has ended",
			       c->directory_said ? c->directory_said : "its names", c->directory,
			       (long long)k->id, k->spec.recipe.name ? k->spec.recipe.name : "?",
			       job_state_names[k->state], (long long)k->id);
}

/* It trains: with these files in an attempt before, under rules of then, or all the time while
 * nobody judged it (the controller was away, or an older one did not ask). */
static bool trains_with_it(const struct turn *t, const struct job *j, const struct config_read *c)
{
	bool before =
		j->progress.watermark != MO_NONE && c->hash && mo_streq(c->hash, j->config.hash);

	return !j->config.refused &&
	       (before || (j->progress.iteration != MO_NONE && t->now - j->state_since >= LATE_US));
}

/* What trains is the proof that it can, whatever rules or an estimate say of it. */
static void let_train(const struct turn *t, const struct job *j, struct config_read *c)
{
	if (!c->refused || !trains_with_it(t, j, c))
		return;
	mo_strs_printf(&c->warnings, &c->n_warnings,
		       "%s; the job trains with it already, and goes on", c->refused);
	mo_str_set(&c->refused, NULL);
}

static void cut(char *text)
{
	if (text && strlen(text) > MO_TEXT_MAX)
		text[mo_utf8_cut(text, MO_TEXT_MAX)] = 0;
}

/* It repeats words of the files, which are of the user's making, and is kept with the job, its
 * reason and its incident. A directory of more is none. */
static void cut_texts(struct config_read *c)
{
	cut(c->refused);
	cut(c->unjudged);
	cut(c->directory_said);
	for (size_t i = 0; i < c->n_warnings; i++)
		cut(c->warnings[i]);
	if (c->directory && strlen(c->directory) > MO_TEXT_MAX)
		mo_str_set(&c->directory, NULL);
}

bool config_differs(const struct job *j)
{
	const char *submit = j->spec.recipe.experiment_hash;

	return submit && j->config.hash && !mo_streq(submit, j->config.hash);
}

static void tell_differs(struct turn *t, const struct job *j)
{
	const char *submit = j->spec.recipe.experiment_hash;
	struct mo_buf b = { 0 };

	if (!config_differs(j))
		return;
	data_str(&b, "node", j->config.node);
	data_str(&b, "submit", submit);
	data_str(&b, "hash", j->config.hash);
	event_emit(t, EVENT_CONFIG_DIFFERS, j->id, j->config.node, MO_NONE, j->attempt,
		   data_end(&b),
		   "the engine's files on %s are others (%s) than those that the submit read (%s): "
		   "what %s has is what trains",
		   j->config.node, j->config.hash, submit, j->config.node);
}

static void tell_read(struct turn *t, const struct job *j)
{
	_cleanup_(mo_freep) char *steps =
		j->spec.recipe.steps == MO_NONE
			? NULL
			: mo_printf(": %lld steps", (long long)j->spec.recipe.steps);
	struct mo_buf b = { 0 };

	if (j->spec.recipe.experiment_hash)
		return;
	data_str(&b, "node", j->config.node);
	data_str(&b, "hash", j->config.hash);
	data_int(&b, "steps", j->spec.recipe.steps);
	event_emit(t, EVENT_CONFIG_READ, j->id, j->config.node, MO_NONE, j->attempt, data_end(&b),
		   "the engine's own configuration was read on %s and holds by all rules%s",
		   j->config.node, steps ? steps : "");
}

static void tell_warnings(struct turn *t, const struct job *j, const struct config_read *c)
{
	for (size_t i = 0; i < c->n_warnings && i < WARNINGS_REPORTED; i++) {
		struct mo_buf b = { 0 };

		data_str(&b, "node", j->config.node);
		data_str(&b, "text", c->warnings[i]);
		event_emit(t, EVENT_CONFIG_WARNING, j->id, j->config.node, MO_NONE, j->attempt,
			   data_end(&b), "the engine's configuration on %s" SAID "%s",
			   j->config.node, c->warnings[i]);
	}
}

/* checkpoint.every: auto began without the number of steps; the command has its word. */
static void tell_no_save(struct turn *t, const struct job *j)
{
	const struct recipe *r = &j->spec.recipe;
	int64_t every = j->saves.every > 0 ? j->saves.every : r->checkpoint.every;
	struct mo_buf b = { 0 };

	if (!r->checkpoint.dir || !r->checkpoint.automatic || r->steps == MO_NONE ||
	    every <= r->steps)
		return;
	data_str(&b, "node", j->config.node);
	_cleanup_(mo_freep) char *text =
		mo_printf("checkpoint.every: auto began with %lld iterations, and there are %lld "
			  "steps: this attempt saves nothing before its end; give checkpoint.every",
			  (long long)every, (long long)r->steps);

	data_str(&b, "text", text);
	event_emit(t, EVENT_CONFIG_WARNING, j->id, j->config.node, MO_NONE, j->attempt,
		   data_end(&b), "the engine's configuration on %s: %s", j->config.node, text);
}

void config_judged(struct turn *t)
{
	const struct in_config *in = t->input->config;
	const struct job *j = job_find(&t->core->state, in->job);
	struct record r;

	if (!j || !j->config.due || j->attempt != in->attempt)
		return;
	record_init(&r, REC_CONFIG);
	r.job = j->id;
	r.attempt = j->attempt;
	r.node = mo_strdup(j->config.node);
	r.config = mo_desc_dup(&config_read_desc, in->read);
	cut_texts(r.config);
	let_train(t, j, r.config);
	name_on_node(j, r.config);
	refuse_shared(&t->core->state, j, r.config);
	if (r.config->unjudged)
		mo_strs_add(&r.config->warnings, &r.config->n_warnings, r.config->unjudged);
	/* the record's, which lives as long as the turn */
	const struct config_read *retained = r.config;

	turn_emit(t, &r);
	tell_differs(t, j);
	if (retained->recipe && !retained->refused) {
		tell_read(t, j);
		tell_no_save(t, j);
	}
	tell_warnings(t, j, retained);
}
