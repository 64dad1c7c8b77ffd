/* The recipe of `moectl init` against what it was made from: the same checks as a submit makes,
 * then what a rank of it would run. */
#include "cli/init_compare.h"

#include <stdlib.h>
#include <string.h>

#include "cli/experiment.h"
#include "cli/options.h"
#include "cli/recipe_check.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/draft_text.h"
#include "lib/recipe/word_flags.h"

#define TEXT_MAX 100 /* of a value that is shown */

#define differ(i, ...) mo_strs_printf(&(i)->differ, &(i)->n_differ, __VA_ARGS__)

static char *shown(const struct config_value *v)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!v)
		return mo_strdup("nothing");
	config_json(v, &b);
	return b.len > TEXT_MAX ? mo_printf("%.*s...", TEXT_MAX, b.data) : mo_strdup(b.data);
}

static const struct config_value *item_of(const struct config_item *items, size_t n,
					  const char *key)
{
	size_t low = 0;

	for (; low < n; low++)
		if (mo_streq(items[low].key, key))
			return items[low].value;
	return NULL;
}

/* FILE:LINE, the recipe's key that the word comes from, or that the engine's file adds it. */
static char *source_of(const struct experiment *x, const struct rank_command *c,
		       const struct config_value *v)
{
	if (!v)
		return mo_strdup("it is gone");
	if (v->place.file >= 0 && (size_t)v->place.file < x->n_files)
		return mo_printf("%s:%lld", x->files[v->place.file], (long long)v->place.line);
	size_t word = (size_t)v->place.word;
	const char *path =
		v->place.word >= 0 && word < c->origins.n ? c->origins.items[word] : NULL;

	return mo_strdup(path ? path : INIT_ENGINES_WORD);
}

static bool same_value(const struct config_value *a, const struct config_value *b)
{
	_cleanup_(mo_buf_done) struct mo_buf x = { 0 }, y = { 0 };

	if (!a || !b)
		return a == b;
	config_json(a, &x);
	config_json(b, &y);
	return mo_streq(x.data, y.data);
}

static void compare_maps(struct init *i, const struct experiment *was, const struct experiment *is,
			 const struct rank_command *c)
{
	struct config_item *a = NULL, *b = NULL;
	size_t n_a = 0, n_b = 0;

	config_items(was->merged, &a, &n_a);
	config_items(is->merged, &b, &n_b);
	for (size_t k = 0; k < n_a + n_b; k++) {
		const char *key = k < n_a ? a[k].key : b[k - n_a].key;
		const struct config_value *v = item_of(b, n_b, key), *o = item_of(a, n_a, key);

		if (k >= n_a && o)
			continue;
		i->n_compared++;
		if (same_value(o, v)) {
			i->n_same++;
			continue;
		}
		_cleanup_(mo_freep) char *before = shown(o), *now = shown(v),
					 *why = source_of(is, c, v);
		differ(i, "%s is %s in the original and %s here (%s)", key, before, now, why);
	}
	config_items_free(a, n_a);
	config_items_free(b, n_b);
}

/* What the original's own command makes of it, in the directory and environment of a rank. */
static int original_of(const struct init *i, struct recipe_input *in, struct experiment *ret,
		       struct mo_error *err)
{
	_cleanup_(rank_command_done) struct rank_command c = { 0 };
	char **argv = in->engine.argv;
	size_t n = in->engine.n_argv;

	in->engine.argv = i->line.program;
	in->engine.n_argv = i->line.n_program;
	int r = experiment_of(in, ret, &c, err);
	in->engine.argv = argv;
	in->engine.n_argv = n;
	return r;
}

static int compare_experiment(struct init *i, struct recipe_input *in)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(rank_command_done) struct rank_command c = { 0 };
	struct experiment was = { 0 }, is = { 0 };
	int r = original_of(i, in, &was, &err);

	if (r >= 0)
		r = experiment_of(in, &is, &c, &err);
	if (r < 0) {
		experiment_done(&was);
		return init_refuse(i, mo_error_text(&err, r),
				   err.hint ? err.hint : "the engine would not load it");
	}
	i->of_keys = true;
	compare_maps(i, &was, &is, &c);
	experiment_done(&was);
	experiment_done(&is);
	return 0;
}

/* ---- words ---- */

