/* Failure signatures as a data file (see failures_file.h): new texts of engines, drivers and
 * libraries need no new program. */
#include "lib/recipe/failures_file.h"

#include <errno.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

static const char *const words_class[] = { "user_error", "transient", "suspect", "node_fault",
					   "hang",       "numerical", "storage", "collateral",
					   "preempted",  "ok",        NULL };
static const char *const words_source[] = { "any", "log", "kernel", "exit", NULL };
_Static_assert(ELEMENTSOF(words_class) == _FAILURE_CLASS_N + 1 &&
		       ELEMENTSOF(words_source) == _FAILURE_SOURCE_N + 1,
	       "the words of lib/model/failure.c");

static void check_pattern(struct reader *r, const struct ynode *v, const char *text)
{
	int code;
	PCRE2_SIZE offset;
	PCRE2_UCHAR message[256] = "";
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
				       PCRE2_CASELESS | PCRE2_DUPNAMES, &code, &offset, NULL);
	if (re) {
		pcre2_code_free(re);
		return;
	}
	pcre2_get_error_message(code, message, sizeof(message));
	errors_at(r->errors, v, NULL, "pattern '%s': %s, at its character %zu", text,
		  (const char *)message, (size_t)offset + 1);
}

static void read_pattern(struct reader *r, const struct key *k, const struct ynode *v)
{
	char **to = (char **)((char *)r->bases[k->base] + k->offset);
	if (value_text(r, k->path, v, to))
		check_pattern(r, v, *to);
}

static void read_patterns(struct reader *r, const struct key *k, const struct ynode *v)
{
	char ***to = (char ***)((char *)r->bases[k->base] + k->offset);
	size_t *n = (size_t *)((char *)r->bases[k->base] + k->count_offset);
	value_list(r, k->path, v, to, n);
	for (size_t i = 0; i < *n; i++)
		check_pattern(r, v, (*to)[i]);
}

#define F(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct failure_rule, f), ##__VA_ARGS__ \
	}
#define PATTERNS(f, ...) \
	{ \
		.path = #f, .type = KEY_CUSTOM, .read = read_patterns, \
		.offset = offsetof(struct failure_rule, f), \
		.count_offset = offsetof(struct failure_rule, n_##f), ##__VA_ARGS__ \
	}
static const struct key rule_keys[] = {
	F(id, KEY_NAME, .required = true),
	F(class, KEY_ENUM, .words = words_class, .required = true),
	F(order, KEY_INT, .max = 1000, .required = true),
	F(source, KEY_ENUM, .words = words_source, .has_def = true),
	PATTERNS(match, .required = true),
	PATTERNS(unless),
	F(late, KEY_ENUM, .words = words_class, .has_def = true, .def = -1),
	F(weak, KEY_BOOL),
	F(why, KEY_TEXT, .required = true),
};

static void read_rules(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct failure_rules *rules = r->bases[k->base];
	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++) {
		struct failure_rule *rule = MO_ADD(rules, rules, &failure_rule_desc);
		struct reader one = { .errors = r->errors,
				      .keys = rule_keys,
				      .n_keys = ELEMENTSOF(rule_keys),
				      .bases = { rule } };
		schema_defaults(&one, "");
		if (v->items[i].value->kind == YAML_MAP)
			schema_read(&one, "", v->items[i].value);
		else
			errors_at(r->errors, v->items[i].value, NULL,
				  "rules: expected {id, class, order, match, why}");
	}
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "rules: expected a list");
}

#define R(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct failure_rules, f), \
		##__VA_ARGS__ \
	}
static const struct key file_keys[] = {
	R(progress, KEY_CUSTOM, .read = read_pattern, .required = true),
	R(late_iteration, KEY_INT, .min = 1, .max = 1000000, .required = true),
	R(rank, KEY_CUSTOM, .read = read_pattern, .required = true),
	R(collective, KEY_CUSTOM, .read = read_pattern, .required = true),
	R(rules, KEY_CUSTOM, .read = read_rules, .required = true),
};

static void read_file(const struct ynode *root, struct failure_rules *ret,
		      struct recipe_errors *errors)
{
	struct reader r = { .errors = errors,
			    .keys = file_keys,
			    .n_keys = ELEMENTSOF(file_keys),
			    .bases = { ret } };
	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, "failure signatures: expected a mapping");
}

int failures_parse(const char *text, size_t n, struct failure_rules *ret,
		   struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root =
		yaml_load(text, n, "failure signatures", errors);
	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

int failures_load(bool shipped, struct failure_rules *ret, struct mo_error *err)
{
	static const char what[] = "failure signatures";
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path =
		shipped ? mo_data_shipped("failures/signatures.yaml") : NULL;
	const struct ynode *root =
		path ? catalogue_tree(path, what, err)
		     : catalogue_open("failures", what, "signatures", &path, err);
	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}
