/* Rules for checkpoint.layout and checkpoint.resume_args (layout_text.c), and what follows for the
 * engine: the layout becomes its own, checkpoint.resume_args its words for a resume. */
#include "lib/recipe/rules_layout.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/layout_text.h"

#define HOLE LAYOUT_HOLE

static void check_layout(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;
	const struct ynode *at = PLACE(k, "checkpoint.layout");
	bool unnumbered = !strstr(c->layout, HOLE);

	if (!k->engine->layout.announced_is_complete) {
		errors_at(k->errors, at, NULL,
			  "checkpoint.layout: engine %s has a layout of its own: leave it out, or "
			  "use engine.kind torch or command",
			  k->recipe->engine.kind);
		return;
	}
	if (unnumbered && c->keep > 0)
		errors_at(k->errors, PLACE(k, "checkpoint.keep"), NULL,
			  "checkpoint.keep: '%.128s' is written over by each save: there is "
			  "nothing older to remove; leave it out",
			  c->layout);
	if (!c->n_resume_args && !k->engine->n_resume)
		rules_warn(k, at,
			   "checkpoint.layout: no word tells the program to resume: give it in "
			   "checkpoint.resume_args, e.g. [--init_from=resume], unless it goes on "
			   "by itself (MOE_RESUME_ITERATION)");
	if (unnumbered)
		rules_warn(k, at,
			   "checkpoint.layout: each save writes over '%.128s'; a copy of the last "
			   "whole one is kept in .moe-kept beside it: blocks are shared where the "
			   "file system can, elsewhere it takes as much room again",
			   c->layout);
}

static void check_resume_args(struct rules *k)
{
	const struct ynode *list = ynode_find(k->root, "checkpoint.resume_args");

	if (k->engine->n_resume) {
		errors_at(k->errors, PLACE(k, "checkpoint.resume_args"), NULL,
			  "checkpoint.resume_args: engine %s resumes by flags of its own: leave it "
			  "out",
			  k->recipe->engine.kind);
		return;
	}
	for (size_t i = 0; list && list->kind == YAML_LIST && i < list->n; i++) {
		const struct ynode *v = list->items[i].value;
		const char *missing = NULL;
		_cleanup_(mo_freep) char *word =
			v->kind == YAML_SCALAR ? recipe_expand(k->recipe, v->text, &missing) : NULL;

		if (missing)
			errors_at(k->errors, v, NULL,
				  "checkpoint.resume_args: '%.60s' needs %s, which the recipe does "
				  "not give",
				  v->text, missing);
		for (const char *open = word ? strchr(word, '{') : NULL; open && !missing;
		     open = strchr(open + 1, '{')) {
			size_t n = strspn(open + 1, "abcdefghijklmnopqrstuvwxyz_.");

			if (n > 0 && open[n + 1] == '}' && !mo_starts_with(open, HOLE) &&
			    !mo_starts_with(open, "{dir}"))
				errors_at(k->errors, v, NULL,
					  "checkpoint.resume_args: unknown placeholder '%.*s': "
					  "expected {iteration}, {dir} or a value of the recipe",
					  (int)MO_MIN(n + 2, (size_t)64), open);
		}
	}
}

void layout_rules(struct rules *k)
{
	const struct recipe_checkpoint *c = &k->recipe->checkpoint;

	if (c->layout && c->dir)
		check_layout(k);
	if (c->n_resume_args && c->dir)
		check_resume_args(k);
}

void layout_apply(const struct recipe *r, struct engine *e)
{
	const struct recipe_checkpoint *c = &r->checkpoint;

	if (c->layout)
		layout_from_text(c->layout, &e->layout);
	for (size_t i = 0; i < c->n_resume_args; i++) {
		_cleanup_(mo_freep) char *word = recipe_expand(r, c->resume_args[i], NULL);

		mo_strs_add(&e->resume, &e->n_resume, word);
	}
}
