/* Rules between a recipe and its engine: what the kind needs, values that the engine has no flag
 * for (never ignored), and engine.args that repeat a recipe key with another value. */
#include "lib/recipe/rules_engine.h"

#include <signal.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/args.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/launchers.h"
#include "lib/recipe/owned.h"
#include "lib/recipe/rules_features.h"
#include "lib/recipe/rules_files.h"
#include "lib/recipe/rules_keys.h"
#include "lib/recipe/rules_types.h"

static bool template_has(const struct engine *e, const char *word)
{
	for (size_t i = 0; i < e->n_argv; i++)
		if (strstr(e->argv[i], word))
			return true;
	return false;
}

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
	if (template_has(e, "{argv}"))
		return "its program and words are engine.argv";
	if (template_has(e, "{entry}"))
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
		if (parts[i].given && !template_has(k->engine, parts[i].word) &&
		    !(mo_streq(parts[i].word, "{entry}") && entry_flag(k->engine)))
			errors_at(k->errors, PLACE(k, parts[i].path), NULL,
				  "%s: engine %s has no use for it: %s", parts[i].path, e->kind,
				  starts(k->engine));
	if (e->n_argv && !*e->argv[0])
		errors_at(k->errors, PLACE(k, "engine.argv", "engine"), NULL,
			  "engine.argv: its first word, the program, is empty");
	if (template_has(k->engine, "{argv}") && !e->n_argv)
		errors_at(k->errors, PLACE(k, "engine.argv", "engine"), NULL,
			  "missing key 'engine.argv': the program and its words");
	if (e->entry && rules_leads_out(e->entry))
		errors_at(k->errors, PLACE(k, "engine.entry"), NULL,
			  "engine.entry: '%s' may lead out of workdir: give a path below it "
			  "without '..', or an absolute one",
			  e->entry);
	check_entry_is_program(k);
	if (template_has(k->engine, "{entry}") && !e->entry && !k->engine->entry)
		errors_at(k->errors, PLACE(k, "engine"), NULL,
			  "missing key 'engine.entry': the script to run");
	if (k->engine->needs_steps && k->recipe->steps == MO_NONE &&
	    (k->recipe->experiment_hash || !recipe_leaves(k->recipe, "steps")))
		errors_at(k->errors, k->root, NULL,
			  "missing key 'steps': engine %s trains to a number of iterations",
			  e->kind);
}

/* Does some flag row or some word of the recipe itself carry the path to the engine? */
static bool carried(const struct rules *k, const char *path)
{
	_cleanup_(mo_freep) char *braces = mo_printf("{%s}", path);

	for (size_t i = 0; i < k->engine->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row =
			flag_row(k->recipe, &k->engine->flags[i]);

		if ((mo_streq(row.path, path) && row.carried) ||
		    strstr(k->engine->flags[i].value, braces))
			return true;
	}
	return rules_in_words(k, path);
}

/* Values that are nobody's but the engine's. dp follows from the rest; checkpoint.dir is also in
 * the environment. */
static const char *const engine_values[] = {
	"parallelism.tp",
	"parallelism.pp",
	"parallelism.vpp",
	"parallelism.ep",
	"parallelism.etp",
	"parallelism.cp",
	"parallelism.sharding",
	"parallelism.schedule",
	"batch.seq",
	"batch.micro",
	"batch.global",
	"precision",
	"recompute",
	"checkpoint.every",
	"model.mtp",
	"model.window",
};

/* Values that ask for what an engine does anyhow. */
static bool asks_default(const char *path, const char *value)
{
	return !value || mo_streq(value, "1") || mo_streq(value, "0") || mo_streq(value, "none") ||
	       mo_streq(value, "1f1b") ||
	       (mo_streq(path, "parallelism.schedule") && mo_streq(value, "interleaved"));
}

/* A script that takes none of the sizes would run without what the planner chooses. */
static bool states_sizes(const struct rules *k)
{
	for (size_t i = 0;
	     i < ELEMENTSOF(engine_values) && mo_starts_with(engine_values[i], "parallelism."); i++)
		if (carried(k, engine_values[i]))
			return true;
	return false;
}

/* An engine that has the model from a configuration of its own may route otherwise than the
 * recipe says; a catalogue's model is the published one for both. */
