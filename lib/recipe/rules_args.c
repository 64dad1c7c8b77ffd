/* engine.args against the recipe: words that say a value otherwise, twice, or where only the
 * recipe may say it. */
#include "lib/recipe/rules_args.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/recipe/args.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/owned.h"
#include "lib/recipe/rules_carried.h"
#include "lib/recipe/rules_keys.h"

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
	/* What is given only because of the file gives way to engine.args. */
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

	if ((arg->off && !k->engine->bool_words) || rules_unchecked(k, arg->flag))
		return NULL;
	for (size_t i = 0; i < k->engine->n_flags && !other; i++)
		if (row_of(&k->engine->flags[i], path))
			(void)row_contradicts(k, &k->engine->flags[i], arg, value, &other);
	return other && !said_anyway(command, arg, value)
		       ? mo_printf("engine.args: %s%s%s contradicts %s", arg->flag,
				   value ? " " : "", value ? value : "", other)
		       : NULL;
}

char *rules_not_given(const struct rules *k, const char *path)
{
	_cleanup_(mo_freep) char *value = recipe_value(k->recipe, path), *why = NULL;
	struct args given, command;

	if (k->engine->n_flags && !rules_asks_default(path, value) && !rules_carried(k, path))
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

void rules_args(struct rules *k)
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
