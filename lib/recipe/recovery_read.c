/* See recovery_read.h. */
#include "lib/recipe/recovery_read.h"

#include "lib/base/buf.h"
#include "lib/model/failure.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

/* "a, b, c"; the caller frees. */
static char *listed(const char *const *names, size_t n)
{
	struct mo_buf b = { 0 };

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&b, "%s%s", i ? ", " : "", names[i]);
	return mo_buf_take(&b);
}

static void read_one(struct reader *r, const char *class, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];
	_cleanup_(mo_freep) char *shown = value_shown(v), *classes = NULL, *actions = NULL;
	struct kv *pair;

	if (mo_enum_parse(failure_class_names, FAIL_OK, class) < 0) {
		classes = listed(failure_class_names, FAIL_OK);
		errors_at(r->errors, v, NULL,
			  "recovery.policy.%.60s: there is no such class of failures; they are %s",
			  class, classes);
	} else if (v->kind != YAML_SCALAR ||
		   mo_enum_parse(failure_action_names, _FAILURE_ACTION_N, v->text) < 0) {
		actions = listed(failure_action_names, _FAILURE_ACTION_N);
		errors_at(r->errors, v, NULL, "recovery.policy.%s: expected one of %s, got %s",
			  class, actions, shown);
	} else if (recipe) {
		pair = MO_ADD(recipe, policy, &kv_desc);
		pair->key = mo_strdup(class);
		pair->value = mo_strdup(v->text);
	}
}

void recovery_read_policy(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (recipe)
		mo_vec_clear(&kv_desc, (void **)&recipe->policy, &recipe->n_policy);
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "recovery.policy: expected classes of failures with what follows them, "
			  "such "
			  "as {storage: wait}");
		return;
	}
	for (size_t i = 0; i < v->n; i++)
		read_one(r, v->items[i].key->text, v->items[i].value);
}