static void check_routing(struct rules *k)
{
	const struct recipe_moe *m = k->recipe->model ? k->recipe->model->moe : NULL;

	if (m && m->groups > 0 && k->engine->n_flags && ynode_find(k->root, "model.moe.groups") &&
	    !carried(k, "model.moe.groups"))
		rules_warn(k, PLACE(k, "model.moe.groups", "model"),
			   "model.moe.groups: engine %s is not told: plans count experts in %lld "
			   "of %lld groups; see that its own configuration says the same, or give "
			   "it in engine.args",
			   k->recipe->engine.kind, (long long)m->topk_groups, (long long)m->groups);
}

static void check_carried(struct rules *k)
{
	_cleanup_(mo_buf_done) struct mo_buf plain = { 0 };
	const char *path_first = NULL;

	if (k->recipe->parallelism.automatic && !k->engine->n_flags && !states_sizes(k)) {
		mo_buf_str(&plain, "parallelism: auto");
		path_first = "parallelism.tp";
	}

	for (size_t i = 0; i < ELEMENTSOF(engine_values); i++) {
		const char *path = engine_values[i];
		const struct ynode *node = ynode_find(k->root, path);
		_cleanup_(mo_freep) char *value = recipe_value(k->recipe, path);
		bool catalogue = mo_starts_with(path, "model.") && !node;

		if ((!node && !catalogue) || asks_default(path, value) || carried(k, path))
			continue;
		const char *why = rules_missing(k->engine, path, value);

		if (k->engine->n_flags)
			errors_at(k->errors, PLACE(k, path, "model"), NULL,
				  "%s: engine %s has no setting for %s: %s", path,
				  k->recipe->engine.kind, value,
				  why ? why
				      : "leave it out, or give the engine's own flag in "
					"engine.args");
		else {
			mo_buf_printf(&plain, "%s%s", plain.len ? ", " : "", path);
			path_first = path_first ? path_first : path;
		}
	}
	check_routing(k);
	if (plain.len)
		rules_warn(k, PLACE(k, path_first, "parallelism"),
			   "engine %s is not told about %s: plans and displays use it; give it to "
			   "the program in engine.%s, e.g. as {%s}",
			   k->recipe->engine.kind, plain.data,
			   template_has(k->engine, "{argv}") ? "argv" : "args", path_first);
}

static bool same_value(const char *a, const char *b)
{
	double x, y;

	return (!a && !b) || mo_streq(a, b) || (a && b && strcasecmp(a, b) == 0) ||
	       (a && b && mo_parse_double(a, &x) == 0 && mo_parse_double(b, &y) == 0 && x == y);
}

/* Does the row add the flag to the command? *ret_value: the value it adds there (caller frees),
 * NULL for a bare flag. */
static bool row_has(const struct rules *k, const struct kv *flag_words, const struct flag_row *row,
		    const char *flag, char **ret_value)
{
	bool valued = !row->op && !strchr(flag_words->value, '{') &&
		      !mo_starts_with(row->path, "features."),
	     found = false;
	_cleanup_(mo_freep) char *expanded = recipe_expand(k->recipe, flag_words->value, NULL),
				 *words = valued ? mo_printf("%s %s", expanded, row->value)
						 : mo_strdup(expanded);

	for (const char *s = words; *s;) {
		size_t n = strcspn(s, " "), equals = strcspn(s, "= ");

		if (!found && equals < n && flag_same(flag, s, equals)) { /* key=value */
			*ret_value = mo_strndup(s + equals + 1, n - equals - 1);
			return true;
		}
		if (found && *s != '-')
			*ret_value = mo_strndup(s, n);
		if (found)
			return true;
		found = flag_same(flag, s, n);
		s += n + (s[n] == ' ');
	}
	return found;
}

/* Does the command say the same without it? */
static bool said_anyway(const struct args *command, const struct arg *arg, const char *value)
{
	for (size_t i = 0; i < command->n; i++) {
		const struct arg *own = &command->items[i];

		if (own->origin && flag_same(own->flag, arg->flag, strcspn(arg->flag, "=")) &&
		    same_value(own->value, value))
			return true;
	}
	return false;
}

/* May the row add the flag at all? Most rows do not, and reading one takes longer than this
 * look. What is filled in behind a flag is its value. */
