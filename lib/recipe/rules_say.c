/* What every rule needs, whatever it judges: its place, a warning there, what another rule has
 * said already, and what the engine has a flag for. Knows no rule. */
#include "lib/recipe/rules_say.h"

#include <stdarg.h>
#include <string.h>

#include "lib/recipe/args.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/config_value.h"

const struct ynode *rules_place(const struct rules *k, const char *const *paths)
{
	for (size_t i = 0; paths[i]; i++) {
		const struct ynode *n = ynode_find(k->root, paths[i]);

		if (n)
			return n;
	}
	return k->root;
}

void rules_warn(struct rules *k, const struct ynode *where, const char *fmt, ...)
{
	_cleanup_(mo_freep) char *text = NULL, *placed = NULL;
	va_list ap;

	if (!k->warnings)
		return;
	va_start(ap, fmt);
	text = mo_vprintf(fmt, ap);
	va_end(ap);
	placed = where->set ? mo_printf("%s: %s", where->set, text)
			    : mo_printf("%lld:%lld: %s", LL(where->line), LL(where->column), text);
	mo_strs_add(k->warnings, k->n_warnings, placed);
}

bool rules_leads_out(const char *path)
{
	size_t len;

	for (const char *p = path; path[0] != '/' && *p; p += len + (p[len] == '/')) {
		len = strcspn(p, "/");
		if (len == 2 && p[0] == '.' && p[1] == '.')
			return true;
	}
	return false;
}

bool rules_tells(const struct engine *e, const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < e->n_flags; i++)
		if (strncmp(e->flags[i].key, path, n) == 0 &&
		    (!e->flags[i].key[n] || strchr(FLAG_ROW_OPS, e->flags[i].key[n])))
			return true;
	return false;
}

bool rules_said(const struct rules *k, const struct ynode *place)
{
	/* What is not of the document has no line: its errors begin with its place and the key. */
	for (size_t i = 0; place->left && place->set && i < k->errors->n; i++)
		if (!k->errors->items[i].line && k->errors->items[i].text &&
		    mo_starts_with(k->errors->items[i].text, place->set))
			return true;
	for (size_t i = 0; i < k->errors->n; i++)
		if (place->line && k->errors->items[i].line == place->line &&
		    k->errors->items[i].column == place->column)
			return true;
	return false;
}

bool rules_unchecked(const struct rules *k, const char *flag)
{
	const struct recipe_engine *e = &k->recipe->engine;

	for (size_t i = 0; i < e->n_args_unchecked; i++)
		if (flag_same(flag, e->args_unchecked[i], strlen(e->args_unchecked[i])))
			return true;
	return false;
}

bool rules_extended(const struct rules *k, const struct config_value *merged)
{
	const struct engine_checks *c = k->engine->checks;
	const char *by = c ? c->keys_more : NULL;
	const struct config_value *v = by ? config_find(merged, by) : NULL;
	struct args args;

	if (!by || (v && v->text && *v->text))
		return by;
	args_read(k, &args);
	bool given = args_find(&args, by);

	args_done(&args);
	return given;
}
