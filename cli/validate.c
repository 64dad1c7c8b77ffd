/* validate: the recipe check of the controller, offline. */
#include "cli/validate.h"

#include "cli/options.h"
#include "cli/places.h"
#include "cli/recipe_check.h"
#include "cli/visible.h"

/* A warning has said it where sizes are left to the file. */
static void print_valid(const struct recipe_input *in)
{
	const struct recipe *r = &in->recipe;
	_cleanup_(mo_freep) char *file = in->unread && !r->unread ? visible(in->unread) : NULL;

	printf("%s: valid: %s, %lld ranks, engine %s%s%s%s\n", in->file, r->name,
	       (long long)r->gpus, r->engine.kind, file ? "; not judged here: " : "",
	       file ? file : "",
	       file ? ", which the job's first node reads and judges before its ranks start" : "");
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	struct strs sets = { 0 };
	const struct opt opts[] = { { "set", 0, OPT_STRS, &sets } };
	_cleanup_(recipe_input_done) struct recipe_input in;
	recipe_input_init(&in);
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	for (size_t i = 0; i < sets.n && !r; i++)
		r = recipe_input_set(cli, &in, sets.items[i]);
	free(sets.items);
	if (r)
		return cli_stop(r);
	if ((r = recipe_input_read(&in, args[0])) || (r = recipe_input_check(cli, &in)) ||
	    (r = places_check(cli, &in)))
		return r;
	if (cli->json)
		puts("{\"valid\":true}");
	else
		print_valid(&in);
	return CLI_OK;
}

const struct verb verb_validate = {
	"validate",
	"Prepare",
	"validate RECIPE [--set key=value]...",
	"check a recipe without a cluster",
	"Errors name FILE:LINE:COL, what was expected and the nearest key. RECIPE - is standard "
	"input.\n  --set key=value   as in submit\n",
	run,
	.examples = "  moectl validate recipe.yaml --set cluster.gpus=64\n",
};
