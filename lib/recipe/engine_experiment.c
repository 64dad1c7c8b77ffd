/* Which keys of an experiment an engine file speaks of, gathered from all its rows. */
#include "lib/recipe/engine_experiment.h"

#include <string.h>

#include "lib/recipe/argv.h"
#include "lib/recipe/catalogue.h"

static void add_experiment_key(struct engine *e, const char *key)
{
	for (size_t i = 0; i < e->n_experiment_keys; i++)
		if (mo_streq(e->experiment_keys[i], key))
			return;
	mo_strs_add(&e->experiment_keys, &e->n_experiment_keys, key);
}

static void add_conditions(struct engine *e, const struct kv *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mo_starts_with(items[i].key, "args."))
			add_experiment_key(e, items[i].key + strlen("args."));
}

/* The key behind the dashes of `--key`. */
static void add_flag_key(struct engine *e, const char *words)
{
	const char *flag = words + strspn(words, "-");
	_cleanup_(mo_freep) char *key = mo_strndup(flag, strcspn(flag, "= "));

	add_experiment_key(e, key);
}

void engine_experiment_finish(struct engine *e, const struct ynode *root,
			      struct recipe_errors *errors)
{
	for (size_t i = 0; i < e->n_flags; i++) {
		const char *want;
		_cleanup_(mo_freep) char *key = flag_row_if(e->flags[i].key, &want);

		if (key && !engine_has_values(e))
			errors_at(errors, root, NULL,
				  "'%s': `if` looks at an experiment, and this engine has none",
				  e->flags[i].key);
		else if (key)
			add_experiment_key(e, key);
		if (engine_has_values(e) && mo_streq(e->flags[i].key, "checkpoint.every"))
			add_flag_key(e, e->flags[i].value);
	}
	for (size_t i = 0; engine_has_values(e) && e->checks && i < e->checks->n_last_save_off; i++)
		add_experiment_key(e, e->checks->last_save_off[i].key);
	for (size_t i = 0; engine_has_values(e) && e->checks && i < e->checks->n_data_parallel; i++)
		add_experiment_key(e, e->checks->data_parallel[i]);
	for (size_t i = 0; engine_has_values(e) && e->checks && i < e->checks->n_rules; i++) {
		const struct engine_rule *rule = &e->checks->rules[i];

		add_conditions(e, rule->when, rule->n_when);
		add_conditions(e, rule->refuse, rule->n_refuse);
		add_conditions(e, rule->need, rule->n_need);
	}
}
