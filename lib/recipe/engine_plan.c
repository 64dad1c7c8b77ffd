/* Rows of `plan:` (engine_plan.h): "TRAIT: KEY|KEY|=VALUE if CONDITIONS" takes a value over,
 * "TRAIT=VALUE: CONDITIONS or CONDITIONS" translates one. */
#include "lib/recipe/engine_plan.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/engine.h"
#include "lib/model/traits.h"

#define IF " if "
#define OR " or "
#define SIGNS "!=>"
#define LIKE_DEPTH 4
#define UNKNOWN_KIND "command" /* whose rows a file without any has */
/* by which jobs are refused: no name proves it, only the file itself */
#define UNPROVED "sharding_told"
#define LIST_SIGNS " \t\n,;[](){}'\""

/* ---- what the engine is told ---- */

/* Is the word this flag? Dashes and underscores are alike. *ret_value: what stands behind '=',
 * NULL without. */
static bool names(const char *word, const char *name, const char **ret_value)
{
	const char *key = word ? word + strspn(word, "-") : "";

	while (*key && *name && (*key == '-' ? '_' : *key) == *name) {
		key++;
		name++;
	}
	*ret_value = *key == '=' ? key + 1 : NULL;
	return !*name && (!*key || *key == '=');
}

/* By this flag in engine.args, "true" without a value, else by its own configuration; NULL =
 * nothing. A list has a flag's value behind it as a word of its own. The last one counts. */
static const char *flag(const struct recipe_engine *e, const char *name, bool files)
{
	const char *ret = NULL, *value;

	for (size_t i = 0; i < e->n_args; i++) {
		const char *next = e->args_list && i + 1 < e->n_args ? e->args[i + 1].key : NULL;

		if (names(e->args[i].key, name, &value))
			ret = value                  ? value
			      : e->args[i].value     ? e->args[i].value
			      : next && *next != '-' ? next
						     : "true";
	}
	for (size_t i = 0; files && i < e->n_own && !ret; i++)
		if (names(e->own[i].key, name, &value))
			ret = e->own[i].value;
	return ret;
}

/* ---- conditions: "A=x|y B!=z C>1 D" all hold, " or " stands between alternatives ---- */

struct look {
	const struct recipe_engine *engine;
	bool files;
};

/* The text itself, or one word of a list. */
static bool is(const char *said, const char *want, size_t n)
{
	if (strlen(said) == n && strncmp(said, want, n) == 0)
		return true;
	for (const char *s = said + strspn(said, LIST_SIGNS); *s; s += strspn(s, LIST_SIGNS)) {
		size_t len = strcspn(s, LIST_SIGNS);

		if (len == n && strncmp(s, want, n) == 0)
			return true;
		s += len;
	}
	return false;
}

/* "x|y", "null": it is not said. */
static bool is_any(const char *said, const char *want)
{
	if (mo_streq(want, "null") || !said)
		return !said && mo_streq(want, "null");
	for (const char *s = want;; s++) {
		size_t n = strcspn(s, "|");

		if (is(said, s, n))
			return true;
		s += n;
		if (!*s)
			return false;
	}
}

static bool above(const char *said, const char *want)
{
	double a, b;

	return said && mo_parse_double(said, &a) == 0 && mo_parse_double(want, &b) == 0 && a > b;
}

static bool one_holds(const struct look *l, const char *condition)
{
	size_t end = strcspn(condition, SIGNS);
	_cleanup_(mo_freep) char *key = mo_strndup(condition, end);
	const char *said = flag(l->engine, key, l->files), *want = condition + end;

	return !*want         ? said != NULL
	       : *want == '>' ? above(said, want + 1)
	       : *want == '!' ? !is_any(said, want + 2)
			      : is_any(said, want + 1);
}

static bool all_hold(const struct look *l, const char *conditions, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t len = MO_MIN(strcspn(conditions + at, " "), n - at);
		_cleanup_(mo_freep) char *one = mo_strndup(conditions + at, len);

		if (len && !one_holds(l, one))
			return false;
		at += len + 1;
	}
	return true;
}

static bool any_holds(const struct look *l, const char *conditions)
{
	for (const char *s = conditions;;) {
		const char *next = strstr(s, OR);

		if (all_hold(l, s, next ? (size_t)(next - s) : strlen(s)))
			return true;
		if (!next)
			return false;
		s = next + strlen(OR);
	}
}

/* ---- values ---- */

#define AT(to, t, type) ((type *)((char *)(to) + (t)->offset))

