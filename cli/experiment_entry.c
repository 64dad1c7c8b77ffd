/* An experiment that is not where engine.entry says (experiment.h): a mistyped name where the engine's files are, or a file that only the
 * nodes have. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/experiment.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"

#define PRESETS "primus/configs" /* what only a checkout has */

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

static char *below(const char *dir, const char *path)
{
	return *path == '/' ? mo_strdup(path) : mo_printf("%s/%s", dir, path);
}

/* A name of the directory that is like this one; NULL: none is. The caller frees it. */
static char *like(const char *dir, const char *name)
{
	_cleanup_(closedirp) DIR *d = opendir(dir);
	char **names = NULL;
	size_t n = 0;

	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
		if (e->d_name[0] != '.')
			mo_strs_add(&names, &n, e->d_name);
	const char *near = mo_near_miss(name, (const char *const *)names, n);
	char *ret = near ? mo_strdup(near) : NULL;

	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return ret;
}

/* The path with another name in place of the first that is not there; NULL: none is like it. */
static char *meant(const char *workdir, const char *path)
{
	for (size_t at = strspn(path, "/"); path[at];) {
		size_t end = at + strcspn(path + at, "/");
		_cleanup_(mo_freep) char *part = mo_strndup(path, end);
		_cleanup_(mo_freep) char *whole = below(workdir, part);

		if (access(whole, F_OK) == 0) {
			at = end + strspn(path + end, "/");
			continue;
		}
		_cleanup_(mo_freep) char *name = mo_strndup(path + at, end - at);

		whole[strlen(whole) - strlen(name)] = '\0';
		_cleanup_(mo_freep) char *other = like(whole, name);
		_cleanup_(mo_freep) char *found =
			other ? mo_printf("%.*s%s%s", (int)at, path, other, path + end) : NULL;
		_cleanup_(mo_freep) char *there = found ? below(workdir, found) : NULL;

		if (!there || access(there, F_OK) == 0)
			return TAKE_PTR(found);
		return mo_printf("%.*s%s", (int)at, path, other);
	}
	return NULL;
}

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
	_cleanup_(mo_freep) char *presets = workdir ? below(workdir, PRESETS) : NULL;
	bool none = why == -ENOENT || why == -ENOTDIR;

	if (!file || !presets || access(presets, F_OK) < 0 || (!none && why != -EISDIR))
		return 0;
	/* engine.prepare may make it on the node. */
	if (none && (in->recipe.engine.prepare || in->recipe.engine.n_prepare_argv ||
		     of_nodes(workdir, file)))
		return 0;
	_cleanup_(mo_freep) char *near = none ? meant(workdir, file) : NULL;
	_cleanup_(mo_freep) char *whole = below(workdir, file);
	_cleanup_(mo_freep) char *path = visible(whole), *other = near ? visible(near) : NULL;

	fprintf(stderr, "%s: engine.entry: %s: %s; ", in->file, path,
		none ? "no such file" : "a directory");
	if (other)
		fprintf(stderr, "did you mean '%s'?\n", other);
	else
		fputs("give the experiment's file, below engine.workdir or absolute\n", stderr);
	return CLI_USAGE;
}
