/* See spec.h. Parsing a recipe reads several data files and takes about a millisecond, so the
 * specs of the last few texts are kept for a moment: a program that submits the same recipe a
 * thousand times pays once. Data files that change count after KEEP_US. */
#include "daemon/spec.h"
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include "daemon/anchors.h"
#include "daemon/core/state/shared.h"
#include "daemon/forked.h"
#include "daemon/forked_child.h"
#include "lib/base/fd.h"
#include "lib/model/limits.h"
#include "lib/plan/admit.h"
#include "lib/plan/plan.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/argv.h"
#include "lib/recipe/catalogue.h"
#include "lib/recipe/engine_words.h"
#include "lib/recipe/env_file.h"
#include "lib/recipe/env_layers.h"
#include "lib/recipe/owned.h"
#include "lib/recipe/recipe_file.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

/* bytes that are read in the loop: 20 ms, 40 with 1,000 flags that are none; more is read by a
 * child */
#define HERE_MAX (64 << 10)
#define RETAINED 16
#define KEEP_US 2000000

struct retained {
	char *text;
	size_t n;
	spec_check check;
	int64_t made_at;
	struct submit *spec;
};
struct specs {
	struct retained retained[RETAINED];
	size_t next;
	/* of their engines and profiles there is one copy, and it is the core's: it tells by its
	 * address that a new job has the same */
	struct shared_pool shared;
};

void specs_new(struct manager *m)
{
	m->specs = mo_alloc(sizeof(*m->specs));
}

static void forget(struct retained *k)
{
	free(k->text);
	mo_desc_free(&submit_desc, k->spec);
	*k = (struct retained){ 0 };
}

struct specs *specs_free(struct specs *s)
{
	for (size_t i = 0; s && i < RETAINED; i++)
		forget(&s->retained[i]);
	if (s)
		shared_pool_done(&s->shared);
	free(s);
	return NULL;
}

/* 422 with errors[], as the body of an answer. */
static void errors_body(const struct recipe_errors *errors, struct mo_buf *b)
{
	mo_buf_str(b, "{\"type\":\"about:blank\",\"title\":\"Unprocessable "
		      "Content\",\"status\":422,\"detail\":");
	_cleanup_(mo_freep) char *detail =
		mo_printf("the recipe has %zu error%s", errors->n, errors->n == 1 ? "" : "s");
	wire_string(detail, b);
	for (size_t i = 0; i < errors->n; i++) {
		const struct mo_error *e = &errors->items[i];
		mo_buf_printf(b, "%s{\"line\":%lld,\"column\":%lld,\"message\":",
			      i ? "," : ",\"errors\":[", (long long)e->line, (long long)e->column);
		wire_string(mo_error_text(e, -EINVAL), b);
		mo_buf_str(b, ",\"hint\":");
		if (e->hint)
			wire_string(e->hint, b);
		else
			mo_buf_str(b, "null");
		mo_buf_str(b, "}");
	}
	mo_buf_str(b, errors->n ? "]}" : "}");
}

static void submit_freep(struct submit **s)
{
	mo_desc_free(&submit_desc, *s);
}

int spec_resolve(struct submit *s, struct mo_error *err)
{
	engine_argv(&s->engine, &s->recipe, &s->argv, &s->n_argv);
	engine_prepare(&s->engine, &s->recipe, &s->prepare, &s->n_prepare);
	if (s->n_prepare && s->engine.prepare_hooks)
		engine_owned(&s->engine, &s->recipe);
	s->heartbeat_dir = engine_heartbeat_dir(&s->engine, &s->recipe);
	env_layers(&s->recipe, &s->engine, &s->env, &s->n_env);
	return env_profiles(&s->recipe, &s->profiles, &s->n_profiles, err);
}

static void clear_resolved(struct submit *s)
{
	submit_unique(s);
	for (size_t i = 0; i < s->n_argv; i++)
		free(s->argv[i]);
	free(s->argv);
	s->argv = NULL;
	s->n_argv = 0;
	for (size_t i = 0; i < s->n_prepare; i++)
		free(s->prepare[i]);
	free(s->prepare);
	s->prepare = NULL;
	s->n_prepare = 0;
	mo_str_set(&s->heartbeat_dir, NULL);
	mo_vec_clear(&env_item_desc, (void **)&s->env, &s->n_env);
	mo_vec_clear(&env_profile_desc, (void **)&s->profiles, &s->n_profiles);
}

int spec_for_user(struct submit *s, const char *user, struct mo_error *err)
{
	int r = recipe_for_user(&s->recipe, user, err);

	mo_str_set(&s->user, user);
	if (r <= 0)
		return r;
	clear_resolved(s);
	return spec_resolve(s, err);
}

bool spec_needs_plan(const struct submit *s)
{
	return s->recipe.parallelism.automatic || s->recipe.checkpoint.every == 0;
}

MO_DEFINE_DONE(plan_doc)

