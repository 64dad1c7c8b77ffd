/* Engines whose keys changed their names: the file of a kind is of the newest release, and names
 * those of other versions under `versions`. A flag tells them apart without a search of the tree,
 * because only that version takes it. */
#include "lib/recipe/engine_version.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/engine_load.h"

/* A mapping's key is the flag; of a list each word may be one. */
static bool gives(const struct recipe_engine *e, const char *flag)
{
	for (size_t i = 0; i < e->n_args; i++)
		if ((!e->args_list || e->args[i].key[0] == '-') &&
		    flag_same(e->args[i].key, flag, strlen(flag)))
			return true;
	return false;
}

int engine_load_for(const struct recipe *r, struct engine *ret, struct mo_error *err)
{
	const char *kind = NULL;
	int k = engine_load(r->engine.kind, ret, err);

	for (size_t i = 0; k == 0 && !kind && i < ret->n_versions; i++)
		if (!strchr(ret->versions[i].key, '/') && gives(&r->engine, ret->versions[i].key))
			kind = ret->versions[i].value;
	if (!kind)
		return k;
	_cleanup_(mo_freep) char *other = mo_strdup(kind);

	mo_desc_done(&engine_desc, ret);
	mo_desc_init(&engine_desc, ret);
	k = engine_load(other, ret, err);
	if (k == 0)
		mo_str_set(&ret->kind, r->engine.kind);
	return k;
}

const char *engine_version_of_tree(const struct engine *e,
				   bool (*there)(void *arg, const char *file), void *arg)
{
	for (size_t i = 0; i < e->n_versions; i++)
		if (strchr(e->versions[i].key, '/') && there(arg, e->versions[i].key))
			return e->versions[i].value;
	return NULL;
}
