/* Would a recipe pass its checks with the sizes that a planner chose, as if a person had written
 * them? The engine's rules, engine.args and what the engine has no flag for are judged by the
 * code that judges recipes; layers, heads, experts and batch are divided by the planner itself.
 * A search asks of many thousand sizes, so answers are kept by class: the checks know a size
 * only by comparing it with the numbers that stand in the engine's rows and rules about it and
 * in engine.args, and sizes that lie alike between these share an answer. Caller: moectl plan. */
#include "lib/recipe/trial.h"

#include <errno.h>
#include <string.h>
#include <uthash.h>

#include "lib/base/desc.h"
#include "lib/base/parse.h"
#include "lib/model/layout.h"
#include "lib/recipe/args.h"
#include "lib/recipe/condition.h"
#include "lib/recipe/engine_version.h"
#include "lib/recipe/rules_args.h"
#include "lib/recipe/rules_features.h"
#include "lib/recipe/set.h"

#define DIGITS_MAX 9

enum { SIZES = 7, WORDS = 3 };
static const struct {
	const char *path;
	size_t at;
} sizes[SIZES] = {
	{ "parallelism.tp", offsetof(struct recipe_sizes, tp) },
	{ "parallelism.pp", offsetof(struct recipe_sizes, pp) },
	{ "parallelism.vpp", offsetof(struct recipe_sizes, vpp) },
	{ "parallelism.ep", offsetof(struct recipe_sizes, ep) },
	{ "parallelism.etp", offsetof(struct recipe_sizes, etp) },
	{ "parallelism.cp", offsetof(struct recipe_sizes, cp) },
	{ "batch.micro", offsetof(struct recipe_sizes, micro) },
}, words[WORDS] = {
	{ "parallelism.sharding", offsetof(struct recipe_sizes, sharding) },
	{ "parallelism.schedule", offsetof(struct recipe_sizes, schedule) },
	{ "recompute", offsetof(struct recipe_sizes, recompute) },
};

/* numbers that a size is compared with, ascending; exact: engine.args say what follows from it
 * by arithmetic, so every size is a class */
struct marks {
	int64_t *at;
	size_t n;
	bool exact;
};
/* of one value, whatever the others are */
struct single {
	const char *path;
	int64_t class;
	char *word, *why;
};
/* what an answer is kept by: the class of each size, the number of each word's single answer (1 on;
 * 0 = no word), whether stages divide the layers */
struct answer_key {
	int64_t class[SIZES], word[WORDS], uneven;
};
/* why: NULL = passes */
struct answer {
	struct answer_key key;
	char *why;
	UT_hash_handle hh;
};
struct recipe_trial {
	struct ynode *root;
	struct recipe recipe; /* with the sizes that were asked for last */
	struct engine engine;
	/* the document leaves the sizes to the planner; has a pipeline layout */
	bool automatic, layout;
	int64_t stages; /* of the document */
	char *sharding;
	struct marks marks[SIZES];
	struct single *singles;
	size_t n_singles;
	struct answer *answers; /* a table */
};

static void add_mark(struct marks *m, int64_t value)
{
	size_t at = 0;

	while (at < m->n && m->at[at] < value)
		at++;
	if (at < m->n && m->at[at] == value)
		return;
	(void)MO_GROW(m->at, m->n);
	memmove(&m->at[at + 1], &m->at[at], (m->n - 1 - at) * sizeof(*m->at));
	m->at[at] = value;
}

/* All whole numbers of the text. */
static void add_marks(struct marks *m, const char *text)
{
	for (const char *s = text; s && *s;) {
		size_t n = strspn(s, "0123456789");
		_cleanup_(mo_freep) char *digits = n ? mo_strndup(s, n) : NULL;
		int64_t value;

		if (n && n <= DIGITS_MAX && mo_parse_i64(digits, 0, INT64_MAX, &value) == 0)
			add_mark(m, value);
		s += MO_MAX(n, (size_t)1);
	}
}

/* Words of the engine's rows about one path, and of those that carry its value. */
struct about {
	const char **rows;
	size_t n;
};

static void about_done(struct about *a)
{
	free(a->rows);
}

static struct about rows_about(const struct engine *e, const char *path)
{
	_cleanup_(mo_freep) char *braces = mo_printf("{%s}", path);
	struct about a = { .rows = mo_alloc_array(e->n_flags + 1, sizeof(*a.rows)) };

	for (size_t i = 0; i < e->n_flags; i++) {
		const char *text = e->flags[i].value;

		if (strstr(text, "{derived.") || strstr(text, braces) ||
		    mo_starts_with(e->flags[i].key, path))
			a.rows[a.n++] = text;
	}
	return a;
}

