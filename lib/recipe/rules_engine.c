/* Rules between a recipe and its engine: what the kind needs, values that the engine has no flag
 * for (never ignored), and engine.args that repeat a recipe key with another value. */
#include "lib/recipe/rules_engine.h"

#include <signal.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/args.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/launchers.h"
#include "lib/recipe/rules_args.h"
#include "lib/recipe/rules_carried.h"
#include "lib/recipe/rules_features.h"
#include "lib/recipe/rules_files.h"
#include "lib/recipe/rules_keys.h"
#include "lib/recipe/rules_types.h"

/* The flag by which an engine takes its entry, when it is no word of the command: Primus'
 * experiment file. */
static const char *entry_flag(const struct engine *e)
{
	for (size_t i = 0; i < e->n_flags; i++)
		if (mo_streq(e->flags[i].key, "engine.entry"))
			return e->flags[i].value;
	return NULL;
}

static void check_entry_flag(struct rules *k)
{
	const char *flag = entry_flag(k->engine);
	struct args args;

	if (!flag || k->recipe->engine.entry)
		return;
	args_read(k, &args);
	if (!args_find(&args, flag))
		errors_at(k->errors, PLACE(k, "engine"), NULL,
			  "missing key 'engine.entry': what %s gets as %s", k->recipe->engine.kind,
			  flag);
	args_done(&args);
}

/* What an engine starts instead of a key that it has no use for. */
static const char *starts(const struct engine *e)
{
	if (rules_template_has(e, "{argv}"))
		return "its program and words are engine.argv";
	if (rules_template_has(e, "{entry}"))
		return "its program is engine.entry, its words engine.args";
	return entry_flag(e) ? "it starts its own program, with engine.entry and engine.args"
			     : "it starts its own program, whose words are engine.args";
}

/* Python runs no configuration; another program in its place (engine.python) may. */
static void check_entry_is_program(struct rules *k)
{
	static const char *const ends[] = { ".yaml", ".yml", ".toml", ".json" };
	const struct engine *e = k->engine;
	const char *entry = k->recipe->engine.entry, *own = k->recipe->engine.python;
	const char *python = own ? own : e->python;
	const char *slash = python ? strrchr(python, '/') : NULL;
	const char *dot = entry ? strrchr(entry, '.') : NULL;

	if (!dot || e->n_argv < 2 || !mo_streq(e->argv[0], "{python}") ||
	    !mo_streq(e->argv[1], "{entry}") ||
	    (python && !mo_starts_with(slash ? slash + 1 : python, "python")))
		return;
	if (mo_enum_parse(ends, ELEMENTSOF(ends), dot) >= 0)
		errors_at(k->errors, PLACE(k, "engine.entry"),
			  "give the script; an experiment of Primus is for kind primus-megatron",
			  "engine.entry: '%.200s' is a configuration and no program that Python "
			  "runs",
			  entry);
}

static void check_command(struct rules *k)
{
	const struct recipe_engine *e = &k->recipe->engine;
	const struct {
		const char *path, *word;
		bool given;
	} parts[] = {
		{ "engine.argv", "{argv}", e->n_argv > 0 },
		{ "engine.args", "{args}", e->n_args > 0 },
		{ "engine.entry", "{entry}", e->entry },
		{ "engine.python", "{python}", e->python },
	};

	for (size_t i = 0; i < ELEMENTSOF(parts); i++)
		if (parts[i].given && !rules_template_has(k->engine, parts[i].word) &&
		    !(mo_streq(parts[i].word, "{entry}") && entry_flag(k->engine)))
			errors_at(k->errors, PLACE(k, parts[i].path), NULL,
				  "%s: engine %s has no use for it: %s", parts[i].path, e->kind,
				  starts(k->engine));
	if (e->n_argv && !*e->argv[0])
		errors_at(k->errors, PLACE(k, "engine.argv", "engine"), NULL,
			  "engine.argv: its first word, the program, is empty");
	if (rules_template_has(k->engine, "{argv}") && !e->n_argv)
		errors_at(k->errors, PLACE(k, "engine.argv", "engine"), NULL,
			  "missing key 'engine.argv': the program and its words");
	if (e->entry && rules_leads_out(e->entry))
		errors_at(k->errors, PLACE(k, "engine.entry"), NULL,
			  "engine.entry: '%s' may lead out of workdir: give a path below it "
			  "without '..', or an absolute one",
			  e->entry);
	check_entry_is_program(k);
	if (rules_template_has(k->engine, "{entry}") && !e->entry && !k->engine->entry)
		errors_at(k->errors, PLACE(k, "engine"), NULL,
			  "missing key 'engine.entry': the script to run");
	if (k->engine->needs_steps && k->recipe->steps == MO_NONE &&
	    (k->recipe->experiment_hash || !recipe_leaves(k->recipe, "steps")))
		errors_at(k->errors, k->root, NULL,
			  "missing key 'steps': engine %s trains to a number of iterations",
			  e->kind);
}

