/* Health checks as data files (see health_file.h). What a check cannot mean is refused with its
 * place: two ways of reading, a measure without its partner, no limit at all. */
#include "lib/recipe/health_file.h"

#include <errno.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/data_words.h"
#include "lib/recipe/klog_file.h"
#include "lib/recipe/schema.h"
#include "lib/recipe/schema_scalar.h"

#define LIMIT_MAX 1000000000000000000LL /* of a limit: beyond bytes of any machine */
#define CONSECUTIVE_MAX 1000
#define WINDOW_MIN_US 60000000
/* the next attempt of a failed job waits for it, within its checks' time */
#define SETTLE_MAX_US 30000000
#define HOUR_US 3600000000LL

static const char *const words_area[] = { "gpu", "nic", "host", "klog", "stack", NULL };
static const char *const words_state[] = { "ok", "warn", "crit", "unknown", NULL };
/* the first of words_state: what was before the first probe is never unknown */
static const char *const words_history[] = { "ok", "warn", "crit", NULL };
static const char *const words_action[] = { "report", "warn", "cordon", NULL };
static const char *const words_measure[] = { "value", "since_boot", "per_hour",
					     "share", "less_of",    "ratio_of",
					     "same",  "text",       NULL };
static const char *const words_needs[] = { "nothing", "gpu", "nic", NULL };
_Static_assert(ELEMENTSOF(words_area) == _PROBE_AREA_N + 1 &&
		       ELEMENTSOF(words_state) == _CHECK_STATE_N + 1 &&
		       ELEMENTSOF(words_action) == _CHECK_ACTION_N + 1 &&
		       ELEMENTSOF(words_measure) == _CHECK_MEASURE_N + 1 &&
		       ELEMENTSOF(words_needs) == _CHECK_NEEDS_N + 1,
	       "the words of lib/model/health.c");

static const char *const words_when[] = { "preflight", "periodic", "failure", "epilog", "doubt" };

static void read_when(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct health_check *c = r->bases[k->base];
	char **words = NULL;
	size_t n = 0;

	c->when = 0;
	value_list(r, k->path, v, &words, &n);
	for (size_t i = 0; i < n; i++) {
		int bit = mo_enum_parse(words_when, ELEMENTSOF(words_when), words[i]);
		if (bit < 0)
			errors_at(r->errors, v, NULL,
				  "when: expected some of preflight, periodic, failure, epilog, "
				  "doubt, got '%.60s'",
				  words[i]);
		else
			c->when |= 1 << bit;
		free(words[i]);
	}
	free(words);
	if (v->kind == YAML_LIST && !v->n)
		errors_at(r->errors, v, "enabled: false turns a check off",
			  "when: the list is empty");
}

static void read_match(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct health_check *c = r->bases[k->base];
	int code;
	PCRE2_SIZE offset;
	uint32_t groups = 0;
	PCRE2_UCHAR message[256] = "";

	if (!value_text(r, k->path, v, &c->match))
		return;
	pcre2_code *re = pcre2_compile((PCRE2_SPTR)c->match, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE,
				       &code, &offset, NULL);
	if (!re) {
		pcre2_get_error_message(code, message, sizeof(message));
		errors_at(r->errors, v, NULL, "match: pattern '%s': %s, at its character %zu",
			  c->match, (const char *)message, (size_t)offset + 1);
		return;
	}
	pcre2_pattern_info(re, PCRE2_INFO_CAPTURECOUNT, &groups);
	if (groups != 1)
		errors_at(r->errors, v, NULL,
			  "match: pattern '%s' needs one group, (...), around the number",
			  c->match);
	pcre2_code_free(re);
}

#define F(f, t, ...) \
	{ \
		.path = #f, .type = (t), .offset = offsetof(struct health_check, f), ##__VA_ARGS__ \
	}