/* Does one of these rows have the flag? *ret_derived: by arithmetic. */
static bool brings(const struct about *a, const char *flag, bool *ret_derived)
{
	bool found = false;

	for (size_t i = 0; i < a->n; i++)
		for (const char *s = a->rows[i]; *s; s += strcspn(s, " "), s += *s == ' ')
			if (flag_same(flag, s, strcspn(s, " ="))) {
				found = true;
				*ret_derived |= strstr(a->rows[i], "{derived.") != NULL;
			}
	return found;
}

static void mark_conditions(const struct about *about, const char *path, const struct kv *items,
			    size_t n, struct marks *m)
{
	_cleanup_(mo_freep) char *braces = mo_printf("{%s}", path);

	for (size_t i = 0; i < n; i++) {
		/* Dividing is no comparison. */
		m->exact |= strstr(items[i].value, braces) || strstr(items[i].value, "{derived.");
		if (mo_streq(items[i].key, path) ||
		    (mo_starts_with(items[i].key, "args.") &&
		     brings(about, items[i].key + strlen("args."), &m->exact)))
			add_marks(m, items[i].value);
	}
}

static void read_marks(struct recipe_trial *t, const char *path, struct marks *m)
{
	const struct engine *e = &t->engine;
	const struct engine_checks *c = e->checks;
	const struct rules rules = { .root = t->root, .recipe = &t->recipe, .engine = e };
	_cleanup_(about_done) struct about about = rows_about(e, path);
	struct args given;

	add_mark(m, 1);
	for (size_t i = 0; i < e->n_flags; i++)
		if (mo_starts_with(e->flags[i].key, path))
			add_marks(m, e->flags[i].key);
	for (size_t i = 0; c && i < c->n_rules; i++) {
		mark_conditions(&about, path, c->rules[i].when, c->rules[i].n_when, m);
		mark_conditions(&about, path, c->rules[i].refuse, c->rules[i].n_refuse, m);
		mark_conditions(&about, path, c->rules[i].need, c->rules[i].n_need, m);
	}
	args_read(&rules, &given);
	for (size_t i = 0; i < given.n; i++)
		if (brings(&about, given.items[i].flag, &m->exact))
			add_marks(m, given.items[i].value);
	args_done(&given);
}

struct recipe_trial *recipe_trial_new(const char *text, size_t n, const struct recipe_set *sets,
				      size_t n_sets, const struct recipe *r)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct recipe_trial *t = mo_alloc(sizeof(*t));

	t->root = recipe_tree(text, n, sets, n_sets, &errors);
	mo_desc_init(&recipe_desc, &t->recipe);
	mo_desc_init(&engine_desc, &t->engine);
	mo_desc_copy(&recipe_desc, &t->recipe, r);
	t->automatic = r->parallelism.automatic;
	t->stages = mo_times(r->parallelism.pp, r->parallelism.vpp);
	t->sharding = mo_strdup(r->parallelism.sharding);
	for (size_t i = 0; i < r->n_features; i++)
		t->layout |= mo_streq(r->features[i].key, "pipeline_layout");
	if (r->engine.kind)
		(void)engine_load_for(r, &t->engine, NULL); /* it was read before */
	for (size_t i = 0; i < SIZES && t->root; i++)
		read_marks(t, sizes[i].path, &t->marks[i]);
	return t;
}

void recipe_trial_free(struct recipe_trial *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_singles; i++) {
		free(t->singles[i].word);
		free(t->singles[i].why);
	}
	struct answer *a, *next;

	HASH_ITER(hh, t->answers, a, next) {
		HASH_DEL(t->answers, a);
		free(a->why);
		free(a);
	}
	for (size_t i = 0; i < SIZES; i++)
		free(t->marks[i].at);
	ynode_free(t->root);
	mo_desc_free(&engine_checks_desc, t->engine.checks);
	t->engine.checks = NULL;
	mo_desc_done(&engine_desc, &t->engine);
	mo_desc_done(&recipe_desc, &t->recipe);
	free(t->singles);
	free(t->sharding);
	free(t);
}

static int64_t size_of(const struct recipe_sizes *s, size_t i)
{
	return *(const int64_t *)((const char *)s + sizes[i].at);
}

static const char *word_of(const struct recipe_sizes *s, size_t i)
{
	return *(char *const *)((const char *)s + words[i].at);
}

