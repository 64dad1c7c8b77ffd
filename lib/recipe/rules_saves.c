/* What a recipe says about checkpoints: how often, where, and by which of the engine's
 * directories. */
#include "lib/recipe/rules_saves.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/args.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/directory.h"
#include "lib/recipe/rules_layout.h"

/* The interval of a save that the engine's own experiment says, by the word that a recipe would
 * say it with. */
static int64_t every_of_experiment(const struct rules *k, const struct ynode **ret_place)
{
	int64_t every = MO_NONE;

	for (size_t i = 0; i < k->engine->n_flags; i++) {
		const char *flag =
			k->engine->flags[i].value + strspn(k->engine->flags[i].value, "-");
		_cleanup_(mo_freep) char *key = mo_strndup(flag, strcspn(flag, "= "));
		_cleanup_(mo_freep) char *path = mo_printf("experiment.args.%s", key);
		const char *said = recipe_experiment_arg(k->recipe, key);

		if (!mo_streq(k->engine->flags[i].key, "checkpoint.every"))
			continue;
		if (said && mo_parse_i64(said, 1, INT64_MAX, &every) == 0)
			*ret_place = PLACE(k, path, "engine.entry", "checkpoint.dir");
	}
	return every;
}

/* Does the command say that the last state is not saved? */
static bool last_save_is_off(const struct rules *k)
{
	struct args command;
	bool off = false;

	args_command(k, &command);
	for (size_t i = 0; k->engine->checks && i < k->engine->checks->n_last_save_off; i++) {
		const struct kv *row = &k->engine->checks->last_save_off[i];
		const struct arg *arg = args_find(&command, row->key);

		off |= condition_holds(row->value,
				       arg ? arg_text(arg)
					   : recipe_experiment_arg(k->recipe, row->key));
	}
	args_done(&command);
	return off;
}

/* Saves that come after the job's end: only its last state exists, and before that a failure
 * costs all. */
static void check_saves(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct ynode *place = PLACE(k, "checkpoint.every", "checkpoint.dir");
	int64_t every = r->checkpoint.every;

	if (!r->checkpoint.dir || r->checkpoint.automatic || r->steps == MO_NONE)
		return;
	if (every == MO_NONE)
		every = every_of_experiment(k, &place);
	if (every == MO_NONE || every <= r->steps)
		return;
	const char *left =
		last_save_is_off(k) ? "nothing would be saved, because the last save is off too"
		: k->engine->needs_steps ? "only the state at the end is saved"
					 : "nothing is saved, unless the program saves at its end";

	rules_warn(k, place,
		   "checkpoint.every: %lld iterations are more than the job's %lld: %s, and a "
		   "failure before begins again at 0; use less, such as %lld",
		   LL(every), LL(r->steps), left, LL(MO_MAX(r->steps / 5, 1)));
}

/* "{name}", the first word in braces of a directory but the one that is replaced there (NULL:
 * none is); NULL: there is none. Caller frees. */
static char *brace_word(const char *dir, const char *replaced)
{
	for (const char *s = dir ? strchr(dir, '{') : NULL; s; s = strchr(s + 1, '{')) {
		size_t n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_.");

		if (n && s[n + 1] == '}' && (s == dir || s[-1] != '$') &&
		    !(replaced && mo_starts_with(s, replaced)))
			return mo_strndup(s, n + 2);
	}
	return NULL;
}

/* Of checkpoint.dir before the engine's own directory is behind it. */
static void check_directories(struct rules *k)
{
	const struct ynode *dir = ynode_find(k->root, "checkpoint.dir");
	const struct ynode *workdir = ynode_find(k->root, "engine.workdir");
	_cleanup_(mo_freep) char *word = brace_word(dir ? dir->text : NULL, "{user}");
	_cleanup_(mo_freep) char *other = brace_word(workdir ? workdir->text : NULL, NULL);
	_cleanup_(mo_freep) char *clean = dir && dir->text ? mo_path_clean(dir->text) : NULL;

	if (word)
		errors_at(k->errors, dir, "write there what it stands for",
			  "checkpoint.dir: nothing replaces %s: {user} is the only word of a "
			  "directory",
			  word);
	if (other)
		errors_at(k->errors, workdir, "write there what it stands for",
			  "engine.workdir: nothing replaces %s", other);
	if (mo_streq(clean, "/"))
		errors_at(k->errors, dir, "name a directory for this job's checkpoints alone",
			  "checkpoint.dir: / is all of the machine's files");
}

void rules_saves(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;
	const struct {
		const char *path;
		bool given;
	} needs[] = { { "checkpoint.every", c->every != MO_NONE },
		      { "checkpoint.keep", c->keep > 0 },
		      { "checkpoint.resume", c->resume >= 0 },
		      { "checkpoint.layout", c->layout },
		      { "checkpoint.resume_args", c->n_resume_args > 0 } };

	for (size_t i = 0; !c->dir && i < ELEMENTSOF(needs); i++)
		if (needs[i].given)
			errors_at(k->errors, PLACE(k, needs[i].path), NULL,
				  "%s: it needs checkpoint.dir", needs[i].path);
	check_directories(k);
	check_saves(k);
	layout_rules(k);
	directory_rules(k);
}
