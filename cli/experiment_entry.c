/* An experiment that is not where engine.entry says (experiment.h): a mistyped name where the
 * engine's files are, or a file that only the nodes have. */
#include "cli/experiment_entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/places.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

/* Outside of the checkout a path that begins nowhere here may be one of the nodes. */
static bool of_nodes(const char *workdir, const char *path)
{
	_cleanup_(mo_freep) char *root = mo_printf("%s/", workdir);
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *dir = mo_strndup(path, slash ? (size_t)(slash - path) : 0);

	return *path == '/' && !mo_starts_with(path, root) && access(dir, F_OK) < 0;
}

int experiment_missing(const struct recipe_input *in, const char *file, int why)
{
	const char *workdir = in->recipe.engine.workdir;
	_cleanup_(mo_freep) char *presets = workdir ? places_below(workdir, PLACES_PRESETS) : NULL;
	bool none = why == -ENOENT || why == -ENOTDIR;

	/* The other files of an image are not here. */
	if (in->recipe.engine.container || !file || !presets || access(presets, F_OK) < 0 ||
	    (!none && why != -EISDIR))
		return 0;
	/* engine.prepare may make it on the node. */
	if (none && (in->recipe.engine.prepare || in->recipe.engine.n_prepare_argv ||
		     of_nodes(workdir, file)))
		return 0;
	_cleanup_(mo_freep) char *near = none ? places_meant(workdir, file) : NULL;
	_cleanup_(mo_freep) char *whole = places_below(workdir, file);
	_cleanup_(mo_freep) char *path = visible(whole), *other = near ? visible(near) : NULL;

	fprintf(stderr, "%s: engine.entry: %s: %s; ", in->file, path,
		none ? "no such file" : "a directory");
	if (other)
		fprintf(stderr, "did you mean '%s'?\n", other);
	else
		fputs("give the experiment's file, below engine.workdir or absolute\n", stderr);
	return CLI_USAGE;
}