/* Between which marks it lies: even at a mark, odd between two. */
static int64_t class_of(const struct marks *m, int64_t value)
{
	size_t at = 0;

	while (at < m->n && m->at[at] < value)
		at++;
	return m->exact ? value : (int64_t)(2 * at) - (at == m->n || m->at[at] != value);
}

/* A sharding that the engine has no flag for is only what the plan counts with. */
static bool states_sharding(const struct engine *e)
{
	for (size_t i = 0; i < e->n_flags; i++)
		if (mo_starts_with(e->flags[i].key, "parallelism.sharding"))
			return true;
	return false;
}

/* The layout that such stages get when the plan is written into the recipe (plan_apply_layout). */
static void put_layout(struct recipe_trial *t, int64_t stages)
{
	struct recipe *r = &t->recipe;
	_cleanup_(mo_freep) char *spread =
		t->engine.even_layers && r->model && r->model->layers % stages
			? layout_spread(r->model->layers, MO_MAX(r->model->mtp, 0), stages)
			: NULL;
	struct kv *at = NULL;

	if ((!spread && !t->layout) || (!t->automatic && (!t->layout || stages == t->stages)))
		return;
	for (size_t i = 0; i < r->n_features && !at; i++)
		at = mo_streq(r->features[i].key, "pipeline_layout") ? &r->features[i] : NULL;
	if (!at) {
		at = MO_ADD(r, features, &kv_desc);
		at->key = mo_strdup("pipeline_layout");
		t->layout = true;
	}
	mo_str_set(&at->value, spread ? spread : "auto");
}

static void put(struct recipe_trial *t, const struct recipe_sizes *s)
{
	struct recipe *r = &t->recipe;
	struct recipe_parallelism *p = &r->parallelism;

	p->automatic = false;
	p->tp = s->tp;
	p->pp = s->pp;
	p->vpp = s->vpp;
	p->ep = s->ep;
	p->etp = s->etp;
	p->cp = s->cp;
	p->dp = r->gpus / MO_MAX(s->tp * s->pp * s->cp, 1);
	r->micro = s->micro;
	mo_str_set(&p->schedule, s->schedule);
	mo_str_set(&p->sharding, states_sharding(&t->engine) ? s->sharding : t->sharding);
	if (s->recompute)
		mo_str_set(&r->recompute, s->recompute);
	put_layout(t, s->pp * s->vpp);
}

/* Most refusals have one value as their reason. *ret_n: its number, from 1. */
static const char *single(struct recipe_trial *t, const char *path, int64_t class, const char *word,
			  int64_t *ret_n)
{
	const struct rules rules = { .root = t->root, .recipe = &t->recipe, .engine = &t->engine };
	size_t i = 0;

	while (i < t->n_singles && (t->singles[i].path != path || t->singles[i].class != class ||
				    !mo_streq(t->singles[i].word, word)))
		i++;
	if (i == t->n_singles)
		*MO_GROW(t->singles, t->n_singles) =
			(struct single){ path, class, mo_strdup(word),
					 rules_not_given(&rules, path) };
	*ret_n = (int64_t)i + 1;
	return t->singles[i].why;
}

static const char *together(struct recipe_trial *t, const struct answer_key *key)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct rules rules = {
		.root = t->root, .recipe = &t->recipe, .engine = &t->engine, .errors = &errors
	};
	struct answer *a;

	HASH_FIND(hh, t->answers, key, sizeof(*key), a);
	if (a)
		return a->why;
	rules_features(&rules);
	a = mo_alloc(sizeof(*a));
	a->key = *key;
	a->why = recipe_errors_finish(&errors) < 0
			 ? mo_strdup(mo_error_text(&errors.items[0], -EINVAL))
			 : NULL;
	HASH_ADD(hh, t->answers, key, sizeof(a->key), a);
	return a->why;
}

const char *recipe_trial_refuses(struct recipe_trial *t, const struct recipe_sizes *s)
{
	struct answer_key key = { 0 };
	const char *why = NULL;
	int64_t n;

	if (!t->root)
		return NULL;
	key.uneven = t->recipe.model && t->recipe.model->layers % (s->pp * s->vpp);
	put(t, s);
	for (size_t i = 0; i < SIZES && !why; i++) {
		key.class[i] = class_of(&t->marks[i], size_of(s, i));
		why = single(t, sizes[i].path, key.class[i], NULL, &n);
	}
	for (size_t i = 0; i < WORDS && !why; i++) {
		const char *word = word_of(s, i);

		why = word ? single(t, words[i].path, 0, word, &key.word[i]) : NULL;
	}
	return why ? why : together(t, &key);
}
