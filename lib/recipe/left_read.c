/* The recipe's key `experiment:`, which moectl writes, as it reads the files where they are:
 * {files: hash, values: {path: value}, args: {key: value}, said: {path: FILE:LINE: KEY,
 * args.key: FILE:LINE}, result: experiment_record.h}. The values are grafted into the document
 * before (left.c). */
#include "lib/recipe/left_read.h"

#include <errno.h>
#include <string.h>

#include "lib/base/desc.h"
#include "lib/model/recipe.h"
#include "lib/recipe/experiment_record.h"

#define HASH_BEGINS "crc32c:"
#define HASH_DIGITS 8
#define OWN_MAX 256 /* keys of the engine's own that its rules read */

/* experiment.args: the engine's own keys. */
static void read_own(struct reader *r, struct recipe *recipe, const struct ynode *args)
{
	if (args && (args->kind != YAML_MAP || args->n > OWN_MAX))
		errors_at(r->errors, args, NULL, "experiment.args: expected at most %d values",
			  OWN_MAX);
	for (size_t i = 0; args && args->kind == YAML_MAP && i < MO_MIN(args->n, OWN_MAX); i++) {
		const struct ynode *value = args->items[i].value;

		if (value->kind != YAML_SCALAR) {
			errors_at(r->errors, value, NULL, "experiment.args: expected one value");
			continue;
		}
		struct kv *own = MO_ADD(recipe, experiment_args, &kv_desc);

		mo_str_set(&own->key, args->items[i].key->text);
		mo_str_set(&own->value, value->text);
	}
}

/* What could be reported to nobody later is refused now. */
static void read_result(struct reader *r, const struct ynode *result)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct experiment x;

	if (result && experiment_unpack(result, &x, &err) < 0)
		errors_at(r->errors, result, "remove it: moectl writes it", "%s",
			  mo_error_text(&err, -EINVAL));
	else if (result)
		experiment_done(&x);
}

/* It is shown to people. */
static bool is_hash(const char *text)
{
	const char *digits = text + strlen(HASH_BEGINS);

	return mo_starts_with(text, HASH_BEGINS) && strlen(digits) <= HASH_DIGITS &&
	       strspn(digits, "0123456789abcdef") == strlen(digits);
}

void left_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	const struct ynode *hash = ynode_get(v, "files");
	struct recipe *recipe = r->bases[0];

	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, "remove it: moectl writes it",
			  "%s: expected {files, values, said, result}", k->path);
	else if (hash && (hash->kind != YAML_SCALAR || !is_hash(hash->text)))
		errors_at(r->errors, hash, "remove it: moectl writes it",
			  "%s.files: expected " HASH_BEGINS " and eight digits of a hash", k->path);
	else if (hash)
		mo_str_set(&recipe->experiment_hash, hash->text);
	read_own(r, recipe, ynode_get(v, "args"));
	read_result(r, ynode_get(v, "result"));
}
