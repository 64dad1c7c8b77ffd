/* Reading an engine's experiment on the user's machine (experiment.h). The rules are
 * lib/recipe/experiment.h; here are the files and the variables of a rank. */
#include "cli/experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/bind/preview.h"
#include "cli/experiment_entry.h"
#include "cli/experiment_inputs.h"
#include "cli/experiment_notes.h"
#include "cli/options.h"
#include "cli/places.h"
#include "cli/visible.h"
#include "daemon/core/rules/dryrun.h"
#include "lib/base/fd.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/experiment_document.h"
#include "lib/recipe/experiment_kind.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/experiment_words.h"
#include "lib/recipe/recipe_file.h"

#define NOTES_MAX 20 /* overrides that are listed one by one */

struct there {
	const struct recipe_input *in;
	struct dryrun_rank rank;
	char **own;
	size_t n_own; /* variables that the files ask for and only this shell has so */
};                    /* where a rank would run */

static void there_done(struct there *p)
{
	for (size_t i = 0; i < p->n_own; i++)
		free(p->own[i]);
	free(p->own);
	mo_desc_done(&dryrun_rank_desc, &p->rank);
}
MO_DEFINE_DONE(submit)
MO_DEFINE_DONE(state)

static int keep_first(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
		      size_t n, struct mo_error *err)
{
	struct there *p = arg;

	if (n && !p->rank.n_argv)
		mo_desc_copy(&dryrun_rank_desc, &p->rank, &ranks[0]);
	return 0;
}

static int read_file(void *arg, const char *path, size_t most, struct mo_buf *ret)
{
	const struct there *p = arg;
	const char *dir = p->in->recipe.engine.workdir;
	_cleanup_(mo_freep) char *whole = dir ? places_below(dir, path) : mo_strdup(path);
	_cleanup_(mo_freep) char *seen = *whole == '/' ? places_seen(p->in, whole) : NULL;

	return mo_read_file(seen ? seen : whole, most, ret);
}

static const char *of_rank(const struct there *p, const char *name)
{
	for (size_t i = 0; i < p->rank.n_env; i++)
		if (mo_streq(p->rank.env[i].name, name))
			return p->rank.env[i].value;
	return NULL;
}

/* Notes a variable that this shell has and a rank has not, or has otherwise. */
static void note_own(struct there *p, const char *name)
{
	const char *here = getenv(name), *there = of_rank(p, name);

	for (size_t i = 0; i < p->n_own; i++)
		if (mo_streq(p->own[i], name))
			return;
	if (here && !mo_streq(here, there) && p->n_own < NOTES_MAX)
		mo_strs_add(&p->own, &p->n_own, name);
}

static const char *variable(void *arg, const char *name)
{
	note_own(arg, name);
	return of_rank(arg, name);
}

/* Whoever exported Primus' variables for its own launcher expects them to count. Only their
 * names are printed: a value may be a secret. */
static char *shell_note(struct there *p)
{
	static const char begins[] = "PRIMUS_";
	struct mo_buf b = { 0 };

	for (char **e = environ; *e; e++) {
		_cleanup_(mo_freep) char *name = mo_strndup(*e, strcspn(*e, "="));

		if (mo_starts_with(name, begins))
			note_own(p, name);
	}
	if (!p->n_own)
		return NULL;
	for (size_t i = 0; i < p->n_own; i++)
		mo_buf_printf(&b, "%s%s", i ? ", " : "", p->own[i]);
	mo_buf_printf(&b,
		      " of your shell %s not taken over: what counts is the environment of the "
		      "ranks; `env:` of the recipe sets variables there",
		      p->n_own > 1 ? "are" : "is");
	return mo_buf_take(&b);
}

/* ret_shell: what to print of this shell's variables (the caller frees it); NULL: nothing
 * is printed. */
static int resolve(const struct recipe_input *in, struct experiment *ret,
		   struct rank_command *command, char **ret_shell, struct mo_error *err)
{
	_cleanup_(submit_done) struct submit spec;
	_cleanup_(state_done) struct state empty;
	_cleanup_(there_done) struct there place = { .in = in };
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = keep_first, .arg = &place, .to = 1, .large = true
	};
	const struct experiment_world world = { &place, read_file, variable };

	mo_desc_init(&submit_desc, &spec);
	mo_desc_init(&state_desc, &empty);
	mo_desc_init(&dryrun_rank_desc, &place.rank);
	int r = recipe_input_spec(in, &spec, err);

	if (r >= 0)
		r = dryrun_walk(&empty, &spec, &walk, err);
	if (r < 0)
		return r;
	*command = rank_command_of(&in->engine, &in->recipe);
	if (!in->engine.experiment) {
		const char *own = in->recipe.engine.entry;

		return config_files_resolve(&in->engine, own ? own : in->engine.entry, &world,
					    command->words, command->n_words, ret, err);
	}
	/* An experiment of ours lies here without the engine's presets: that is no fault of
	 * either. */
	_cleanup_(mo_freep) char *dir =
		in->recipe.engine.workdir ? places_seen(in, in->recipe.engine.workdir) : NULL;

	if (dir && access(dir, F_OK) < 0 && errno == ENOENT)
		r = mo_error_set(err, -ENOENT,
				 "engine.workdir: %s: no such directory here; --set "
				 "engine.workdir=DIR%s names the one of this machine, and of a job "
				 "`moectl explain config JOB` shows what its node read",
				 dir,
				 in->recipe.engine.container ? " --set engine.container=none" : "");
	else
		r = experiment_resolve(&world, command->words, command->n_words, ret, err);
	if (ret_shell)
		*ret_shell = shell_note(&place);
	return r;
}

