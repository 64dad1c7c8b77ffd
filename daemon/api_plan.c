/* POST /v1/plan and /v1/validate, GET /v1/anchors. */
#include "daemon/api_plan.h"

#include <errno.h>
#include <string.h>
#include "daemon/admit.h"
#include "daemon/anchors.h"
#include "daemon/api.h"
#include "daemon/helper.h"
#include "daemon/spec.h"
#include "lib/base/parse.h"
#include "lib/plan/options.h"

#define OPTIONS_MAX 20

struct waiting_plan {
	struct manager *manager;
	uint64_t request, helper;
};

static void on_gone(void *arg, uint64_t id)
{
	struct waiting_plan *w = arg;

	helper_cancel(w->manager, w->helper);
	free(w);
}

static void on_planned(void *arg, int status, const char *text)
{
	struct waiting_plan *w = arg;
	struct http_request *r = http_find(w->manager->http, w->request);

	if (r) {
		http_on_gone(r, NULL, NULL);
		if (status == 200)
			http_reply(r, 200, "application/json", text, strlen(text), NULL);
		else
			http_problem(r, status, "%s", text);
	}
	free(w);
}

/* What the query string says of the recipe and of the search: only what is checked here reaches
 * the command line. */
struct wish {
	struct mo_buf words;
	struct recipe_set sets[2];
	size_t n_sets;
};

static void wish_done(struct wish *w)
{
	mo_buf_done(&w->words);
	for (size_t i = 0; i < w->n_sets; i++) {
		free(w->sets[i].key);
		free(w->sets[i].value);
		free(w->sets[i].name);
	}
}

static void wish_set(struct wish *w, const char *query, const char *key, const char *value)
{
	mo_buf_printf(&w->words, "--%s\n%s\n", query, value);
	w->sets[w->n_sets++] = (struct recipe_set){ .key = mo_strdup(key),
						    .value = mo_strdup(value),
						    .name = mo_printf("%s=%s", query, value) };
}

/* Values that may hold more than a number: false after 400. */
static bool read_texts(struct http_request *r, struct wish *w)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	const char *scale = http_query(r, "scale"), *tokens = http_query(r, "tokens"),
		   *failures = http_query(r, "failures"), *fabric = http_query(r, "fabric"),
		   *open = http_query(r, "open");
	struct plan_failures assumed;
	struct plan_fabric network;
	int64_t sizes[PLAN_SCALE_MAX];
	size_t n;
	double budget;
	bool all = false;

	if (scale && plan_scale_parse(scale, sizes, &n, &err) < 0) {
		http_problem(r, 400, "scale=%.80s: %s", scale, mo_error_text(&err, -EINVAL));
		return false;
	}
	if (tokens && plan_tokens_parse(tokens, &budget, &err) < 0) {
		http_problem(r, 400, "tokens=%.40s: %s", tokens, mo_error_text(&err, -EINVAL));
		return false;
	}
	if (failures && plan_failures_parse(failures, &assumed, &err) < 0) {
		http_problem(r, 400, "failures=%.80s: %s", failures, mo_error_text(&err, -EINVAL));
		return false;
	}
	if (fabric && plan_fabric_parse(fabric, &network, &err) < 0) {
		http_problem(r, 400, "fabric=%.80s: %s", fabric, mo_error_text(&err, -EINVAL));
		return false;
	}
	if (open && mo_parse_bool(open, &all) < 0) {
		http_problem(r, 400, "open=%.40s: must be 1 or 0", open);
		return false;
	}
	if (scale)
		mo_buf_printf(&w->words, "--scale\n%s\n", scale);
	if (tokens)
		mo_buf_printf(&w->words, "--tokens\n%s\n", tokens);
	if (failures)
		mo_buf_printf(&w->words, "--failures\n%s\n", failures);
	if (fabric)
		mo_buf_printf(&w->words, "--fabric\n%s\n", fabric);
	if (all)
		mo_buf_str(&w->words, "--open\n");
	return true;
}

/* false after 400. */
static bool read_wish(struct http_request *r, struct wish *w)
{
	const char *gpu = http_query(r, "gpu");
	int64_t gpus, top;

	if (!api_int(r, "gpus", 1, PLAN_GPUS_MAX, MO_NONE, &gpus) ||
	    !api_int(r, "top", 1, 1000, MO_NONE, &top))
		return false;
	if (gpu && !mo_name_valid(gpu)) {
		http_problem(r, 400, "gpu=%.40s: must be a GPU of the catalogue such as mi355x",
			     gpu);
		return false;
	}
	if (gpus != MO_NONE)
		wish_set(w, "gpus", "cluster.gpus", http_query(r, "gpus"));
	if (gpu)
		wish_set(w, "gpu", "cluster.gpu", gpu);
	if (top != MO_NONE)
		mo_buf_printf(&w->words, "--top\n%lld\n", (long long)top);
	return read_texts(r, w);
}

