/* See labels_read.h. */
#include "lib/recipe/labels_read.h"

#include "lib/base/buf.h"
#include "lib/model/labels.h"
#include "lib/model/limits.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

static void read_one(struct reader *r, const struct ynode *name, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];
	_cleanup_(mo_freep) char *shown = value_shown(v);
	struct kv *pair;

	if (!label_valid(name->text)) {
		errors_at(r->errors, name, NULL, "labels: '%.80s' is not a name: " LABEL_CHARS,
			  name->text);
	} else if (v->kind != YAML_SCALAR || !label_valid(v->text)) {
		errors_at(r->errors, v, NULL,
			  "labels.%s: expected up to %d " LABEL_CHARS ", got %s", name->text,
			  LABEL_BYTES_MAX, shown);
	} else if (recipe) {
		pair = MO_ADD(recipe, labels, &kv_desc);
		pair->key = mo_strdup(name->text);
		pair->value = mo_strdup(v->text);
	}
}

void labels_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct recipe *recipe = r->bases[BASE_RECIPE];

	if (recipe)
		mo_vec_clear(&kv_desc, (void **)&recipe->labels, &recipe->n_labels);
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL,
			  "labels: expected names with values, such as {team: vision}");
		return;
	}
	if (v->n > MO_LABELS_MAX) {
		errors_at(r->errors, v, NULL, "labels: at most %d, got %zu", MO_LABELS_MAX, v->n);
		return;
	}
	for (size_t i = 0; i < v->n; i++)
		read_one(r, v->items[i].key, v->items[i].value);
}