static bool put_number(const struct trait *t, const char *text, struct engine_traits *to)
{
	double share;
	int64_t n;

	if (t->kind == TRAIT_NUMBER) {
		if (mo_parse_i64(text, t->least, t->most, &n) < 0)
			return false;
		if (to)
			*AT(to, t, int64_t) = n;
		return true;
	}
	if (mo_parse_double(text, &share) < 0 || !(share >= 0 && share <= 1))
		return false;
	if (to)
		*AT(to, t, double) = share;
	return true;
}

static bool put_word(const struct trait *t, const char *text, struct engine_traits *to)
{
	for (size_t i = 0; t->words[i]; i++)
		if (strcasecmp(t->words[i], text) == 0) {
			if (to)
				mo_str_set(AT(to, t, char *), t->words[i]);
			return true;
		}
	return false;
}

static bool has(char *const *list, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (mo_streq(list[i], word))
			return true;
	return false;
}

/* Each of the words, which a row gives as a|b and a file as a list. */
static bool put_set(const struct trait *t, const char *text, struct engine_traits *to)
{
	size_t none = 0, *n = to ? (size_t *)((char *)to + t->count_offset) : &none;
	bool all = *text;

	for (const char *s = text + strspn(text, "|" LIST_SIGNS); *s;
	     s += strspn(s, "|" LIST_SIGNS)) {
		size_t len = strcspn(s, "|" LIST_SIGNS);
		_cleanup_(mo_freep) char *word = mo_strndup(s, len);
		bool known = mo_enum_parse(t->words, trait_words(t), word) >= 0;

		all &= known;
		if (to && known && !has(*AT(to, t, char **), *n, word))
			mo_strs_add(AT(to, t, char **), n, word);
		s += len;
	}
	return all;
}

/* False: it is no value of the trait, which then stays as it is. to NULL: only asked. */
static bool put(const struct trait *t, const char *text, struct engine_traits *to)
{
	switch (t->kind) {
	case TRAIT_FLAG:
		if (!mo_streq(text, "true") && !mo_streq(text, "false"))
			return false;
		if (to)
			*AT(to, t, bool) = mo_streq(text, "true");
		return true;
	case TRAIT_NUMBER:
	case TRAIT_SHARE: return put_number(t, text, to);
	case TRAIT_WORD: return put_word(t, text, to);
	case TRAIT_SET: return put_set(t, text, to);
	case TRAIT_IDS:
		if (!strpbrk(text, "0123456789"))
			return false;
		if (to)
			mo_str_set(AT(to, t, char *), text);
		return true;
	}
	return false;
}

/* ---- rows ---- */

static const struct trait *trait_of(const char *key)
{
	_cleanup_(mo_freep) char *name = mo_strndup(key, strcspn(key, "="));

	return trait_find(name);
}

/* A row that says the value itself: "true", "false", and "=VALUE" behind the keys. */
static bool is_constant(const struct trait *t, const char *text)
{
	return t->kind == TRAIT_FLAG && put(t, text, NULL);
}

/* "KEY|KEY|=VALUE": the first whose value is one of the trait. */
static bool take_first(const struct look *l, const struct trait *t, const char *keys,
		       struct engine_traits *to)
{
	for (const char *s = keys; *s;) {
		size_t n = *s == '=' ? strlen(s) : strcspn(s, "|");
		_cleanup_(mo_freep) char *key = mo_strndup(s, n);
		const char *said = *key == '=' ? key + 1 : flag(l->engine, key, l->files);

		if (said && put(t, said, to))
			return true;
		s += n + (s[n] == '|');
	}
	return false;
}

/* Does the row say anything of the trait? */
static bool row_says(const struct look *l, const struct trait *t, const struct kv *row,
		     struct engine_traits *to)
{
	const char *value = strchr(row->key, '=');

	if (value || t->kind == TRAIT_FLAG) {
		bool constant = !value && is_constant(t, row->value);

		return (constant || any_holds(l, row->value)) && put(t,
								     constant ? row->value
								     : value  ? value + 1
									      : "true",
								     to);
	}
	const char *on = strstr(row->value, IF);
	_cleanup_(mo_freep) char *keys =
		mo_strndup(row->value, on ? (size_t)(on - row->value) : strlen(row->value));

	return (!on || any_holds(l, on + strlen(IF))) && take_first(l, t, keys, to);
}

void engine_plan_apply(const struct engine *e, struct recipe *r)
{
	struct engine_traits *to = mo_desc_new(&engine_traits_desc);
	uint64_t said = 0;

	assert(n_traits <= 64);
	for (size_t i = 0; e->checks && i < e->checks->n_plan; i++) {
		const struct kv *row = &e->checks->plan[i];
		const struct trait *t = trait_of(row->key);
		struct look l = { &r->engine, !t || !t->above || recipe_leaves(r, t->above) };
		uint64_t bit = t ? 1ULL << (t - traits) : 0;

		if (t && (t->kind == TRAIT_SET || !(said & bit)) && row_says(&l, t, row, to))
			said |= bit;
	}
	mo_desc_free(&engine_traits_desc, r->engine.traits);
	r->engine.traits = to;
}

