/* The section `plan:` of an engine file: each row is checked while it is read, and rows of engines
 * that a file names as like it come behind its own (engine_plan.h). */
#include "lib/recipe/engine_plan_read.h"

#include <errno.h>
#include <string.h>

#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/model/engine.h"
#include "lib/model/traits.h"
#include "lib/recipe/engine_plan.h"
#include "lib/recipe/schema_scalar.h"

#define LIKE_DEPTH 4
#define UNKNOWN_KIND "command" /* whose rows a file without any has */
/* by which jobs are refused: no name proves it, only the file itself */
#define UNPROVED "sharding_told"

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
	size_t key = strcspn(one, PLAN_SIGNS), sign = one[key] == '!' ? 2 : 1;

	if (!one[key])
		return key && mo_enum_parse(joins, ELEMENTSOF(joins), one) < 0;
	return key && (one[key] != '!' || one[key + 1] == '=') && one[key + sign];
}

static bool are_conditions(const char *text)
{
	for (const char *s = text; s;) {
		const char *next = strstr(s, PLAN_OR), *end = next ? next : s + strlen(s);
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
		s = next ? next + strlen(PLAN_OR) : NULL;
	}
	return true;
}

/* "KEY|KEY|=VALUE", of which the value is one of the trait. */
static bool are_keys(const struct trait *t, const char *text, size_t n)
{
	_cleanup_(mo_freep) char *keys = mo_strndup(text, n);
	const char *value = *keys == '=' ? keys : strstr(keys, "|=");

	if (value && !engine_plan_put(t, strchr(value, '=') + 1, NULL))
		return false;
	n = value ? (size_t)(value - keys) : n;
	return (n || value) && strcspn(keys, " " PLAN_SIGNS) >= n;
}

static void check_row(struct reader *r, const struct ynode *key, const struct trait *t,
		      const struct ynode *v)
{
	const char *value = strchr(key->text, '='), *on = strstr(v->text, PLAN_IF);

	if (value && !engine_plan_put(t, value + 1, NULL))
		errors_at(r->errors, key, NULL, "plan: %s: '%.60s' is no value of it", t->name,
			  value + 1);
	else if (value || t->kind == TRAIT_FLAG) {
		if ((value || !engine_plan_is_constant(t, v->text)) && !are_conditions(v->text))
			errors_at(r->errors, v, NULL,
				  "plan: %.60s: expected conditions such as 'KEY=VALUE KEY!=VALUE "
				  "or KEY>N'%s, got '%.60s'",
				  key->text, value ? "" : ", true or false", v->text);
	} else if (!are_keys(t, v->text, on ? (size_t)(on - v->text) : strlen(v->text)) ||
		   (on && !are_conditions(on + strlen(PLAN_IF))))
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
		const struct trait *t = engine_plan_trait(key->text);

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
