/* See places.h. */
#include "cli/places.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/set.h"
#include "lib/recipe/tree.h"

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

char *places_below(const char *dir, const char *path)
{
	return *path == '/' ? mo_strdup(path) : mo_printf("%s/%s", dir, path);
}

char *places_seen(const struct recipe_input *in, const char *path)
{
	const struct recipe_container *c = in->recipe.engine.container;
	const struct container_mount *m = c ? container_mount_of(c, path) : NULL;
	/* of a store nothing is said: there is no such path */
	const char *image = !c                                 ? ""
			    : mo_starts_with(c->image, "dir:") ? c->image + strlen("dir:")
							       : c->image;
	_cleanup_(mo_freep) char *config = mo_printf("%s/config.json", image),
				 *rootfs = mo_printf("%s/rootfs", image);

	if (m)
		return container_on_node(c, path);
	return mo_printf("%s%s",
			 c && access(config, F_OK) == 0 && access(rootfs, F_OK) == 0 ? rootfs
										     : image,
			 path);
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

char *places_meant(const char *workdir, const char *path)
{
	for (size_t at = strspn(path, "/"); path[at];) {
		size_t end = at + strcspn(path + at, "/");
		_cleanup_(mo_freep) char *part = mo_strndup(path, end);
		_cleanup_(mo_freep) char *whole = places_below(workdir, part);

		if (access(whole, F_OK) == 0) {
			at = end + strspn(path + end, "/");
			continue;
		}
		_cleanup_(mo_freep) char *name = mo_strndup(path + at, end - at);

		whole[strlen(whole) - strlen(name)] = '\0';
		_cleanup_(mo_freep) char *other = like(whole, name);
		_cleanup_(mo_freep) char *found =
			other ? mo_printf("%.*s%s%s", (int)at, path, other, path + end) : NULL;
		_cleanup_(mo_freep) char *there = found ? places_below(workdir, found) : NULL;

		if (!there || access(there, F_OK) == 0)
			return TAKE_PTR(found);
		return mo_printf("%.*s%s", (int)at, path, other);
	}
	return NULL;
}

static bool is_here(const char *path)
{
	return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool places_may_have(const struct recipe_input *in, const char *path)
{
	const char *dir = in->recipe.engine.workdir;
	_cleanup_(mo_freep) char *root = dir ? mo_printf("%s/", dir) : NULL;
	_cleanup_(mo_freep) char *whole = *path == '/' ? mo_strdup(path)
					  : dir        ? mo_printf("%s/%s", dir, path)
						       : NULL;

	if (!whole || is_here(whole))
		return true;
	const char *slash = strrchr(path, '/');
	_cleanup_(mo_freep) char *parent = mo_strndup(path, slash ? (size_t)(slash - path) : 0);

	return *path != '/' || mo_starts_with(path, root ? root : "//")
		       ? access(dir, F_OK) < 0
		       : !*parent || access(parent, F_OK) < 0;
}

struct pass {
	const struct recipe_input *in;
	struct ynode *root; /* the recipe, read when something is wrong */
	struct recipe_errors errors;
};

static void pass_done(struct pass *l)
{
	ynode_free(l->root);
	recipe_errors_done(&l->errors);
}

/* Where the recipe says it, else where it could. */
static const struct ynode *node_of(struct pass *l, const char *path)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	const struct recipe_input *in = l->in;

	if (!l->root)
		l->root = recipe_tree(in->text.data ? in->text.data : "", in->text.len, in->sets,
				      in->n_sets, &errors);
	const struct ynode *n = ynode_find(l->root, path);

	return n ? n : l->root;
}

/* node: where the recipe says it. */
_printf_(3, 4) static void warn(struct pass *l, const struct ynode *node, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	va_end(ap);
	_cleanup_(mo_freep) char *placed =
		node->set ? mo_printf("%s: %s", node->set, text)
			  : mo_printf("%lld:%lld: %s", (long long)node->line,
				      (long long)node->column, text);

	recipe_print_warning(l->in->file, placed);
}

/* The first part of the path that is here and no directory; NULL: there is none. Caller frees. */
static char *in_the_way(const char *path)
{
	struct stat st;

	for (size_t at = strspn(path, "/"); path[at];) {
		size_t end = at + strcspn(path + at, "/");
		_cleanup_(mo_freep) char *part = mo_strndup(path, end);

		if (stat(part, &st) < 0)
			return NULL;
		if (!S_ISDIR(st.st_mode))
			return TAKE_PTR(part);
		at = end + strspn(path + end, "/");
	}
	return NULL;
}

static void check_directory(struct pass *l, const char *key, const char *dir)
{
	_cleanup_(mo_freep) char *file = dir ? in_the_way(dir) : NULL;

	if (file)
		errors_at(&l->errors, node_of(l, key), NULL,
			  "%s: %s is a file, and a directory is needed here", key, file);
}

/* "; did you mean 'x'?" or "". Caller frees. */
static char *or_meant(const char *dir, const char *path)
{
	_cleanup_(mo_freep) char *near = places_meant(dir, path);

	return near ? mo_printf("; did you mean '%s'?", near) : mo_strdup("");
}

/* A directory that is not here may be one of the nodes: it is reported only where one beside it has
 * nearly its name. */
static bool workdir_here(struct pass *l)
{
	const char *dir = l->in->recipe.engine.workdir;
	struct stat st;

	if (!dir)
		return false;
	if (stat(dir, &st) == 0)
		return S_ISDIR(st.st_mode);
	bool none = errno == ENOENT;
	_cleanup_(mo_freep) char *parent = mo_strndup(dir, (size_t)(strrchr(dir, '/') - dir));
	_cleanup_(mo_freep) char *near = or_meant("/", dir);

	if (none && *near && stat(parent, &st) == 0)
		warn(l, node_of(l, "engine.workdir"),
		     "engine.workdir: %s: no such directory here%s", dir, near);
	return false;
}

/* What the engine's own tree has and this one lacks; NULL: nothing that is known. */
static const char *lacks(const struct recipe_input *in)
{
	const struct engine *e = &in->engine;
	bool of_tree = false;

	if (e->experiment)
		return places_may_have(in, PLACES_PRESETS) ? NULL : PLACES_PRESETS;
	for (size_t i = 0; i < e->n_argv; i++)
		of_tree |= mo_streq(e->argv[i], "{entry}");
	return of_tree && !in->recipe.engine.entry && e->entry && !places_may_have(in, e->entry)
		       ? e->entry
		       : NULL;
}

static void check_tree(struct pass *l)
{
	const struct recipe_input *in = l->in;
	const char *file = lacks(in);

	if (file)
		warn(l, node_of(l, "engine.workdir"),
		     "engine.workdir: %s has no %s here, so it is no tree for engine %s; where "
		     "that of the nodes has none either, the job fails at its start",
		     in->recipe.engine.workdir, file, in->recipe.engine.kind);
}

/* A program that the recipe names. Words with braces are known at the launch, what the system
 * brings is the node's. */
static void check_program(struct pass *l, const char *key, size_t at, const char *path)
{
	const struct recipe_engine *e = &l->in->recipe.engine;
	const struct ynode *node;

	if (*path == '-' || strchr(path, '{') || mo_starts_with(path, "/usr/") ||
	    mo_starts_with(path, "/bin/") || places_may_have(l->in, path))
		return;
	_cleanup_(mo_freep) char *near = or_meant(e->workdir, path);
	_cleanup_(mo_freep) char *where = *path == '/' ? NULL : mo_printf(" in %s", e->workdir);

	node = node_of(l, key);
	if (node->kind == YAML_LIST && at < node->n)
		node = node->items[at].value;
	warn(l, node,
	     "%s: %s: no such file here%s; where it is not on the nodes either%s, the job fails at "
	     "its start%s",
	     key, path, where ? where : "",
	     e->prepare || e->n_prepare_argv ? ", and engine.prepare does not make it" : "", near);
}

/* python3 train.py, bash run.sh: the program is the second word. */
static bool is_interpreter(const char *word)
{
	static const char *const names[] = { "python", "bash", "sh" };
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (mo_starts_with(name, names[i]) &&
		    !name[strlen(names[i]) + strspn(name + strlen(names[i]), "0123456789.")])
			return true;
	return false;
}

/* Who calls from the directory of his script may expect that it counts. */
static void check_here(struct pass *l)
{
	const struct recipe_engine *e = &l->in->recipe.engine;
	_cleanup_(mo_freep) char *here =
		!e->workdir && e->entry && *e->entry != '/' && *e->entry != '-' ? getcwd(NULL, 0)
										: NULL;
	const char *home = getenv("HOME");
	_cleanup_(mo_freep) char *at_home = home && here ? places_below(home, e->entry) : NULL;

	if (here && access(e->entry, F_OK) == 0 && at_home && access(at_home, F_OK) < 0)
		warn(l, node_of(l, "engine.entry"),
		     "engine.entry: %s lies here, and ranks start in the user's home: give "
		     "engine.workdir: %s",
		     e->entry, here);
}

static void check_words(struct pass *l, const char *key, char *const *words, size_t n)
{
	if (n && strchr(words[0], '/'))
		check_program(l, key, 0, words[0]);
	if (n > 1 && is_interpreter(words[0]))
		check_program(l, key, 1, words[1]);
}

static void check_programs(struct pass *l)
{
	const struct engine *engine = &l->in->engine;
	const struct recipe_engine *e = &l->in->recipe.engine;

	for (size_t i = 0; e->entry && i < engine->n_argv; i++)
		if (mo_streq(engine->argv[i], "{entry}"))
			check_program(l, "engine.entry", 0, e->entry);
	check_here(l);
	check_words(l, "engine.argv", e->argv, e->n_argv);
	check_words(l, "engine.prepare", e->prepare_argv, e->n_prepare_argv);
}

int places_check(struct cli *cli, const struct recipe_input *in)
{
	_cleanup_(pass_done) struct pass l = { .in = in };
	_cleanup_(mo_freep) char *saves = recipe_save_dir(&in->recipe);

	check_directory(&l, "checkpoint.dir", saves);
	if (!in->recipe.engine.container)
		check_directory(&l, "engine.workdir", in->recipe.engine.workdir);
	if (recipe_errors_finish(&l.errors) < 0)
		return recipe_input_refuse(cli, in, &l.errors);
	if (in->recipe.engine.container) /* the other paths are the image's */
		return 0;
	if (workdir_here(&l))
		check_tree(&l);
	check_programs(&l);
	return 0;
}