/* Bytes of the word when {dir}, a placeholder of the launch, is filled in too. */
static size_t word_bytes(const struct rules *k, const char *word)
{
	const char *dir = k->recipe->checkpoint.dir;
	size_t n = strlen(word);

	for (const char *at = dir ? strstr(word, "{dir}") : NULL; at; at = strstr(at + 1, "{dir}"))
		n += strlen(dir);
	return n;
}

/* {path} words whose value the recipe does not give would reach the program as an empty word;
 * and a long value in many words makes of a small recipe a command of many MB. */
static void check_words(struct rules *k)
{
	static const char *const lists[] = { "engine.argv", "engine.args", "engine.prepare",
					     "checkpoint.resume_args" };
	size_t all = 0;

	for (size_t l = 0; l < ELEMENTSOF(lists); l++) {
		const struct ynode *words = ynode_find(k->root, lists[l]);

		for (size_t i = 0; words && words->kind != YAML_SCALAR && i < words->n; i++) {
			const struct ynode *v = words->items[i].value;
			const char *missing = NULL;

			if (v->kind != YAML_SCALAR)
				continue;
			_cleanup_(mo_freep) char *word =
				recipe_expand(k->recipe, v->text, &missing);
			size_t n = word ? word_bytes(k, word) : 0;

			if (missing && l < 2)
				errors_at(k->errors, v, NULL,
					  "%s: '%.60s' needs %s, which the recipe does not give",
					  lists[l], v->text, missing);
			if (n > WORD_BYTES_MAX)
				errors_at(k->errors, v, NULL,
					  "%s: '%.60s' is longer than %d bytes when its "
					  "placeholders are filled in",
					  lists[l], v->text, WORD_BYTES_MAX);
			all += n;
			if (all > COMMAND_BYTES_MAX && all - n <= COMMAND_BYTES_MAX)
				errors_at(k->errors, v, NULL,
					  "%s: the words of the command are more than %d bytes "
					  "when their placeholders are filled in",
					  lists[l], COMMAND_BYTES_MAX);
		}
	}
}

/* What a planned stop is worth: some engines save at their signal, others end where they are.
 * Scripts of somebody's own (no flags) may do either. */
static void check_stop(struct rules *k)
{
	const struct recipe *r = k->recipe;
	const struct engine *e = k->engine;
	int64_t listens = e->stop_signal == MO_NONE ? SIGTERM : e->stop_signal;
	bool stated = false;

	for (size_t i = 0; i < e->n_flags; i++)
		stated |= mo_starts_with(e->flags[i].key, "stop.signal");
	if (e->n_flags && !e->stop_saves && r->checkpoint.dir && r->time_limit_us != MO_NONE)
		rules_warn(k, PLACE(k, "time_limit"),
			   "time_limit: engine %s does not save when it is stopped: what it does "
			   "after its last save (checkpoint.every) is lost",
			   r->engine.kind);
	if (e->stop_saves && !stated && r->stop_signal != listens)
		rules_warn(k, PLACE(k, "stop.signal"),
			   "stop.signal: engine %s saves a checkpoint at SIG%s only: at another "
			   "signal it ends without one",
			   r->engine.kind, sigabbrev_np((int)listens));
}

void rules_engine(struct rules *k)
{
	check_stop(k);
	check_command(k);
	launchers_check(k);
	check_entry_flag(k);
	rules_check_carried(k);
	rules_features(k);
	rules_keys(k);
	rules_args(k);
	rules_types(k);
	rules_files(k);
	check_words(k);
}