int experiment_of(const struct recipe_input *in, struct experiment *ret,
		  struct rank_command *command, struct mo_error *err)
{
	return resolve(in, ret, command, NULL, err);
}

int experiment_explain(const struct recipe_input *in, const char *key, const char *undecided,
		       struct mo_buf *ret, size_t *ret_n, struct mo_error *err)
{
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	struct experiment x = { 0 };
	int r = experiment_of(in, &x, &command, err);

	if (r < 0)
		return r;
	struct config_given given = experiment_given_of(in, &command);

	given.undecided = undecided;
	_cleanup_(config_teller_freep) struct config_teller *t = config_teller_new(&given, &x);

	*ret_n = config_explain(t, key, false, ret);
	experiment_done(&x);
	return 0;
}

static void tell_inputs(const struct recipe_input *in, const struct experiment *x,
			const struct rank_command *c)
{
	const struct config_given given = experiment_given_of(in, c);
	_cleanup_(config_teller_freep) struct config_teller *t = config_teller_new(&given, x);

	experiment_inputs(in, x, t);
}

static void keep_unread(struct recipe_input *in, const char *file)
{
	const char *dir = in->recipe.engine.workdir;

	free(in->unread);
	in->unread = file && dir ? places_below(dir, file) : mo_strdup(file);
}

/* The files of an engine without experiments: what they say of the recipe's values counts where
 * the engine's file knows it, the rest is kept with the job; what is wrong in them is the
 * engine's to say. */
static void keep_files(struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	struct experiment x = { 0 };
	int r = experiment_of(in, &x, &command, &err);

	if (r == -EINVAL && !in->explaining) {
		_cleanup_(mo_freep) char *text = visible(mo_error_text(&err, r));

		fprintf(stderr, "%s: warning: the engine's configuration: %s\n", in->file, text);
	}
	if (r < 0)
		return;
	/* Without a file its defaults hold; of one that is only on the nodes nothing is known. */
	bool known = engine_has_values(&in->engine) ? !x.n_unread : x.n_files > x.n_unread;

	if (known && engine_has_values(&in->engine) && !in->recipe.model)
		in->no_model = experiment_no_model(&in->engine, &x);
	in->experiment = known ? experiment_document(&in->engine, &in->recipe, &x) : NULL;
	if (in->experiment)
		recipe_input_option(in, "experiment", "experiment", in->experiment);
	else
		tell_inputs(in, &x, &command);
	experiment_done(&x);
}

bool recipe_input_has_experiment(struct recipe_input *in)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };

	return recipe_parse(in->text.data ? in->text.data : "", in->text.len, in->sets, in->n_sets,
			    &in->recipe, &in->engine, NULL, NULL, &errors) == 0 &&
	       (engine_has_values(&in->engine) || in->engine.n_config_files);
}

int experiment_read_for(struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	_cleanup_(mo_freep) char *shell = NULL;
	struct experiment x = { 0 };

	if (!in->engine.experiment) {
		keep_files(in);
		return 0;
	}
	int r = resolve(in, &x, &command, &shell, &err);

	if (r < 0) {
		keep_unread(in, experiment_file(command.words, command.n_words));
		experiment_tell_shell(in, shell);
	}

	if (r == -EINVAL) {
		_cleanup_(mo_freep) char *text = visible(mo_error_text(&err, r));
		_cleanup_(mo_freep) char *hint = visible(err.hint ? err.hint : "");

		fprintf(stderr, "%s: the experiment: %s%s%s\n", in->file, text, *hint ? "; " : "",
			hint);
		/* Its variables may be those that engine.prepare maps on the node. */
		if (in->recipe.engine.prepare || in->recipe.engine.n_prepare_argv)
			return 0;
		return CLI_USAGE;
	}
	if (r < 0)
		return experiment_missing(in, experiment_file(command.words, command.n_words), r);
	if (experiment_kind_check(&in->engine, &x, &in->refusal) == 0)
		experiment_directory_check(&in->engine, &in->recipe, &x, &in->refusal);
	if (in->refusal.text && !in->explaining) {
		experiment_done(&x);
		return cli_fail_error(CLI_USAGE, in->file, &in->refusal, -EINVAL);
	}
	if (!in->recipe.model)
		in->no_model = experiment_no_model(&in->engine, &x);
	in->experiment = experiment_document(&in->engine, &in->recipe, &x);
	recipe_input_option(in, "experiment", "experiment", in->experiment);
	experiment_done(&x);
	return 0;
}

void experiment_read_again(struct recipe_input *in)
{
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	_cleanup_(mo_freep) char *shell = NULL;
	struct experiment x = { 0 };

	if (resolve(in, &x, &command, &shell, NULL) < 0)
		return;
	if (!recipe_input_refused(in)) { /* a refusal is printed alone */
		experiment_tell_shell(in, shell);
		experiment_notes(in, &x, &command);
	}
	free(in->experiment);
	in->experiment = experiment_document(&in->engine, &in->recipe, &x);
	for (size_t i = 0; i < in->n_sets; i++)
		if (mo_streq(in->sets[i].name, "experiment"))
			mo_str_set(&in->sets[i].value, in->experiment);
	experiment_done(&x);
}