int spec_apply_plan(struct submit *s, const char *plan, struct mo_error *err)
{
	_cleanup_(plan_doc_done) struct plan_doc doc;

	mo_desc_init(&plan_doc_desc, &doc);
	int r = wire_decode(&plan_doc_desc, plan, strlen(plan), false, &doc, err);
	if (r < 0)
		return r;
	if (doc.n_plans == 0)
		return mo_error_set(err, -EINVAL, "the planner found no plan");
	_cleanup_(mo_freep) char *text = NULL;
	enum plan_verdict verdict = PLAN_ADMIT; /* given sizes were judged before */
	if (s->recipe.parallelism.automatic)
		verdict = plan_admit(&s->recipe, &doc, &text);
	if (verdict == PLAN_REFUSE)
		return mo_error_set(err, -EINVAL, "%s", text);
	if (verdict == PLAN_WARN)
		mo_strs_add(&s->warnings, &s->n_warnings, text);
	plan_apply(&doc, &s->recipe);
	if (s->engine.even_layers)
		plan_apply_layout(&s->recipe);
	mo_desc_free(&promise_desc, s->promise);
	s->promise = promise_of(&doc);
	clear_resolved(s);
	return spec_resolve(s, err);
}

static int add_peak(struct submit *s, struct mo_error *err)
{
	struct gpu_type g;

	if (!s->recipe.gpu)
		return 0;
	mo_desc_init(&gpu_type_desc, &g);
	int r = gpu_type_load(s->recipe.gpu, &g, err);
	if (r >= 0)
		s->peak_tflops = gpu_peak_tflops(&g, s->recipe.precision);
	mo_desc_done(&gpu_type_desc, &g);
	return r;
}

/* ---- reading: here, or in a child ---- */

struct recipe_read {
	struct manager *manager;
	const char *text; /* of the request's body */
	size_t n;
	bool json; /* the body was announced as that */
	struct recipe_set *sets;
	size_t n_sets;
	spec_check check;
	spec_fn done;
	uint64_t request, fork;
};
/* status 0: it was not refused */
struct refusal {
	int status;
	struct mo_buf body;
};

static void refusal_done(struct refusal *r)
{
	mo_buf_done(&r->body);
}

static void refuse(struct refusal *ret, int status, const char *detail)
{
	ret->status = status;
	wire_problem(status, detail, &ret->body);
}

/* A body that is announced as JSON and is none: refused as such, not as what is wrong with it as
 * YAML. */
static bool refuse_as_json(const struct recipe_read *g, struct refusal *ret)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	struct mo_error err = { 0 }, *e;
	struct json_object *json = NULL;

	if (!g->json)
		return false;
	if (wire_affordable(g->text, g->n, &err) == 0 &&
	    wire_parse(g->text, g->n, &json, &err) == 0) {
		json_object_put(json);
		return false;
	}
	e = MO_GROW(errors.items, errors.n);
	mo_error_set_at(e, -EINVAL, MO_MAX(err.line, 1), MO_MAX(err.column, 1), "not valid %s",
			mo_error_text(&err, -EINVAL));
	mo_error_hint(e, "correct it, or send YAML as application/yaml");
	mo_error_done(&err);
	ret->status = 422;
	errors_body(&errors, &ret->body);
	return true;
}

/* NULL with *ret. */
static struct submit *read_recipe(const struct recipe_read *g, struct refusal *ret)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(submit_freep) struct submit *s = mo_desc_new(&submit_desc);
	_cleanup_(mo_freep) char *why = NULL;

	if (recipe_parse(g->text, g->n, g->sets, g->n_sets, &s->recipe, &s->engine, &s->warnings,
			 &s->n_warnings, &errors) < 0) {
		if (!refuse_as_json(g, ret)) {
			ret->status = 422;
			errors_body(&errors, &ret->body);
		}
		return NULL;
	}
	int e = spec_resolve(s, &err);
	if (e >= 0)
		e = add_peak(s, &err);
	if (e < 0) {
		why = mo_printf("the controller's data files: %s: reinstall them or set "
				"MOE_DATA_DIR",
				mo_error_text(&err, e));
		refuse(ret, 500, why);
		return NULL;
	}
	s->recipe_text = mo_strndup(g->text, g->n);
	if (g->check && !g->check(g->manager, s, &why)) {
		refuse(ret, 422, why);
		return NULL;
	}
	return TAKE_PTR(s);
}

static void finish(struct recipe_read *g, struct http_request *r, struct submit *s,
		   const struct refusal *refusal)
{
	if (s)
		g->done(g->manager, r, s);
	else
		http_reply(r, refusal->status, "application/problem+json", refusal->body.data,
			   refusal->body.len, NULL);
}

/* ---- those kept ---- */

static struct submit *copy_of(struct specs *all, const struct submit *s)
{
	struct submit *copy = mo_desc_new(&submit_desc);

	shared_pool_copy(&all->shared, copy, s);
	return copy;
}

/* Of the same text, for the same use: checks add to what is kept. */
static struct submit *retained_of(const struct recipe_read *g)
{
	struct specs *all = g->manager->specs;
	int64_t now = mo_clock_boot_us();

