/* See spec.h. Parsing a recipe reads several data files and takes about a millisecond, so the specs of the last few texts are kept for a moment: a program that submits the same
 * recipe a thousand times pays once. Data files that change count after KEEP_US. */
#include "daemon/spec.h"
#include <errno.h>
#include <string.h>
#include "daemon/anchors.h"
#include "lib/plan/plan.h"
#include "lib/wire/json.h"

#define KEPT 16
#define KEEP_US 2000000

struct kept { char *text; size_t n; int64_t made_at; struct submit *spec; };
struct specs { struct kept kept[KEPT]; size_t next; };

void specs_new(struct manager *m)
{
	m->specs = mo_alloc(sizeof(*m->specs));
}

static void forget(struct kept *k)
{
	free(k->text);
	mo_desc_free(&submit_desc, k->spec);
	*k = (struct kept){0};
}

struct specs *specs_free(struct specs *s)
{
	for (size_t i = 0; s && i < KEPT; i++)
		forget(&s->kept[i]);
	free(s);
	return NULL;
}

void spec_refuse(struct http_request *r, const struct recipe_errors *errors)
{
	_cleanup_(mo_buf_done) struct mo_buf b = {0};

	mo_buf_str(&b, "{\"type\":\"about:blank\",\"title\":\"Unprocessable Content\",\"status\":422,\"detail\":");
	_cleanup_(mo_freep) char *detail = mo_printf("the recipe has %zu error%s", errors->n, errors->n == 1 ? "" : "s");
	wire_string(detail, &b);
	for (size_t i = 0; i < errors->n; i++) {
		const struct mo_error *e = &errors->items[i];
		mo_buf_printf(&b, "%s{\"line\":%lld,\"column\":%lld,\"message\":", i ? "," : ",\"errors\":[", (long long)e->line, (long long)e->column);
		wire_string(mo_error_text(e, -EINVAL), &b);
		mo_buf_str(&b, ",\"hint\":");
		if (e->hint)
			wire_string(e->hint, &b);
		else
			mo_buf_str(&b, "null");
		mo_buf_str(&b, "}");
	}
	mo_buf_str(&b, errors->n ? "]}" : "}");
	http_reply(r, 422, "application/problem+json", b.data, b.len, NULL);
}

static void submit_freep(struct submit **s) { mo_desc_free(&submit_desc, *s); }

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

static void doc_done(struct plan_doc *d) { mo_desc_done(&plan_doc_desc, d); }

int spec_apply_plan(struct submit *s, const char *plan, struct mo_error *err)
{
	_cleanup_(doc_done) struct plan_doc doc;

	mo_desc_init(&plan_doc_desc, &doc);
	int r = wire_decode(&plan_doc_desc, plan, strlen(plan), false, &doc, err);
	if (r < 0)
		return r;
	if (doc.n_plans == 0)
		return mo_error_set(err, -EINVAL, "the planner found no plan");
	_cleanup_(mo_freep) char *text = NULL;
	enum plan_verdict verdict = s->recipe.parallelism.automatic ? plan_admit(&s->recipe, &doc, &text) : PLAN_ADMIT;    /* given sizes were looked at before */
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

/* A body that is announced as JSON and is none: told as such, not as what is wrong with it as YAML. */
static bool refuse_as_json(struct http_request *r, const char *text, size_t n)
{
	const char *type = http_header(r, "Content-Type");
	_cleanup_(recipe_errors_done) struct recipe_errors errors = {0};
	struct mo_error err = {0}, *e;
	struct json_object *json = NULL;

	if (!type || strncasecmp(type, "application/json", strlen("application/json")) != 0)
		return false;
	if (wire_affordable(text, n, &err) == 0 && wire_parse(text, n, &json, &err) == 0) {
		json_object_put(json);
		return false;
	}
	e = MO_GROW(errors.items, errors.n);
	mo_error_set_at(e, -EINVAL, MO_MAX(err.line, 1), MO_MAX(err.column, 1), "not valid %s", mo_error_text(&err, -EINVAL));
	mo_error_hint(e, "correct it, or send YAML as application/yaml");
	mo_error_done(&err);
	spec_refuse(r, &errors);
	return true;
}

struct submit *spec_make_set(struct http_request *r, const char *text, size_t n, const struct recipe_set *sets, size_t n_sets)
{
	_cleanup_(recipe_errors_done) struct recipe_errors errors = {0};
	_cleanup_(mo_error_done) struct mo_error err = {0};
	_cleanup_(submit_freep) struct submit *s = mo_desc_new(&submit_desc);

	if (recipe_parse(text, n, sets, n_sets, &s->recipe, &s->engine, &s->warnings, &s->n_warnings, &errors) < 0) {
		if (!refuse_as_json(r, text, n))
			spec_refuse(r, &errors);
		return NULL;
	}
	int e = spec_resolve(s, &err);
	if (e >= 0)
		e = add_peak(s, &err);
	if (e < 0) {
		http_problem(r, 500, "the controller's data files: %s: reinstall them or set MOE_DATA_DIR", mo_error_text(&err, e));
		return NULL;
	}
	s->recipe_text = mo_strndup(text, n);
	return TAKE_PTR(s);
}

struct submit *spec_make(struct manager *m, struct http_request *r, const char *text, size_t n)
{
	int64_t now = mo_clock_boot_us();

	for (size_t i = 0; i < KEPT; i++) {
		struct kept *k = &m->specs->kept[i];
		if (k->spec && k->n == n && now - k->made_at < KEEP_US && memcmp(k->text, text, n) == 0)
			return mo_desc_dup(&submit_desc, k->spec);
	}
	struct submit *s = spec_make_set(r, text, n, NULL, 0);
	if (!s)
		return NULL;
	struct kept *k = &m->specs->kept[m->specs->next++ % KEPT];
	forget(k);
	*k = (struct kept){ .text = mo_strndup(text, n), .n = n, .made_at = now, .spec = mo_desc_dup(&submit_desc, s) };
	return s;
}
