/* Kernel log rules as a data file (see klog_file.h): new texts of drivers need no new program. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "lib/recipe/klog_file.h"

#include <errno.h>
#include <pcre2.h>

#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"

static const char *const words_severity[] = { "warn", "crit", "job", NULL };
_Static_assert(ELEMENTSOF(words_severity) == _KLOG_SEVERITY_N + 1, "the words of lib/model/klog.c");

static void read_patterns(struct reader *r, const struct key *k, const struct ynode *v) {
	char ***to = (char ***)((char *)r->bases[k->base] + k->offset);
	size_t *n = (size_t *)((char *)r->bases[k->base] + k->count_offset);

	value_list(r, k->path, v, to, n);
	for (size_t i = 0; i < *n; i++) {
		int code;
		PCRE2_SIZE offset;
		PCRE2_UCHAR message[256] = "";
		pcre2_code *re = pcre2_compile((PCRE2_SPTR)(*to)[i], PCRE2_ZERO_TERMINATED, 0, &code, &offset, NULL);
		if (!re) {
			pcre2_get_error_message(code, message, sizeof(message));
			errors_at(r->errors, v, NULL, "pattern '%s': %s, at its character %zu", (*to)[i], (const char *)message, (size_t)offset + 1);
		}
		pcre2_code_free(re);
	}
}

#define F(f, t, ...) { .path = #f, .type = (t), .offset = offsetof(struct klog_rule, f), ##__VA_ARGS__ }
#define PATTERNS(f, ...) { .path = #f, .type = KEY_CUSTOM, .read = read_patterns, .offset = offsetof(struct klog_rule, f), .count_offset = offsetof(struct klog_rule, n_##f), ##__VA_ARGS__ }
static const struct key rule_keys[] = {
	F(id, KEY_NAME, .required = true),
	F(severity, KEY_ENUM, .words = words_severity, .required = true),
	PATTERNS(match, .required = true),
	PATTERNS(unless),
	F(what, KEY_TEXT, .required = true),
	F(next, KEY_TEXT, .required = true),
};

static void read_rules(struct reader *r, const struct key *k, const struct ynode *v) {
	struct klog_rules *rules = r->bases[k->base];

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++) {
		const struct ynode *one = v->items[i].value;
		struct klog_rule *rule = MO_ADD(rules, rules, &klog_rule_desc);
		struct reader inner = { .errors = r->errors, .keys = rule_keys, .n_keys = ELEMENTSOF(rule_keys), .bases = { rule } };
		schema_defaults(&inner, "");
		if (one->kind == YAML_MAP)
			schema_read(&inner, "", one);
		else
			errors_at(r->errors, one, NULL, "rules: expected {id, severity, match, what, next}");
		for (size_t j = 0; rule->id && j + 1 < rules->n_rules; j++)
			if (mo_streq(rules->rules[j].id, rule->id))
				errors_at(r->errors, one, NULL, "rules: there are two with the id '%s'", rule->id);
	}
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "rules: expected a list");
	else if (v->n > KLOG_RULES_MAX)
		errors_at(r->errors, v, NULL, "rules: %zu are more than the %d that a probe can tell about", v->n, KLOG_RULES_MAX);
}

static const struct key file_keys[] = { { .path = "rules", .type = KEY_CUSTOM, .read = read_rules, .required = true } };

static void read_file(const struct ynode *root, struct klog_rules *ret, struct recipe_errors *errors) {
	struct reader r = { .errors = errors, .keys = file_keys, .n_keys = ELEMENTSOF(file_keys), .bases = { ret } };

	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, "kernel log rules: expected a mapping");
}

int klog_rules_parse(const char *text, size_t n, struct klog_rules *ret, struct recipe_errors *errors) {
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "kernel log rules", errors);

	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

int klog_rules_load(struct klog_rules *ret, struct mo_error *err) {
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("health", "kernel log rules", "klog", &path, err);

	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}