#define LIMIT(f) F(f, KEY_REAL, .min = -LIMIT_MAX, .max = LIMIT_MAX)
#define LIST(f) \
	{ \
		.path = #f, .type = KEY_LIST, .offset = offsetof(struct health_check, f), \
		.count_offset = offsetof(struct health_check, n_##f) \
	}
static const struct key check_keys[] = {
	F(id, KEY_NAME, .required = true),
	F(what, KEY_TEXT, .required = true),
	F(next, KEY_TEXT, .required = true),
	F(source, KEY_TEXT, .required = true),
	F(area, KEY_ENUM, .words = words_area, .required = true),
	F(needs, KEY_ENUM, .words = words_needs, .has_def = true),
	F(when, KEY_CUSTOM, .read = read_when, .required = true),
	F(reading, KEY_TEXT),
	F(of, KEY_TEXT),
	F(measure, KEY_ENUM, .words = words_measure, .has_def = true, .def = MEASURE_VALUE),
	LIMIT(warn_above),
	LIMIT(crit_above),
	LIMIT(warn_below),
	LIMIT(crit_below),
	LIST(expect),
	F(otherwise, KEY_ENUM, .words = words_state, .has_def = true, .def = CHECK_WARN),
	F(rises, KEY_BOOL, .has_def = true),
	F(hardware, KEY_BOOL, .has_def = true),
	F(proven, KEY_BOOL, .has_def = true, .def = true),
	F(history, KEY_ENUM, .words = words_history, .has_def = true, .def = CHECK_OK),
	F(absent, KEY_ENUM, .words = words_state, .has_def = true, .def = CHECK_OK),
	{ .path = "window",
	  .type = KEY_DURATION,
	  .offset = offsetof(struct health_check, window_us),
	  .min = WINDOW_MIN_US,
	  .has_def = true,
	  .def = HOUR_US },
	F(consecutive, KEY_INT, .min = 1, .max = CONSECUTIVE_MAX, .has_def = true, .def = 1),
	{ .path = "settle",
	  .type = KEY_DURATION,
	  .offset = offsetof(struct health_check, settle_us),
	  .has_def = true },
	F(action, KEY_ENUM, .words = words_action, .has_def = true, .def = ACTION_WARN),
	F(enabled, KEY_BOOL, .has_def = true, .def = true),
	LIST(argv),
	LIST(requires),
	F(match, KEY_CUSTOM, .read = read_match),
	{ .path = "deadline",
	  .type = KEY_DURATION,
	  .offset = offsetof(struct health_check, deadline_us),
	  .min = 100000,
	  .has_def = true,
	  .def = 60000000 },
};

static bool has_limit(const struct health_check *c)
{
	return c->warn_above != MO_NONE_F || c->crit_above != MO_NONE_F ||
	       c->warn_below != MO_NONE_F || c->crit_below != MO_NONE_F;
}

static void check_limits(const struct health_check *c, const struct ynode *v,
			 struct recipe_errors *errors)
{
	bool compares = c->reading ? c->measure != MEASURE_SAME && c->measure != MEASURE_TEXT
				   : c->match != NULL;

	if (compares && !has_limit(c))
		errors_at(errors, v, NULL,
			  "%s: has no limit: give warn_above, crit_above, warn_below or crit_below",
			  c->id);
	if (!compares && has_limit(c))
		errors_at(errors, v, NULL,
			  "%s: a limit needs a number: a reading with another measure, or match",
			  c->id);
	if (c->warn_above != MO_NONE_F && c->crit_above != MO_NONE_F &&
	    c->crit_above < c->warn_above)
		errors_at(errors, v, NULL, "%s: crit_above is below warn_above", c->id);
	if (c->warn_below != MO_NONE_F && c->crit_below != MO_NONE_F &&
	    c->crit_below > c->warn_below)
		errors_at(errors, v, NULL, "%s: crit_below is above warn_below", c->id);
}

static void check_reading(const struct health_check *c, const struct ynode *v,
			  struct recipe_errors *errors)
{
	bool two = c->measure == MEASURE_SHARE || c->measure == MEASURE_LESS_OF ||
		   c->measure == MEASURE_RATIO_OF;
	size_t n = c->reading ? strlen(c->reading) : 0;
	bool many = n > 2 && mo_streq(c->reading + n - 2, ".*");

	if (c->measure == MEASURE_TEXT && (c->of != NULL) + (c->n_expect > 0) > 1)
		errors_at(errors, v, NULL, "%s: give either of (a reading) or expect (texts)",
			  c->id);
	if (two != (c->of != NULL) && c->measure != MEASURE_TEXT)
		errors_at(errors, v, NULL,
			  two ? "%s: measure %s compares with a second reading: give of"
			      : "%s: of has no meaning with measure %s",
			  c->id, check_measure_names[c->measure]);
	if (many && c->measure != MEASURE_VALUE)
		errors_at(errors, v, NULL,
			  "%s: a reading that ends with .* can only be measured as value", c->id);
	if (c->history != CHECK_OK && c->measure != MEASURE_SINCE_BOOT)
		errors_at(errors, v, NULL, "%s: history belongs to measure since_boot", c->id);
	if (c->rises && ((c->measure != MEASURE_VALUE && c->measure != MEASURE_LESS_OF) || many ||
			 c->warn_below != MO_NONE_F || c->crit_below != MO_NONE_F))
		errors_at(errors, v, NULL,
			  "%s: rises belongs to measure value or less_of of one reading, with "
			  "limits above",
			  c->id);
	if (c->n_expect && c->measure != MEASURE_TEXT)
		errors_at(errors, v, NULL, "%s: expect belongs to measure text", c->id);
	if ((c->measure == MEASURE_TEXT || c->measure == MEASURE_SAME) && c->otherwise == CHECK_OK)
		errors_at(errors, v, NULL, "%s: otherwise: ok never finds anything", c->id);
}

static void check_one(const struct health_check *c, const struct ynode *v,
		      struct recipe_errors *errors)
{
	if (!c->id)
		return;
	if (!c->reading == !c->n_argv)
		errors_at(errors, v, NULL, "%s: give either a reading or argv (a program)", c->id);
	else if (c->reading)
		check_reading(c, v, errors);
	if (c->n_argv && c->area != PROBE_HOST && c->area != PROBE_GPU)
		errors_at(errors, v, NULL,
			  "%s: a program runs once on a node: its area is host, or gpu where it "
			  "says a line of each GPU",
			  c->id);
	data_words(c->argv, c->n_argv, v, errors);
	if (c->when & WHEN_DOUBT && !c->n_argv)
		errors_at(errors, v, NULL, "%s: when: doubt belongs to argv (a program)", c->id);
	if (c->match && c->area == PROBE_GPU)
		errors_at(errors, v, NULL, "%s: match belongs to area host", c->id);
	if (c->settle_us > SETTLE_MAX_US)
		errors_at(errors, v, NULL, "%s: settle is at most 30s", c->id);
	if (c->settle_us && (c->area != PROBE_GPU || c->n_argv || !(c->when & WHEN_PREFLIGHT) ||
			     c->consecutive < 2))
		errors_at(errors, v, NULL,
			  "%s: settle belongs to a reading of a gpu, with when preflight and "
			  "consecutive of 2 or more",
			  c->id);
	if (c->match && !c->n_argv)
		errors_at(errors, v, NULL, "%s: match belongs to argv", c->id);
	check_limits(c, v, errors);
}

static void read_checks(struct reader *r, const struct key *k, const struct ynode *v)
{
	struct health_checks *checks = r->bases[k->base];
	size_t before = checks->n_checks;

	for (size_t i = 0; v->kind == YAML_LIST && i < v->n && checks->n_checks < MO_CHECKS_MAX;
	     i++) {
		const struct ynode *one = v->items[i].value;
		struct health_check *c = MO_ADD(checks, checks, &health_check_desc);
		struct reader inner = { .errors = r->errors,
					.keys = check_keys,
					.n_keys = ELEMENTSOF(check_keys),
					.bases = { c } };
		schema_defaults(&inner, "");
		if (one->kind == YAML_MAP) {
			schema_read(&inner, "", one);
			check_one(c, one, r->errors);
		} else {
			errors_at(r->errors, one, NULL,
				  "checks: expected {id, what, next, source, area, when, reading "
				  "...}");
		}
		for (size_t j = before; c->id && j + 1 < checks->n_checks; j++)
			if (mo_streq(checks->checks[j].id, c->id))
				errors_at(r->errors, one, NULL,
					  "checks: there are two with the id '%s'", c->id);
	}
	if (v->kind != YAML_LIST)
		errors_at(r->errors, v, NULL, "checks: expected a list");
	else if (checks->n_checks >= MO_CHECKS_MAX)
		errors_at(r->errors, v, NULL, "checks: more than %d", MO_CHECKS_MAX - 1);
}

static const struct key file_keys[] = {
	{ .path = "checks", .type = KEY_CUSTOM, .read = read_checks, .required = true }
};

static void read_file(const struct ynode *root, struct health_checks *ret,
		      struct recipe_errors *errors)
{
	struct reader r = { .errors = errors,
			    .keys = file_keys,
			    .n_keys = ELEMENTSOF(file_keys),
			    .bases = { ret } };

	if (root->kind == YAML_MAP)
		schema_read(&r, "", root);
	else
		errors_at(errors, root, NULL, "health checks: expected a mapping");
}

int health_checks_parse(const char *text, size_t n, struct health_checks *ret,
			struct recipe_errors *errors)
{
	_cleanup_(ynode_freep) struct ynode *root = yaml_load(text, n, "health checks", errors);

	if (root)
		read_file(root, ret, errors);
	return recipe_errors_finish(errors);
}

/* The first with this id below n, or NULL. */
static struct health_check *find(struct health_checks *all, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(all->checks[i].id, id))
			return &all->checks[i];
	return NULL;
}

