/* Engine files found by name: what a file takes over from the one that it is like, and which of
 * two files counts. */
#include "lib/recipe/engine_load.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/config_inputs.h"
#include "lib/recipe/engine_file.h"
#include "lib/recipe/engine_plan_read.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/model_state.h"

static bool kind_of_interface(const char *kind)
{
	return mo_enum_parse(engine_kinds, ELEMENTSOF(engine_kinds) - 1, kind) >= 0;
}

static void engine_free(void *engine)
{
	mo_desc_free(&engine_desc, engine);
}

static int load_alone(const char *path, const struct ynode *root, struct engine *ret,
		      struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct engine *before = catalogue_read(root);

	if (!before) {
		before = mo_desc_new(&engine_desc);
		if (engine_read(root, before, &errors) < 0) {
			engine_free(before);
			return catalogue_fail(&errors, path, err);
		}
		catalogue_keep_read(root, before, engine_free);
	}
	mo_desc_copy(&engine_desc, ret, before);
	return 0;
}

/* Both files read as one: kept with the first as long as the second is the same. */
struct like_read {
	struct engine engine;
	int64_t base; /* catalogue_serial() */
};

static void like_free(void *arg)
{
	struct like_read *l = arg;

	mo_desc_done(&engine_desc, &l->engine);
	free(l);
}

static struct like_read *like_of(const struct ynode *root)
{
	struct like_read *l = catalogue_read(root);

	if (!l) {
		l = mo_alloc(sizeof(*l));
		mo_desc_init(&engine_desc, &l->engine);
		l->base = 0;
		catalogue_keep_read(root, l, like_free);
	}
	return l;
}

/* The sections of the file itself, and those that it leaves out as the file has them that it is
 * like. */
static int load_like(const char *path, struct engine *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	const struct ynode *root = catalogue_tree(path, "engine file", err);
	_cleanup_(mo_freep) char *kind = root ? mo_strdup(ynode_get(root, "like")->text) : NULL;
	_cleanup_(mo_freep) char *name = mo_printf("engines/%s.yaml", kind ? kind : "");
	_cleanup_(mo_freep) char *other = kind && mo_name_valid(kind) ? mo_data_file(name) : NULL;

	if (!root)
		return -EINVAL;
	if (!other)
		return mo_error_set(err, -EINVAL, "%s: like: there is no config/%s", path, name);
	/* A tree is borrowed until the next call, which throws none away when it finds its own:
	 * the third makes both stay. */
	const struct ynode *base = catalogue_tree(other, "engine file", err);
	root = base ? catalogue_tree(path, "engine file", err) : NULL;
	base = root ? catalogue_tree(other, "engine file", err) : NULL;
	if (!base)
		return -EINVAL;
	const struct ynode *third = ynode_get(base, "like");

	if (third)
		return mo_error_set(err, -EINVAL,
				    "%s: like: %s is like another one itself: name that one, %s, "
				    "and copy what %s has beside it",
				    path, kind, third->kind == YAML_SCALAR ? third->text : "?",
				    kind);
	struct like_read *before = like_of(root);

	if (before->base && before->base == catalogue_serial(base)) {
		mo_desc_copy(&engine_desc, ret, &before->engine);
		return 0;
	}
	struct ynode both = { .kind = YAML_MAP, .line = root->line, .column = root->column };

	for (size_t i = 0; i < root->n; i++)
		if (!ynode_is_null(root->items[i].value)) /* ~: neither this one nor the other's */
			*MO_GROW(both.items, both.n) = root->items[i];
	for (size_t i = 0; i < base->n; i++)
		if (!ynode_get(root, base->items[i].key->text))
			*MO_GROW(both.items, both.n) = base->items[i];
	int r = engine_read(&both, ret, &errors);

	free(both.items);
	if (r < 0)
		return catalogue_fail(&errors, path, err);
	mo_desc_done(&engine_desc, &before->engine);
	mo_desc_init(&engine_desc, &before->engine);
	mo_desc_copy(&engine_desc, &before->engine, ret);
	before->base = catalogue_serial(base);
	return 0;
}

static int load_file(const char *kind, bool shipped, struct engine *ret, struct mo_error *err)
{
	_cleanup_(mo_freep) char *name = mo_printf("engines/%s.yaml", kind);
	_cleanup_(mo_freep) char *path = shipped ? mo_data_shipped(name) : mo_data_file(name);

	if (!path && shipped)
		return -ENOENT;
	if (!path) {
		_cleanup_(mo_freep) char *near = catalogue_near("engines", kind),
					 *any = mo_data_file("engines/command.yaml");

		if (!any)
			return mo_error_set(err, -EINVAL,
					    "no engine files are installed: reinstall the data "
					    "files, or set MOE_DATA_DIR to the directory that "
					    "holds engines/");
		if (kind_of_interface(kind))
			return mo_error_set(err, -EINVAL,
					    "engine '%s': its file config/%s is not installed: "
					    "reinstall the data files, or set MOE_DATA_DIR to the "
					    "directory that holds engines/",
					    kind, name);
		_cleanup_(mo_freep) char *names = catalogue_names("engines");

		mo_error_set(err, -EINVAL, "unknown engine '%s': there is no config/%s", kind,
			     name);
		if (near || names)
			mo_error_hint(err, "%s%s%s", near ? near : "", near && names ? " " : "",
				      names ? names : "");
		return -EINVAL;
	}
	const struct ynode *root = catalogue_tree(path, "engine file", err);

	if (!root)
		return -EINVAL;
	int r = ynode_get(root, "like") ? load_like(path, ret, err)
					: load_alone(path, root, ret, err);
	if (r < 0)
		return r;
	if (!mo_streq(ret->kind, kind))
		return mo_error_set(err, -EINVAL, "%s: kind: '%s' must be the file's name '%s'",
				    path, ret->kind, kind);
	return 0;
}

int engine_load(const char *kind, struct engine *ret, struct mo_error *err)
{
	int r = load_file(kind, false, ret, err);

	if (r == 0)
		r = engine_plan_finish(ret, load_file, err);
	return r < 0 ? r : model_state_load(&ret->layout, err);
}