static bool row_names(const struct kv *row, const char *flag)
{
	bool behind_flag = false;

	for (const char *s = row->value; *s; s += strcspn(s, " "), s += *s == ' ') {
		size_t n = strcspn(s, "= ");
		bool is_value = behind_flag && *s == '{';

		if (!is_value && (memchr(s, '{', n) || flag_same(flag, s, n)))
			return true;
		behind_flag = *s == '-' && s[n] != '=';
	}
	return false;
}

/* Does the row tell the engine another value by this flag (*ret_other: which, caller frees)?
 * Rows with '>' that do not apply leave the flag free unless they would carry the value itself,
 * and so do features that the recipe does not ask for. */
static bool row_contradicts(const struct rules *k, const struct kv *flag, const struct arg *arg,
			    const char *value, char **ret_other)
{
	/* What is told only because of the file gives way to engine.args. */
	if (!row_names(flag, arg->flag) || (strstr(flag->key, " if ") && !strchr(flag->value, '{')))
		return false;
	_cleanup_(flag_row_done) struct flag_row row = flag_row(k->recipe, flag);
	_cleanup_(mo_freep) char *added = NULL, *braces = mo_printf("{%s}", row.path);
	const struct ynode *said = ynode_find(k->root, row.path);

	/* A value of the engine's own experiment is what it says together with these arguments,
	 * also before it was read. */
	if ((said && said->left) || recipe_leaves(k->recipe, row.path))
		return false;
	bool carries = strstr(flag->value, braces);

	if (!row.value ||
	    (!row.applies && (mo_starts_with(row.path, "features.") || row.op == '~' ||
			      (row.op == '>' && !carries))) ||
	    !row_has(k, flag, &row, arg->flag, &added) ||
	    (!row.applies && row.op == '>' && same_value(added, value)))
		return false;
	/* What another value of the recipe would bring: only that very word says it. */
	if (!row.applies && row.op == '=' && !same_value(added, value))
		return false;
	*ret_other = mo_printf("%s %s", row.path, row.value);
	return true;
}

/* What the recipe says instead (caller frees). What a search has yet to choose follows
 * engine.args (trial.c). */
static char *contradicted(const struct rules *k, const struct arg *arg, const char *value)
{
	char *other = NULL;

	for (size_t i = 0; i < k->engine->n_flags && !other; i++)
		if (!k->recipe->parallelism.automatic ||
		    !mo_starts_with(k->engine->flags[i].key, "parallelism."))
			(void)row_contradicts(k, &k->engine->flags[i], arg, value, &other);
	return other;
}

/* Is the row about this path? */
static bool row_of(const struct kv *flag, const char *path)
{
	size_t n = strlen(path);

	return strncmp(flag->key, path, n) == 0 &&
	       (!flag->key[n] || strchr(FLAG_ROW_OPS, flag->key[n]));
}

/* Does the argument say the path otherwise, and nothing that the recipe brings says the same
 * (caller frees)? */
static char *args_contradict(const struct rules *k, const char *path, const struct arg *arg,
			     const struct args *command)
{
	const char *value = k->engine->bool_words ? arg_text(arg) : arg->value;
	_cleanup_(mo_freep) char *other = NULL;

	if ((arg->off && !k->engine->bool_words) || rules_unchecked(k, arg->flag) ||
	    said_anyway(command, arg, value))
		return NULL;
	for (size_t i = 0; i < k->engine->n_flags && !other; i++)
		if (row_of(&k->engine->flags[i], path))
			(void)row_contradicts(k, &k->engine->flags[i], arg, value, &other);
	return other ? mo_printf("engine.args: %s%s%s contradicts %s", arg->flag, value ? " " : "",
				 value ? value : "", other)
		     : NULL;
}

char *rules_untold(const struct rules *k, const char *path)
{
	_cleanup_(mo_freep) char *value = recipe_value(k->recipe, path), *why = NULL;
	struct args given, command;

	if (k->engine->n_flags && !asks_default(path, value) && !carried(k, path))
		return mo_printf("%s: engine %s has no setting for %s", path,
				 k->recipe->engine.kind, value);
	args_read(k, &given);
	args_command(k, &command);
	for (size_t i = 0; i < given.n && !why; i++)
		why = args_contradict(k, path, &given.items[i], &command);
	args_done(&given);
	args_done(&command);
	return TAKE_PTR(why);
}