static void split_words(char *text, char *ret[static OPTIONS_MAX + 1])
{
	size_t n = 0;

	while (text && *text && n < OPTIONS_MAX)
		ret[n++] = strsep(&text, "\n");
	ret[n] = NULL;
}

static enum search_kind kind_of(const struct http_request *r)
{
	return http_caller(r)->role == ROLE_VIEWER ? SEARCH_VIEWER : SEARCH_PLAN;
}

/* The wish was understood once. */
static void plan_read(struct manager *m, struct http_request *r, struct submit *spec)
{
	_cleanup_(wish_done) struct wish wish = { 0 };
	char *options[OPTIONS_MAX + 1];
	size_t n;
	const char *text = http_body(r, &n);

	(void)read_wish(r, &wish);
	const char *gpu = spec->recipe.gpu ? spec->recipe.gpu : PLAN_GPU_ASSUMED;
	_cleanup_(mo_freep) char *anchors = anchors_document(&m->anchor_texts, manager_state(m),
							     NULL, gpu, spec->recipe.precision);
	mo_desc_free(&submit_desc, spec);
	split_words(wish.words.data, options);
	struct waiting_plan *w = mo_alloc(sizeof(*w));
	w->manager = m;
	w->request = http_id(r);
	const struct helper_input input = { .user = http_caller(r)->user,
					    .kind = kind_of(r),
					    .recipe = text,
					    .n = n,
					    .options = options,
					    .anchors = anchors };
	int e = helper_plan(m, &input, on_planned, w, &w->helper);
	if (e < 0) {
		plan_refuse(r, e);
		free(w);
		return;
	}
	http_on_gone(r, on_gone, w);
}

void api_plan(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	_cleanup_(wish_done) struct wish wish = { 0 };

	if (!read_wish(r, &wish))
		return;
	/* before the recipe is read: a crowd of callers costs next to nothing */
	if (!helper_room(m, http_caller(r)->user, kind_of(r))) {
		plan_refuse(r, -EBUSY);
		return;
	}
	spec_read(m, r,
		  &(struct spec_wish){
			  .done = plan_read, .sets = wish.sets, .n_sets = wish.n_sets });
}

void plan_refuse(struct http_request *r, int e)
{
	if (e == -EBUSY)
		http_problem(r, 429, HELPER_BUSY);
	else
		http_problem(r, 500, HELPER_NOT_STARTED, strerror(-e));
}

void api_anchors(void *arg, struct http_request *r)
{
	struct viewer viewer;
	viewer_of(arg, r, &viewer);
	_cleanup_(mo_freep) char *text = anchors_document(&((struct manager *)arg)->anchor_texts,
							  manager_state(arg), &viewer, NULL, NULL);
	const char *answer = text ? text : "{\"anchor\":1,\"runs\":[]}";

	http_reply(r, 200, "application/json", answer, strlen(answer), NULL);
}

struct valid_view {
	bool valid;
	char **warnings;
	size_t n_warnings;
};
static const struct mo_field valid_view_fields[] = {
	MO_D(valid_view, valid, MO_BOOL, "true: a recipe that is wrong is answered with 422"),
	MO_D_LIST(valid_view, warnings, MO_STRS,
		  "what will be wrong with its checkpoints, by what is known now, a sentence each",
		  .omit = true),
};
const struct mo_desc valid_view_desc = MO_DESC(valid_view, valid_view_fields);

static void validated(struct manager *m, struct http_request *r, struct submit *spec)
{
	size_t known = spec->n_warnings;

	admit_promise(manager_state(m), spec);
	admit_warn_checkpoints(manager_state(m), spec);
	admit_warn_spares(manager_state(m), spec);
	api_send_doc(r, 200, &valid_view_desc,
		     &(struct valid_view){ true, spec->warnings + known,
					   spec->n_warnings - known });
	mo_desc_free(&submit_desc, spec);
}

void api_validate(void *arg, struct http_request *r)
{
	spec_read(arg, r, &(struct spec_wish){ .done = validated });
}
