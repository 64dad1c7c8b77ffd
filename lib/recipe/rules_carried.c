/* Values of a recipe that the engine has no flag for: never ignored. */
#include "lib/recipe/rules_carried.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/rules_features.h"

bool rules_template_has(const struct engine *e, const char *word)
{
	for (size_t i = 0; i < e->n_argv; i++)
		if (strstr(e->argv[i], word))
			return true;
	return false;
}

bool rules_carried(const struct rules *k, const char *path)
{
	_cleanup_(mo_freep) char *braces = mo_printf("{%s}", path);

	for (size_t i = 0; i < k->engine->n_flags; i++) {
		_cleanup_(flag_row_done) struct flag_row row =
			flag_row(k->recipe, &k->engine->flags[i]);

		if ((mo_streq(row.path, path) && row.carried) ||
		    strstr(k->engine->flags[i].value, braces))
			return true;
	}
	return rules_in_words(k, path);
}

/* Values that are nobody's but the engine's. dp follows from the rest; checkpoint.dir is also in
 * the environment. */
static const char *const engine_values[] = {
	"parallelism.tp",
	"parallelism.pp",
	"parallelism.vpp",
	"parallelism.ep",
	"parallelism.etp",
	"parallelism.cp",
	"parallelism.sharding",
	"parallelism.schedule",
	"batch.seq",
	"batch.micro",
	"batch.global",
	"precision",
	"recompute",
	"checkpoint.every",
	"model.mtp",
	"model.window",
};

bool rules_asks_default(const char *path, const char *value)
{
	return !value || mo_streq(value, "1") || mo_streq(value, "0") || mo_streq(value, "none") ||
	       mo_streq(value, "1f1b") ||
	       (mo_streq(path, "parallelism.schedule") && mo_streq(value, "interleaved"));
}

/* A script that takes none of the sizes would run without what the planner chooses. */
static bool states_sizes(const struct rules *k)
{
	for (size_t i = 0;
	     i < ELEMENTSOF(engine_values) && mo_starts_with(engine_values[i], "parallelism."); i++)
		if (rules_carried(k, engine_values[i]))
			return true;
	return false;
}

/* An engine that has the model from a configuration of its own may route otherwise than the
 * recipe says; a catalogue's model is the published one for both. */
static void check_routing(struct rules *k)
{
	const struct recipe_moe *m = k->recipe->model ? k->recipe->model->moe : NULL;

	if (m && m->groups > 0 && k->engine->n_flags && ynode_find(k->root, "model.moe.groups") &&
	    !rules_carried(k, "model.moe.groups"))
		rules_warn(k, PLACE(k, "model.moe.groups", "model"),
			   "model.moe.groups: engine %s is not told: plans count experts in %lld "
			   "of %lld groups; see that its own configuration says the same, or give "
			   "it in engine.args",
			   k->recipe->engine.kind, (long long)m->topk_groups, (long long)m->groups);
}

void rules_check_carried(struct rules *k)
{
	_cleanup_(mo_buf_done) struct mo_buf plain = { 0 };
	const char *path_first = NULL;

	if (k->recipe->parallelism.automatic && !k->engine->n_flags && !states_sizes(k)) {
		mo_buf_str(&plain, "parallelism: auto");
		path_first = "parallelism.tp";
	}

	for (size_t i = 0; i < ELEMENTSOF(engine_values); i++) {
		const char *path = engine_values[i];
		const struct ynode *node = ynode_find(k->root, path);
		_cleanup_(mo_freep) char *value = recipe_value(k->recipe, path);
		bool catalogue = mo_starts_with(path, "model.") && !node;

		if ((!node && !catalogue) || rules_asks_default(path, value) ||
		    rules_carried(k, path))
			continue;
		const char *why = rules_missing(k->engine, path, value);

		if (k->engine->n_flags)
			errors_at(k->errors, PLACE(k, path, "model"), NULL,
				  "%s: engine %s has no setting for %s: %s", path,
				  k->recipe->engine.kind, value,
				  why ? why
				      : "leave it out, or give the engine's own flag in "
					"engine.args");
		else {
			mo_buf_printf(&plain, "%s%s", plain.len ? ", " : "", path);
			path_first = path_first ? path_first : path;
		}
	}
	check_routing(k);
	if (plain.len)
		rules_warn(k, PLACE(k, path_first, "parallelism"),
			   "engine %s is not told about %s: plans and displays use it; give it to "
			   "the program in engine.%s, e.g. as {%s}",
			   k->recipe->engine.kind, plain.data,
			   rules_template_has(k->engine, "{argv}") ? "argv" : "args", path_first);
}
