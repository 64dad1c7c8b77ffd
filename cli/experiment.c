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
#include "cli/experiment_keys.h"
#include "cli/experiment_model.h"
#include "cli/experiment_types.h"
#include "cli/places.h"
#include "cli/visible.h"
#include "daemon/core/rules/dryrun.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/config_files.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/experiment_document.h"
#include "lib/recipe/experiment_kind.h"
#include "lib/recipe/experiment_values.h"
#include "lib/recipe/recipe_file.h"

#define NOTES_MAX 20 /* overrides that are told one by one */

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
	_cleanup_(mo_freep) char *whole =
		*path == '/' || !dir ? mo_strdup(path) : mo_printf("%s/%s", dir, path);

	return mo_read_file(whole, most, ret);
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
 * names are told: a value may be a secret. */
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

/* ret_shell: what the user is told of this shell's variables (the caller frees it); NULL: nobody
 * is told. */
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
	const char *dir = in->recipe.engine.workdir;

	if (dir && access(dir, F_OK) < 0 && errno == ENOENT)
		r = mo_error_set(err, -ENOENT,
				 "engine.workdir: %s: no such directory here; --set "
				 "engine.workdir=DIR names the one of this machine, and of a job "
				 "`moectl explain config JOB` shows what its node read",
				 dir);
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

static void tell_shell(const struct recipe_input *in, const char *note)
{
	_cleanup_(mo_freep) char *shown = note ? visible(note) : NULL;

	if (shown)
		fprintf(stderr, "%s: note: %s\n", in->file, shown);
}

static struct config_given given_of(const struct recipe_input *in, const struct rank_command *c)
{
	return (struct config_given){ &in->engine,
				      &in->recipe,
				      in->text.data ? in->text.data : "",
				      in->text.len,
				      in->sets,
				      in->n_sets,
				      c,
				      NULL };
}

/* How many were told, and of which file last: of the next ones its name alone is said. */
struct overrides {
	size_t n;
	int64_t file;
};

static char *override_place(const struct experiment *x, struct config_place place,
			    struct overrides *reported)
{
	char *whole = experiment_place(x, place);
	const char *slash = place.file == reported->file ? strrchr(whole, '/') : NULL;

	reported->file = place.file;
	if (!slash)
		return whole;
	char *name = mo_strdup(slash + 1);

	free(whole);
	return name;
}

static void note_override(const struct recipe_input *in, const struct experiment *x,
			  const struct config_teller *t, const struct config_item *item,
			  struct overrides *reported)
{
	const struct config_value *v = item->value, *old = v->over;
	_cleanup_(mo_buf_done) struct mo_buf now = { 0 }, was = { 0 };

	if (!old || v->place.file >= 0 || old->kind == CONFIG_NULL) /* null: nothing was said */
		return;
	struct config_source from = config_source(t, v->place);
	_cleanup_(mo_freep) char *moectl = from.moectl;

	config_json(v, &now);
	config_json(old, &was);
	/* Engines without an experiment are told all sizes: a file of theirs does not stand
	 * where the recipe is silent. */
	bool silent = !from.recipe && moectl && mo_starts_with(moectl, "parallelism.") &&
		      !in->engine.experiment && old->place.file >= 0;

	if (!(from.recipe || silent) || mo_streq(now.data, was.data) || ++reported->n > NOTES_MAX)
		return;
	_cleanup_(mo_freep) char *place = override_place(x, old->place, reported);
	_cleanup_(mo_freep) char *text =
		silent ? mo_printf("%s: warning: %s: %s %s does not count, the command says %s: "
				   "%s; give it in the recipe",
				   in->file, place, item->key, was.data, now.data, moectl)
		       : mo_printf("%s: note: %s overrides %s %s %s -> %s", in->file, from.recipe,
				   place, item->key, was.data, now.data);
	_cleanup_(mo_freep) char *shown = visible(text);

	fprintf(stderr, "%s\n", shown);
}

/* What the file says of a value holds for a fresh start only: a resume gives its own word
 * (finetune: true would begin again at 0). */