/* The checks from `before` on replace those of the same id before them. */
static void replace(struct health_checks *all, size_t before)
{
	for (size_t i = before; i < all->n_checks;) {
		struct health_check *old = find(all, before, all->checks[i].id);
		if (old) {
			mo_desc_copy(&health_check_desc, old, &all->checks[i]);
			mo_vec_remove(&health_check_desc, all->checks, &all->n_checks, i);
		} else {
			i++;
		}
	}
}

static int load_file(const char *name, bool site, struct health_checks *ret, struct mo_error *err)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_freep) char *path = NULL;
	const struct ynode *root = catalogue_open("health", "health checks", name, &path, err);
	size_t before = ret->n_checks;

	if (!root)
		return -EINVAL;
	read_file(root, ret, &errors);
	if (errors.n)
		return catalogue_fail(&errors, path, err);
	if (site) {
		replace(ret, before);
		return 0;
	}
	for (size_t i = before; i < ret->n_checks; i++)
		if (find(ret, before, ret->checks[i].id))
			return mo_error_set(err, -EINVAL, "%s: another file has a check '%s' too",
					    path, ret->checks[i].id);
	return 0;
}

/* What breaks a node stays found until the next boot; the rest for an hour. */
static int load_klog(struct health_checks *ret, struct mo_error *err)
{
	struct klog_rules rules;

	mo_desc_init(&klog_rules_desc, &rules);
	int r = klog_rules_load(&rules, err);
	for (size_t i = 0; r == 0 && i < rules.n_rules; i++) {
		const struct klog_rule *rule = &rules.rules[i];
		struct health_check *c = MO_ADD(ret, checks, &health_check_desc);
		c->id = mo_printf("klog.%s", rule->id);
		mo_str_set(&c->what, rule->what);
		mo_str_set(&c->next, rule->next);
		mo_str_set(&c->source, "klog.yaml");
		mo_str_set(&c->reading, rule->id);
		c->area = PROBE_KLOG;
		c->needs = NEEDS_NOTHING;
		c->when = WHEN_PREFLIGHT | WHEN_PERIODIC | WHEN_FAILURE;
		c->measure = rule->severity == KLOG_CRIT ? MEASURE_SINCE_BOOT : MEASURE_PER_HOUR;
		c->action = rule->severity == KLOG_CRIT   ? ACTION_CORDON
			    : rule->severity == KLOG_WARN ? ACTION_WARN
							  : ACTION_REPORT;
		*(rule->severity == KLOG_CRIT ? &c->crit_above : &c->warn_above) = 0;
		c->otherwise = CHECK_WARN;
		c->absent = CHECK_OK;
		c->history = CHECK_OK;
		c->window_us = HOUR_US;
		c->consecutive = 1;
		c->settle_us = 0;
		c->enabled = c->proven = true;
		c->deadline_us = 0;
	}
	mo_desc_done(&klog_rules_desc, &rules);
	return r;
}

int health_checks_load(struct health_checks *ret, struct mo_error *err)
{
	static const char *const files[] = { "gpu", "nic", "host", "active" };
	_cleanup_(mo_freep) char *site = mo_data_file("health/site.yaml");
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(files); i++)
		r = load_file(files[i], false, ret, err);
	if (r == 0)
		r = load_klog(ret, err);
	return r == 0 && site ? load_file("site", true, ret, err) : r;
}
