/* What moectl tells of an experiment that it has read: what was given, what overrides what. */
#include "cli/experiment_notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/experiment_inputs.h"
#include "cli/experiment_keys.h"
#include "cli/experiment_model.h"
#include "cli/experiment_types.h"
#include "cli/visible.h"
#include "lib/base/parse.h"
#include "lib/recipe/argv.h"

#define NOTES_MAX 20 /* overrides that are listed one by one */

void experiment_tell_shell(const struct recipe_input *in, const char *note)
{
	_cleanup_(mo_freep) char *shown = note ? visible(note) : NULL;

	if (shown)
		fprintf(stderr, "%s: note: %s\n", in->file, shown);
}

struct config_given experiment_given_of(const struct recipe_input *in, const struct rank_command *c)
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

/* How many were listed, and of which file last: of the next ones its name alone is said. */
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
	/* Engines without an experiment are given all sizes: a file of theirs does not stand
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

void experiment_notes(const struct recipe_input *in, const struct experiment *x,
		      const struct rank_command *c)
{
	const struct config_given given = experiment_given_of(in, c);
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
