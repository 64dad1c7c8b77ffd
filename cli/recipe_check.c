/* The offline check of a recipe (recipe_check.h): it is parsed, then read again by what lies on
 * this machine: the version of the engine's tree, and the engine's own experiment. */
#include "cli/recipe_check.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/experiment.h"
#include "cli/places.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/recipe_file.h"

static int parse(struct recipe_input *in, struct recipe_errors *errors)
{
	for (size_t i = 0; i < in->n_warnings; i++)
		free(in->warnings[i]);
	free(in->warnings);
	in->warnings = NULL;
	in->n_warnings = 0;
	recipe_errors_done(errors);
	errors->keep = in->explaining;
	return recipe_parse(in->text.data ? in->text.data : "", in->text.len, in->sets, in->n_sets,
			    &in->recipe, &in->engine, &in->warnings, &in->n_warnings, errors);
}

static bool in_tree(void *arg, const char *file)
{
	const struct recipe_input *in = arg;
	_cleanup_(mo_freep) char *path = places_below(in->recipe.engine.workdir, file);
	_cleanup_(mo_freep) char *seen = places_seen(in, path);

	return access(seen, F_OK) == 0;
}

/* A tree that lies here and is of another version than the engine's file is read by the file of
 * that one. */
static int take_version(struct recipe_input *in, struct recipe_errors *errors)
{
	const char *dir = in->recipe.engine.workdir;
	const char *kind = dir ? engine_version_of_tree(&in->engine, in_tree, in) : NULL;

	if (!kind)
		return 0;
	fprintf(stderr,
		"%s: note: engine.workdir holds another version of %s: taken as engine.kind %s\n",
		in->file, in->recipe.engine.kind, kind);
	recipe_input_option(in, "engine.workdir", "engine.kind", kind);
	return parse(in, errors);
}

int recipe_input_check(struct cli *cli, struct recipe_input *in)
{
	struct recipe_errors *errors = &in->failed;

	in->checked = true;
	int r = parse(in, errors);
	if (r < 0 && !errors->retained)
		return recipe_input_refuse(cli, in, errors);
	if (!r && take_version(in, errors) < 0 && !errors->retained)
		return recipe_input_refuse(cli, in, errors);
	if ((in->engine.experiment || in->engine.n_config_files) && (r = experiment_read_for(in)))
		return r;
	if (in->experiment && parse(in, errors) < 0 && !errors->retained)
		return recipe_input_refuse(cli, in, errors);
	if (in->experiment)
		experiment_read_again(in);
	if (in->experiment && !errors->n && parse(in, errors) < 0 && !errors->retained)
		return recipe_input_refuse(cli, in, errors);
	for (size_t i = 0; i < in->n_warnings && !recipe_input_refused(in) && !in->draft; i++)
		recipe_print_warning(in->file, in->warnings[i]);
	return 0;
}
