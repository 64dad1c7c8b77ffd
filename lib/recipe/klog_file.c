/* Kernel log rules as a data file (see klog_file.h): new texts of drivers need no new program. */
#include "lib/recipe/klog_file.h"

#include <errno.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/recipe/catalogue.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

static const char *const words_severity[] = { "warn", "crit", "job", NULL };
_Static_assert(ELEMENTSOF(words_severity) == _KLOG_SEVERITY_N + 1, "the words of lib/model/klog.c");

static void read_patterns(struct reader *r, const struct key *k, const struct ynode *v)
{
	char ***to = (char ***)((char *)r->bases[k->base] + k->offset);
	size_t *n = (size_t *)((char *)r->bases[k->base] + k->count_offset);

	value_list(r, k->path, v, to, n);
	for (size_t i = 0; i < *n; i++) {
		int code;
		PCRE2_SIZE offset;
		PCRE2_UCHAR message[256] = "";
		_cleanup_(mo_freep) char *whole = mo_printf("%s" KLOG_WORDS, (*to)[i]);
		pcre2_code *re = pcre2_compile((PCRE2_SPTR)whole, PCRE2_ZERO_TERMINATED, 0, &code,
					       &offset, NULL);
		if (!re) {
			size_t at = MO_MIN((size_t)offset, strlen((*to)[i])) + 1;
			pcre2_get_error_message(code, message, sizeof(message));
			errors_at(r->errors, v, NULL, "pattern '%s': %s, at its character %zu",
				  (*to)[i], (const char *)message, at);
		}
		pcre2_code_free(re);
	}
}

/* Drivers are read before rules, wherever they stand in the file. */
static void read_from(struct reader *r, const struct key *k, const struct ynode *v)
{
	const struct klog_rules *rules = r->arg;
	struct klog_rule *rule = r->bases[k->base];

	value_list(r, k->path, v, &rule->from, &rule->n_from);
	for (size_t i = 0; i < rule->n_from; i++) {
		size_t at = 0;
		while (at < rules->n_drivers && !mo_streq(rules->drivers[at].name, rule->from[i]))
			at++;
		if (at == rules->n_drivers)
			errors_at(r->errors, v, NULL,
				  "from: '%s' is none of drivers:", rule->from[i]);
	}
}

#define F(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct klog_rule, f), ##__VA_ARGS__ \
	}
#define PATTERNS(f, ...) \
	{ \
		.path = #f, .type = KEY_CUSTOM, .read = read_patterns, \
		.offset = offsetof(struct klog_rule, f), \
		.count_offset = offsetof(struct klog_rule, n_##f), ##__VA_ARGS__ \
	}
static const struct key rule_keys[] = {
	F(id, KEY_NAME, .required = true),
	F(severity, KEY_ENUM, .words = words_severity, .required = true),
	{ .path = "from", .type = KEY_CUSTOM, .read = read_from, .required = true },
	PATTERNS(match, .required = true),
	PATTERNS(unless),
	{ .path = "example",
	  .type = KEY_LIST,
	  .offset = offsetof(struct klog_rule, example),
	  .count_offset = offsetof(struct klog_rule, n_example) },
	F(what, KEY_TEXT, .required = true),
	F(next, KEY_TEXT, .required = true),
};

static void read_rules(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct klog_rules *rules = r->bases[k->base];

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++) {
		const struct ynode *one = v->items[i].value;
		struct klog_rule *rule = MO_ADD(rules, rules, &klog_rule_desc);
		struct reader inner = { .errors = r->errors,
					.keys = rule_keys,
					.n_keys = ELEMENTSOF(rule_keys),
					.bases = { rule },
					.arg = rules };
		schema_defaults(&inner, "");
		if (one->kind == YAML_MAP)
			schema_read(&inner, "", one);
		else
			errors_at(r->errors, one, NULL,
				  "rules: expected {id, severity, from, match, what, next}");
		for (size_t j = 0; rule->id && j + 1 < rules->n_rules; j++)
			if (mo_streq(rules->rules[j].id, rule->id))
				errors_at(r->errors, one, NULL,
					  "rules: there are two with the id '%s'", rule->id);
	}
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "rules: expected a list");
	else if (v->n > KLOG_RULES_MAX)
		errors_at(r->errors, v, NULL,
			  "rules: %zu are more than the %d that a probe can tell about", v->n,
			  KLOG_RULES_MAX);
}

static void read_drivers(struct reader *r, const struct key *k, const struct ynode *v)
{
	static const struct key driver_keys[] = {
		{ .path = "name",
		  .type = KEY_NAME,
		  .offset = offsetof(struct klog_driver, name),
		  .required = true },
		{ .path = "begins",
		  .type = KEY_CUSTOM,
		  .read = read_patterns,
		  .required = true,
		  .offset = offsetof(struct klog_driver, begins),
		  .count_offset = offsetof(struct klog_driver, n_begins) },
	};
	struct klog_rules *rules = r->bases[k->base];

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n; i++) {
		const struct ynode *one = v->items[i].value;
		struct klog_driver *driver = MO_ADD(rules, drivers, &klog_driver_desc);
		struct reader inner = { .errors = r->errors,
					.keys = driver_keys,
					.n_keys = ELEMENTSOF(driver_keys),
					.bases = { driver } };
		if (one->kind == YAML_MAP)
			schema_read(&inner, "", one);
		else
			errors_at(r->errors, one, NULL, "drivers: expected {name, begins}");
	}
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "drivers: expected a list");
}

static void ignore(struct reader *r, const struct key *k, const struct ynode *v) {}

/* Twice: rules name drivers, and a mapping has no order. */
static void read_file(const struct ynode *root, struct klog_rules *ret,
		      struct recipe_errors *errors)
{
	static const struct key first[] = {
		{ .path = "drivers", .type = KEY_CUSTOM, .read = read_drivers, .required = true },
		{ .path = "rules", .type = KEY_CUSTOM, .read = ignore, .required = true },
	};
	static const struct key second[] = {
		{ .path = "drivers", .type = KEY_CUSTOM, .read = ignore },
		{ .path = "rules", .type = KEY_CUSTOM, .read = read_rules },
	};
	struct reader r = {
		.errors = errors, .keys = first, .n_keys = ELEMENTSOF(first), .bases = { ret }
	};

	if (root->kind != YAML_MAP) {
		errors_at(errors, root, NULL, "kernel log rules: expected a mapping");
		return;
	}
	schema_read(&r, "", root);
	r.keys = second;
	if (!errors->n)
		schema_read(&r, "", root);
}

int klog_rules_parse(const char *text, size_t n, struct klog_rules *ret,
		     struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "kernel log rules", errors);

	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

int klog_rules_load(struct klog_rules *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("health", "kernel log rules", "klog", &path, err);

	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	return errors.n ? catalogue_fail(&errors, path, err) : 0;
}
