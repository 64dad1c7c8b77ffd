/* The section `rules:` of an engine file: what the engine itself refuses. */
#include "lib/recipe/engine_rules.h"

#include "lib/base/desc.h"
#include "lib/model/engine.h"
#include "lib/recipe/engine_checks.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

/* {path: words, ...} of a rule. */
static void read_conditions(struct reader *r, const struct ynode *rule, const char *name,
			    struct kv **ret, size_t *n_ret)
{
	const struct ynode *map = ynode_get(rule, name);

	if (map && map->kind != YAML_MAP)
		errors_at(r->errors, map, NULL,
			  "rules: %s: expected a mapping such as {features.a2a: deepep}", name);
	for (size_t i = 0; map && map->kind == YAML_MAP && i < map->n; i++) {
		const struct ynode *path = map->items[i].key;
		struct kv *c = mo_vec_add(&kv_desc, (void **)ret, n_ret);

		mo_str_set(&c->key, path->text);
		value_text(r, "rules", map->items[i].value, &c->value);
		if (!mo_starts_with(path->text, "args.") && !mo_starts_with(path->text, "env.") &&
		    !recipe_path_known(path->text))
			errors_at(r->errors, path, NULL,
				  "rules: '%.60s' is no value of a recipe, no args.FLAG and no "
				  "env.NAME",
				  path->text);
	}
}

#define R(f, ...) \
	{ \
		.path = #f, .type = KEY_TEXT, .offset = offsetof(struct engine_rule, f), \
		##__VA_ARGS__ \
	}
static const struct key rule_keys[] = {
	R(id, .required = true),
	R(because, .required = true),
	R(instead, .required = true),
	{ .path = "files_may",
	  .type = KEY_BOOL,
	  .offset = offsetof(struct engine_rule, files_may) },
	{ .path = "warns", .type = KEY_BOOL, .offset = offsetof(struct engine_rule, warns) },
};

static void read_rule(struct reader *r, const struct ynode *v)
{
	static const char *const conditions[] = { "when", "refuse", "need" };
	struct engine_rule *rule = MO_ADD(engine_checks_of(r->bases[0]), rules, &engine_rule_desc);
	struct reader map = { .errors = r->errors,
			      .keys = rule_keys,
			      .n_keys = ELEMENTSOF(rule_keys),
			      .bases = { rule } };
	_cleanup_(mo_freep) struct yitem *texts = mo_alloc_array(v->n + 1, sizeof(*texts));
	struct ynode rest = {
		.kind = YAML_MAP, .items = texts, .line = v->line, .column = v->column
	};

	for (size_t i = 0; i < v->n; i++)
		if (mo_enum_parse(conditions, ELEMENTSOF(conditions), v->items[i].key->text) < 0)
			texts[rest.n++] = v->items[i];
	schema_read(&map, "", &rest);
	read_conditions(r, v, "when", &rule->when, &rule->n_when);
	read_conditions(r, v, "refuse", &rule->refuse, &rule->n_refuse);
	read_conditions(r, v, "need", &rule->need, &rule->n_need);
	if (!rule->n_when || !(rule->n_refuse + rule->n_need))
		errors_at(r->errors, v, NULL, "rules: a rule needs when, and refuse or need");
}

void engine_rules_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL,
			  "rules: expected a list of {id, when, refuse, because, instead}");
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++)
		if (v->items[i].value->kind == YAML_MAP)
			read_rule(r, v->items[i].value);
		else
			errors_at(r->errors, v->items[i].value, NULL,
				  "rules: expected {id, when, refuse, because, instead}");
}