/* ---- the section ---- */

static struct engine_checks *checks_of(struct engine *e)
{
	if (!e->checks)
		e->checks = mo_desc_new(&engine_checks_desc);
	return e->checks;
}

/* A word of conditions: KEY, or KEY, a sign and what it is compared with. */
static bool is_condition(const char *word, size_t n)
{
	static const char *const joins[] = { "or", "if", "and", "not", "unless" };
	_cleanup_(mo_freep) char *one = mo_strndup(word, n);
	size_t key = strcspn(one, SIGNS), sign = one[key] == '!' ? 2 : 1;

	if (!one[key])
		return key && mo_enum_parse(joins, ELEMENTSOF(joins), one) < 0;
	return key && (one[key] != '!' || one[key + 1] == '=') && one[key + sign];
}

static bool are_conditions(const char *text)
{
	for (const char *s = text; s;) {
		const char *next = strstr(s, OR), *end = next ? next : s + strlen(s);
		bool any = false;

		while (s < end) {
			size_t n = MO_MIN(strcspn(s, " "), (size_t)(end - s));

			if (n && !is_condition(s, n))
				return false;
			any |= n > 0;
			s += n + (s + n < end);
		}
		if (!any)
			return false;
		s = next ? next + strlen(OR) : NULL;
	}
	return true;
}

/* "KEY|KEY|=VALUE", of which the value is one of the trait. */
static bool are_keys(const struct trait *t, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *keys = mo_strndup(text, n);
	const char *value = *keys == '=' ? keys : strstr(keys, "|=");

	if (value && !put(t, strchr(value, '=') + 1, NULL))
		return false;
	n = value ? (size_t)(value - keys) : n;
	return (n || value) && strcspn(keys, " " SIGNS) >= n;
}

static void check_row(struct reader *r, const struct ynode *key, const struct trait *t,
		      const struct ynode *v)
{
	const char *value = strchr(key->text, '='), *on = strstr(v->text, IF);

	if (value && !put(t, value + 1, NULL))
		errors_at(r->errors, key, NULL, "plan: %s: '%.60s' is no value of it", t->name,
			  value + 1);
	else if (value || t->kind == TRAIT_FLAG) {
		if ((value || !is_constant(t, v->text)) && !are_conditions(v->text))
			errors_at(r->errors, v, NULL,
				  "plan: %.60s: expected conditions such as 'KEY=VALUE KEY!=VALUE "
				  "or KEY>N'%s, got '%.60s'",
				  key->text, value ? "" : ", true or false", v->text);
	} else if (!are_keys(t, v->text, on ? (size_t)(on - v->text) : strlen(v->text)) ||
		   (on && !are_conditions(on + strlen(IF))))
		errors_at(r->errors, v, NULL,
			  "plan: %.60s: expected 'KEY|KEY|=VALUE if CONDITIONS', got '%.60s'",
			  key->text, v->text);
}

static void read_row(struct reader *r, const struct ynode *key, const struct trait *t,
		     const struct ynode *v)
{
	struct engine_checks *c = checks_of(r->bases[0]);
	_cleanup_(mo_freep) char *text = NULL;

	if (!value_text(r, "plan", v, &text))
		return;
	struct kv *row = MO_ADD(c, plan, &kv_desc);

	mo_str_set(&row->key, key->text);
	row->value = TAKE_PTR(text);
	check_row(r, key, t, v);
}

/* One kind, or several. */
static void read_like(struct reader *r, const struct ynode *v)
{
	struct engine_checks *c = checks_of(r->bases[0]);
	_cleanup_(mo_freep) char *one = NULL;

	if (v->kind != YAML_SCALAR)
		value_list(r, "plan.like", v, &c->plan_like, &c->n_plan_like);
	else if (value_text(r, "plan.like", v, &one))
		mo_strs_add(&c->plan_like, &c->n_plan_like, one);
	for (size_t i = 0; i < c->n_plan_like; i++)
		if (!mo_name_valid(c->plan_like[i]))
			errors_at(r->errors, v, NULL,
				  "plan.like: '%.60s': expected the kind of another engine file",
				  c->plan_like[i]);
}