/* "parallelism.ep: 8": where a size belongs that the recipe does not give, and moectl therefore
 * takes as 1 (caller frees); NULL: elsewhere. */
static char *give_as(const struct rules *k, const char *other, const char *value)
{
	_cleanup_(mo_freep) char *path = mo_strndup(other, strcspn(other, " "));
	int64_t size;

	if (!mo_starts_with(path, "parallelism.") || ynode_find(k->root, path) || !value ||
	    mo_parse_i64(value, 1, INT32_MAX, &size) < 0)
		return NULL;
	return mo_printf("%s: %lld", path, (long long)size);
}

/* One flag of the args: what moectl decides itself is no business of theirs, and what a recipe
 * value says is said there. */
static void check_arg(struct rules *k, const struct args *command, const struct arg *arg)
{
	const char *value = k->engine->bool_words ? arg_text(arg) : arg->value,
		   *instead = owned_instead(k->engine, arg->flag);

	if (rules_said(k, arg->at_value) || said_anyway(command, arg, value))
		return;
	if (rules_unchecked(k, arg->flag)) {
		if (instead)
			rules_warn(k, arg->at_flag,
				   "engine.args: %s%s%s stands, as engine.args_unchecked says; "
				   "without that word: %s",
				   arg->flag, value ? " " : "", value ? value : "", instead);
		return;
	}
	_cleanup_(mo_freep) char *other = instead ? NULL : contradicted(k, arg, value),
				 *as = other ? give_as(k, other, value) : NULL;

	if (instead)
		errors_at(k->errors, arg->at_flag,
			  "engine.args_unchecked: [FLAG] lets it pass; moectl then no longer knows "
			  "what is saved and resumed",
			  "engine.args: %s is moectl's: %s", arg->flag, instead);
	else if (as)
		errors_at(k->errors, arg->at_value, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: %s %s: give it as %s: the command has %s where the recipe "
			  "says nothing",
			  arg->flag, value, as, other);
	else if (other)
		errors_at(k->errors, arg->at_value, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: %s%s%s contradicts %s: give it there only", arg->flag,
			  value ? " " : "", value ? value : "", other);
}

/* Two spellings of one flag: which of them counts is the engine's affair. */
static void check_twice(struct rules *k, const struct args *args, size_t i)
{
	const struct arg *arg = &args->items[i];

	for (size_t before = 0; before < i && ynode_find(k->root, "engine.args")->kind == YAML_MAP;
	     before++)
		if (flag_same(args->items[before].flag, arg->flag, strlen(arg->flag)) &&
		    !rules_unchecked(k, arg->flag)) {
			errors_at(k->errors, arg->at_flag, NULL,
				  "engine.args: %s and %s are the same flag: give it once",
				  args->items[before].flag, arg->flag);
			return;
		}
}

/* Words that were written as they are reach the program as they are. */
static void check_main_word(struct rules *k, const struct arg *arg)
{
	if (k->recipe->engine.args_list && mo_starts_with(arg->flag, "--") &&
	    engine_takes_itself(k->engine, arg->flag) && !rules_unchecked(k, arg->flag))
		errors_at(k->errors, arg->at_flag, "engine.args_unchecked: [FLAG] lets it pass",
			  "engine.args: %s: the engine's program takes this word for itself, and "
			  "training never sees it: write %s=VALUE as one word",
			  arg->flag, arg->flag + strspn(arg->flag, "-"));
}

static void check_args(struct rules *k)
{
	struct args args, command;

	args_read(k, &args);
	args_command(k, &command);
	for (size_t i = 0; i < args.n; i++) {
		if (rules_dropped(k->engine, args.items[i].flag) &&
		    !rules_unchecked(k, args.items[i].flag))
			continue; /* rules_keys() says so */
		check_twice(k, &args, i);
		check_main_word(k, &args.items[i]);
		if (!args.items[i].off || k->engine->bool_words)
			check_arg(k, &command, &args.items[i]);
	}
	args_done(&args);
	args_done(&command);
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
	check_carried(k);
	rules_features(k);
	rules_keys(k);
	check_args(k);
	rules_types(k);
	rules_files(k);
	check_words(k);
}
