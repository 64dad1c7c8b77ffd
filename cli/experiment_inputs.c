/* Files that the engine's configuration names and that are not here (experiment.h): a mistyped
 * path where the engine's files are, or a file that only the nodes have. It is reported and nothing
 * is refused: the node checks again before the ranks start. */
#include "cli/experiment_inputs.h"

#include <stdio.h>
#include <string.h>

#include "cli/places.h"
#include "cli/visible.h"
#include "lib/recipe/config_inputs.h"
#include "lib/recipe/yaml.h"

static bool may_be_there(void *arg, const char *path)
{
	return places_may_have(arg, path);
}

static const struct ynode *node_of(const struct ynode *root, const char *path)
{
	static const char begins[] = "engine.args.";
	const struct ynode *args = ynode_find(root, "engine.args");

	if (mo_starts_with(path, begins) && args)
		return ynode_get(args, path + strlen(begins));
	return ynode_find(root, path);
}

/* Where the recipe's file says it; a --set, and a word of a list, have no line. */
static char *place_in_recipe(const struct recipe_input *in, const char *path)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(ynode_freep) struct ynode *root =
		yaml_load(in->text.data ? in->text.data : "", in->text.len, "recipe", &errors);
	const struct ynode *n = root ? node_of(root, path) : NULL;

	for (size_t i = 0; i < in->n_sets; i++)
		if (mo_streq(in->sets[i].key, path))
			n = NULL;
	return n && !in->draft ? mo_printf("%s:%lld:%lld", in->file, (long long)n->line,
					   (long long)n->column)
			       : mo_printf("%s: %s", in->file, path);
}

void experiment_inputs(const struct recipe_input *in, const struct experiment *x,
		       const struct config_teller *t)
{
	const struct recipe_engine *e = &in->recipe.engine;
	bool prepares = e->prepare || e->n_prepare_argv || in->engine.n_prepare;
	struct config_missing *items = NULL;
	size_t n = 0;

	config_inputs(in->engine.inputs, in->engine.n_inputs, x, may_be_there, (void *)in, &items,
		      &n);
	for (size_t i = 0; i < n; i++) {
		struct config_source from = config_source(t, items[i].value->place);
		_cleanup_(mo_freep) char *moectl = from.moectl;
		_cleanup_(mo_freep) char *place =
			from.recipe ? place_in_recipe(in, from.recipe)
				    : experiment_place(x, items[i].value->place);
		_cleanup_(mo_freep) char *text =
			mo_printf("%s: warning: %s: %s: no such file here; where it is not on the "
				  "nodes either%s, the job ends before its ranks start",
				  place, items[i].key, items[i].path,
				  prepares ? ", and engine.prepare does not make it" : "");
		_cleanup_(mo_freep) char *shown = visible(text);

		fprintf(stderr, "%s\n", shown);
	}
	config_missing_free(items, n);
}