static void unknown(struct reader *r, const struct ynode *key)
{
	_cleanup_(mo_freep) const char **known = mo_alloc_array(n_traits, sizeof(*known));
	_cleanup_(mo_freep) char *name = mo_strndup(key->text, strcspn(key->text, "="));

	for (size_t i = 0; i < n_traits; i++)
		known[i] = traits[i].name;
	const char *near = mo_near_miss(name, known, n_traits);
	_cleanup_(mo_freep) char *hint =
		near ? mo_printf("did you mean '%s'?", near)
		     : mo_strdup("the traits are listed in docs/engines.md");

	errors_at(r->errors, key, hint, "plan: '%.60s' is no trait that plans know", name);
}

void engine_plan_read(struct reader *r, const struct key *k, const struct ynode *v)
{
	checks_of(r->bases[0])->plan_given = true;
	if (v->kind != YAML_MAP)
		errors_at(r->errors, v, NULL,
			  "%s: expected a mapping such as {recompute: recompute_granularity}",
			  k->path);
	for (size_t i = 0; v->kind == YAML_MAP && i < v->n; i++) {
		const struct ynode *key = v->items[i].key, *rows = v->items[i].value;
		const struct trait *t = trait_of(key->text);

		if (mo_streq(key->text, "like"))
			read_like(r, rows);
		else if (!t)
			unknown(r, key);
		else if (rows->kind != YAML_LIST)
			read_row(r, key, t, rows);
		for (size_t n = 0; t && rows->kind == YAML_LIST && n < rows->n; n++)
			read_row(r, key, t, rows->items[n].value);
	}
}

/* ---- rows of other engines ---- */

MO_DEFINE_DONE(engine)

/* "torchtitan-ours" trains as torchtitan, as far as nothing else is said. NULL: no such kind
 * (caller frees). */
static char *beginning(const char *kind)
{
	char *ret = mo_strdup(kind);

	for (char *dash; (dash = strrchr(ret, '-'));) {
		*dash = 0;
		_cleanup_(mo_freep) char *name = mo_printf("engines/%s.yaml", ret);
		_cleanup_(mo_freep) char *path = mo_data_file(name);

		if (path)
			return ret;
	}
	free(ret);
	return NULL;
}

/* Rows put together: where they go, and how files are found. */
struct gather {
	struct engine_checks *to;
	engine_plan_loader *load;
	struct mo_error *err;
};

static int gather_rows(struct gather *g, const struct engine *e, int depth);

static int gather_kind(struct gather *g, const char *kind, bool shipped, int depth)
{
	_cleanup_(engine_done) struct engine e;

	mo_desc_init(&engine_desc, &e);
	if (depth == 0)
		return mo_error_set(g->err, -EINVAL, "plan.like: %s: more than %d engines in a row",
				    kind, LIKE_DEPTH);
	int k = g->load(kind, shipped, &e, shipped ? NULL : g->err);

	if (shipped && (k < 0 || !e.checks || !e.checks->plan_given))
		return -ENOENT;
	return k < 0 ? k : gather_rows(g, &e, depth - 1);
}

/* A file without the section, such as a site's own of before there was one. These steps end by
 * themselves, at a shorter name each: they are not counted. */
static int gather_default(struct gather *g, const char *kind, int depth)
{
	int k = gather_kind(g, kind, true, depth + 1);

	if (k != -ENOENT || mo_streq(kind, UNKNOWN_KIND))
		return k == -ENOENT ? 0 : k;
	_cleanup_(mo_freep) char *near = beginning(kind);

	if (near) {
		struct kv *row = MO_ADD(g->to, plan, &kv_desc);

		mo_str_set(&row->key, UNPROVED);
		mo_str_set(&row->value, "false");
	}
	return gather_kind(g, near ? near : UNKNOWN_KIND, false, depth + 1);
}

static int gather_rows(struct gather *g, const struct engine *e, int depth)
{
	const struct engine_checks *c = e->checks;
	int k = 0;

	if (!c || !c->plan_given)
		return gather_default(g, e->kind, depth);
	for (size_t i = 0; i < c->n_plan; i++)
		mo_desc_copy(&kv_desc, MO_ADD(g->to, plan, &kv_desc), &c->plan[i]);
	for (size_t i = 0; k == 0 && i < c->n_plan_like; i++)
		k = gather_kind(g, c->plan_like[i], false, depth);
	return k;
}

int engine_plan_finish(struct engine *e, engine_plan_loader *load, struct mo_error *err)
{
	struct engine_checks *all = mo_desc_new(&engine_checks_desc), *c = checks_of(e);
	struct gather g = { all, load, err };
	int k = gather_rows(&g, e, LIKE_DEPTH);

	if (k == 0) {
		mo_vec_clear(&kv_desc, (void **)&c->plan, &c->n_plan);
		c->plan = TAKE_PTR(all->plan);
		c->n_plan = all->n_plan;
		all->n_plan = 0;
	}
	mo_desc_free(&engine_checks_desc, all);
	return k;
}