	for (size_t i = 0; i < RETAINED && g->n_sets == 0; i++) {
		struct retained *k = &all->retained[i];
		if (k->spec && k->n == g->n && k->check == g->check && now - k->made_at < KEEP_US &&
		    memcmp(k->text, g->text, g->n) == 0)
			return copy_of(all, k->spec);
	}
	return NULL;
}

/* A new one shares from now on what it has in common with others: it is compared here, once, and
 * by its address from then on. */
static void keep(const struct recipe_read *g, struct submit *s)
{
	struct specs *all = g->manager->specs;

	shared_pool_take(&all->shared, s);
	if (g->n_sets)
		return;
	struct retained *k = &all->retained[all->next++ % RETAINED];
	forget(k);
	*k = (struct retained){ .text = mo_strndup(g->text, g->n),
				.n = g->n,
				.check = g->check,
				.made_at = mo_clock_boot_us(),
				.spec = copy_of(all, s) };
}

/* ---- the child ---- */

static int read_in_child(const struct manager *m, const void *arg, int fd)
{
	_cleanup_(refusal_done) struct refusal refusal = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(submit_freep) struct submit *s = read_recipe(arg, &refusal);
	int r = forked_status(fd, s ? 200 : refusal.status);

	if (r < 0 || !s)
		return r < 0 ? r : mo_write_all(fd, refusal.body.data, refusal.body.len);
	mo_str_set(&s->recipe_text, NULL); /* the parent has it */
	wire_encode(&submit_desc, s, &b);
	return mo_write_all(fd, b.data, b.len);
}

static void recipe_read_free(struct recipe_read *g)
{
	for (size_t i = 0; i < g->n_sets; i++) {
		free(g->sets[i].key);
		free(g->sets[i].value);
		free(g->sets[i].name);
	}
	free(g->sets);
	free(g);
}

static void on_read(void *arg, int status, const char *body, size_t n)
{
	struct recipe_read *g = arg;
	struct http_request *r = http_find(g->manager->http, g->request);
	_cleanup_(submit_freep) struct submit *s = mo_desc_new(&submit_desc);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (r)
		http_on_gone(r, NULL, NULL);
	if (r && status != 200) {
		http_reply(r, status, "application/problem+json", body, n, NULL);
	} else if (r && wire_decode(&submit_desc, body, n, false, s, &err) < 0) {
		http_problem(r, 500, "recipe: what a child read of it cannot be used: %s",
			     mo_error_text(&err, -EINVAL));
	} else if (r) {
		s->recipe_text = mo_strndup(g->text, g->n);
		keep(g, s);
		g->done(g->manager, r, TAKE_PTR(s));
	}
	recipe_read_free(g);
}

static void on_gone(void *arg, uint64_t id)
{
	struct recipe_read *g = arg;

	forked_cancel(g->manager, g->fork);
	recipe_read_free(g);
}

static void copy_sets(struct recipe_read *g, const struct recipe_set *sets, size_t n)
{
	g->sets = mo_alloc_array(n + 1, sizeof(*g->sets));
	for (; g->n_sets < n; g->n_sets++)
		g->sets[g->n_sets] = (struct recipe_set){ .key = mo_strdup(sets[g->n_sets].key),
							  .value = mo_strdup(sets[g->n_sets].value),
							  .name = mo_strdup(sets[g->n_sets].name) };
}

static void start_child(const struct recipe_read *now, struct http_request *r)
{
	struct recipe_read *g = mo_alloc(sizeof(*g));

	*g = *now;
	g->sets = NULL;
	g->n_sets = 0;
	copy_sets(g, now->sets, now->n_sets);
	g->request = http_id(r);
	const struct forked_work work = { .kind = FORKED_RECIPE,
					  .user = http_caller(r)->user,
					  .viewer = http_caller(r)->role == ROLE_VIEWER,
					  .run = read_in_child,
					  .arg = now,
					  .done = on_read,
					  .done_arg = g };
	if (!forked_begin(g->manager, r, &work, &g->fork)) {
		recipe_read_free(g);
		return;
	}
	http_on_gone(r, on_gone, g);
}

void spec_read(struct manager *m, struct http_request *r, const struct spec_wish *wish)
{
	const char *type = http_header(r, "Content-Type");
	struct recipe_read g = { .manager = m,
				 .sets = wish->sets,
				 .n_sets = wish->n_sets,
				 .check = wish->check,
				 .done = wish->done,
				 .json = type && strncasecmp(type, "application/json",
							     strlen("application/json")) == 0 };
	_cleanup_(refusal_done) struct refusal refusal = { 0 };

	g.text = http_body(r, &g.n);
	struct submit *s = retained_of(&g);
	if (!s && g.n > HERE_MAX && g.n <= MO_RECIPE_BYTES_MAX) {
		start_child(&g, r);
		return;
	}
	if (!s && (s = read_recipe(&g, &refusal)))
		keep(&g, s);
	finish(&g, r, s, &refusal);
}