static void note_resume(const struct recipe_input *in, const struct experiment *x)
{
	char **words = NULL;
	size_t n = 0;

	engine_resume_argv(&in->engine, &in->recipe, 0, &words, &n);
	for (size_t i = 0; i + 1 < n; i++) {
		const char *key = words[i] + strspn(words[i], "-"), *now = words[i + 1];
		const struct config_value *v = config_find(x->merged, key);
		bool none = !v || v->kind == CONFIG_NULL || mo_streq(v->text, "false");
		bool clears = mo_streq(now, "None") || mo_streq(now, "false");

		if (*words[i] != '-' || *now == '-' || !clears || none || v->place.file < 0)
			continue;
		_cleanup_(mo_freep) char *place = experiment_place(x, v->place);
		_cleanup_(mo_freep) char *text =
			mo_printf("%s: note: %s %s %s is for a fresh start: a resume takes %s",
				  in->file, place, key, v->text ? v->text : "", now);
		_cleanup_(mo_freep) char *shown = visible(text);

		fprintf(stderr, "%s\n", shown);
	}
	for (size_t i = 0; i < n; i++)
		free(words[i]);
	free(words);
}

static void notes(const struct recipe_input *in, const struct experiment *x,
		  const struct rank_command *c)
{
	const struct config_given given = given_of(in, c);
	_cleanup_(config_teller_freep) struct config_teller *t = config_teller_new(&given, x);
	struct config_item *items = NULL;
	struct overrides reported = { 0, -1 };
	size_t n = 0;

	config_items(x->merged, &items, &n);
	for (size_t i = 0; i < n && !in->draft; i++) /* what is different, init says itself */
		note_override(in, x, t, &items[i], &reported);
	config_items_free(items, n);
	if (reported.n > NOTES_MAX)
		fprintf(stderr,
			"%s: note: %zu more overrides; moectl explain config %s shows all\n",
			in->file, reported.n - NOTES_MAX, in->file);
	if (in->recipe.checkpoint.dir && !in->draft)
		note_resume(in, x);
	for (size_t i = 0; i < x->n_idle; i++) {
		_cleanup_(mo_freep) char *key = visible(x->idle[i]);
		const char *name = strrchr(x->idle[i], ' ');
		const char *near = mo_near_miss(name ? name + 1 : "", experiment_top_keys,
						EXPERIMENT_TOP_KEYS);

		fprintf(stderr, "%s: warning: nothing reads this key beside `modules`; %s%s%s\n",
			key, near ? "did you mean '" : "parameters belong into `overrides`",
			near ? near : "", near ? "'?" : "");
	}
	for (size_t i = 0; i < x->n_skipped; i++) {
		_cleanup_(mo_freep) char *word = visible(x->skipped[i]);

		fprintf(stderr, "%s: warning: engine.args: the engine skips the word '%s'\n",
			in->file, word);
	}
	experiment_misread_values(in, x, t);
	experiment_other_model(in, x);
	experiment_unknown_keys(in, x);
	experiment_inputs(in, x, t);
}

int experiment_explain(const struct recipe_input *in, const char *key, const char *undecided,
		       struct mo_buf *ret, size_t *ret_n, struct mo_error *err)
{
	_cleanup_(rank_command_done) struct rank_command command = { 0 };
	struct experiment x = { 0 };
	int r = experiment_of(in, &x, &command, err);

	if (r < 0)
		return r;
	struct config_given given = given_of(in, &command);

	given.undecided = undecided;
	_cleanup_(config_teller_freep) struct config_teller *t = config_teller_new(&given, &x);

	*ret_n = config_explain(t, key, false, ret);
	experiment_done(&x);
	return 0;
}

static void tell_inputs(const struct recipe_input *in, const struct experiment *x,
			const struct rank_command *c)
{
	const struct config_given given = given_of(in, c);
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
		tell_shell(in, shell);
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
	if (!recipe_input_refused(in)) { /* what is refused is told alone */
		tell_shell(in, shell);
		notes(in, &x, &command);
	}
	free(in->experiment);
	in->experiment = experiment_document(&in->engine, &in->recipe, &x);
	for (size_t i = 0; i < in->n_sets; i++)
		if (mo_streq(in->sets[i].name, "experiment"))
			mo_str_set(&in->sets[i].value, in->experiment);
	experiment_done(&x);
}