static void compare_flag(struct init *i, const struct word_flag *f, const struct word_flag *o,
			 const char *path)
{
	_cleanup_(mo_freep) char *now = word_flag_text(f), *before = o ? word_flag_text(o) : NULL;

	i->n_compared++;
	if (o && word_flag_same(o, f))
		i->n_same++;
	else if (o)
		differ(i, "%s here instead of %s (%s)", now, before,
		       path ? path : INIT_ENGINES_WORD);
	else
		differ(i, "%s" INIT_ADDED " (%s)", now, path ? path : INIT_ENGINES_WORD);
}

static bool in_lost(const struct init *i, const char *text)
{
	for (size_t k = 0; k < i->draft.n_lost; k++)
		if (mo_starts_with(i->draft.lost[k], text))
			return true;
	return false;
}

/* Words before the first flag, and flags of the original that a rank does not get, nor was told
 * why. */
static void compare_gone(struct init *i, const struct word_flags *was, const struct word_flags *is)
{
	for (size_t k = 0; k < was->n; k++) {
		const struct word_flag *f = &was->items[k];
		_cleanup_(mo_freep) char *text = word_flag_text(f);
		const struct word_flag *now = word_flags_find(is, f->name);

		for (size_t m = 0; !f->name && m < is->n; m++)
			if (!is->items[m].name && word_flag_same(&is->items[m], f))
				now = &is->items[m];
		if (f->name && word_flags_find(was, f->name) != f)
			continue; /* said again later */
		if (now)
			continue;
		i->n_compared++;
		if (mo_streq(text, i->draft.loads))
			i->n_same++;
		else if (!in_lost(i, text))
			differ(i, "%s of the original is not here", text);
	}
}

/* Of a command: the words behind the program. */
static size_t program_words(const struct engine *e, char *const *words, size_t n)
{
	size_t at = 0;

	while (at < n && (at == 0 || words[at][0] != '-' || mo_streq(words[at], "-m")) &&
	       at < e->n_argv && !mo_streq(e->argv[at], "{args}"))
		at++;
	return at;
}

static int compare_words(struct init *i, const struct recipe_input *in)
{
	struct word_origins origins = { 0 };
	struct word_flags was, is;
	char **words = NULL;
	size_t n = 0, first, own = i->used;

	engine_argv_origins(&in->engine, &in->recipe, &words, &n, &origins);
	first = mo_streq(i->draft.kind, "command") ? 1 : program_words(&in->engine, words, n);
	word_flags_read(i->line.program + own, i->line.n_program - own, &was);
	word_flags_read(words + first, n - first, &is);
	for (size_t k = 0; k < is.n; k++) {
		const struct word_flag *f = &is.items[k], *o = NULL;

		if (f->name && word_flags_find(&is, f->name) != f)
			continue;
		o = word_flags_find(&was, f->name);
		for (size_t m = 0; !f->name && m < was.n; m++)
			if (!was.items[m].name && word_flag_same(&was.items[m], f))
				o = &was.items[m];
		compare_flag(i, f, o, origins.items[first + f->from]);
	}
	compare_gone(i, &was, &is);
	word_flags_done(&was);
	word_flags_done(&is);
	mo_strs_clear(&words, &n);
	word_origins_done(&origins);
	return 0;
}

/* "LINE:COLUMN: text" of a draft: the text, which names the key. That nothing is saved, and what
 * only a shell knows, init says in its own words. */
static void take_warnings(struct init *i, const struct recipe_input *in)
{
	for (size_t k = 0; k < in->n_warnings; k++) {
		const char *text = in->warnings[k];
		size_t place = strspn(text, "0123456789:");

		text += place && text[place] == ' ' ? place + 1 : 0;
		if (!mo_starts_with(text, "checkpoint.dir: not given: ") &&
		    !strstr(text, ": no shell reads a recipe"))
			init_note(i, "%s", text);
	}
}

int init_compare(struct cli *cli, struct init *i)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	char *text = draft_text(&i->draft, NULL, 0);

	recipe_input_init(&in);
	in.file = i->is_line ? "init" : i->label;
	in.draft = true;
	in.said = i->draft.said;
	in.n_said = i->draft.n_said;
	mo_buf_str(&in.text, text);
	free(text);
	int r = recipe_input_check(cli, &in);
	if (r) {
		cli_fail(r,
			 "init: %s: the recipe that it gives is refused as said above, and was not "
			 "written; change what it names, or write the recipe yourself "
			 "(docs/recipe.md)",
			 i->label);
		return r;
	}
	take_warnings(i, &in);
	return engine_has_values(&in.engine) ? compare_experiment(i, &in) : compare_words(i, &in);
}
