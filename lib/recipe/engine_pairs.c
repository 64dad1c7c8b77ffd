/* What the sections of an engine file share: mappings of texts, and the keys of rows
 * (engine_pairs.h). */
#include "lib/recipe/engine_pairs.h"

#include <string.h>

#include "lib/base/desc.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/keys.h"
#include "lib/recipe/schema_scalar.h"

void engine_pairs_read(struct reader *r, const char *what, const struct ynode *v, struct kv **ret,
		       size_t *n_ret)
{
	if (v->kind != YAML_MAP) {
		errors_at(r->errors, v, NULL, "%s: expected a mapping", what);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		_cleanup_(mo_freep) char *text = NULL;

		if (!value_text(r, what, v->items[i].value, &text))
			continue;
		struct kv *pair = mo_vec_add(&kv_desc, (void **)ret, n_ret);

		mo_str_set(&pair->key, v->items[i].key->text);
		pair->value = TAKE_PTR(text);
	}
}

/* PATH[=VALUE|>N][ unless features.NAME][ if KEY=VALUE|KEY>N] */
void flag_key_check(struct reader *r, const char *what, const struct ynode *key)
{
	const char *at = strchr(key->text, ' '), *want = "";
	_cleanup_(mo_freep) char *other = NULL, *own = flag_row_if(key->text, &want);

	if (at && mo_starts_with(at, " unless features.")) {
		at += strlen(" unless ");
		other = mo_strndup(at, strcspn(at, " "));
		at = strchr(at, ' ');
	}
	if ((other && !recipe_path_known(other)) ||
	    (at && (!own || !*own || !*want || !mo_starts_with(at, " if "))))
		errors_at(r->errors, key, NULL,
			  "%s: expected 'PATH unless features.NAME if KEY=VALUE', got '%s'", what,
			  key->text);
}
