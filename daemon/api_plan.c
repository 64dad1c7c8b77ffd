/* POST /v1/plan and /v1/validate. */
#include <errno.h>
#include <string.h>
#include "daemon/api.h"
#include "daemon/helper.h"
#include "daemon/spec.h"
#include "lib/base/parse.h"

#define OPTIONS_MAX 8

struct waiting { struct manager *manager; uint64_t request, helper; };

static void on_gone(void *arg, uint64_t id)
{
	struct waiting *w = arg;

	helper_cancel(w->manager, w->helper);
	free(w);
}

static void on_planned(void *arg, int status, const char *text)
{
	struct waiting *w = arg;
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

/* Options of the search from the query string: only what is checked here reaches the command line. false after 400. */
static bool read_options(struct http_request *r, struct mo_buf *words)
{
	static const char *const numbers[] = { "gpus", "top" };
	const char *gpu = http_query(r, "gpu"), *scale = http_query(r, "scale");
	int64_t v;

	for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
		if (!api_int(r, numbers[i], 1, 1 << 20, MO_NONE, &v))
			return false;
		if (v != MO_NONE)
			mo_buf_printf(words, "--%s\n%lld\n", numbers[i], (long long)v);
	}
	if (gpu && !mo_name_valid(gpu)) {
		http_problem(r, 400, "gpu=%.40s: must be a GPU of the catalogue such as mi355x", gpu);
		return false;
	}
	if (gpu)
		mo_buf_printf(words, "--gpu\n%s\n", gpu);
	if (scale && (!*scale || strlen(scale) > 200 || strspn(scale, "0123456789,") != strlen(scale))) {
		http_problem(r, 400, "scale: must be numbers of GPUs separated by commas");
		return false;
	}
	if (scale)
		mo_buf_printf(words, "--scale\n%s\n", scale);
	return true;
}

static void split_words(char *text, char *ret[static OPTIONS_MAX + 1])
{
	size_t n = 0;

	while (text && *text && n < OPTIONS_MAX)
		ret[n++] = strsep(&text, "\n");
	ret[n] = NULL;
}

void api_plan(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	_cleanup_(mo_buf_done) struct mo_buf words = {0};
	char *options[OPTIONS_MAX + 1];
	size_t n;
	const char *text = http_body(r, &n);

	struct submit *spec = spec_make(m, r, text, n);
	mo_desc_free(&submit_desc, spec);
	if (!spec || !read_options(r, &words))
		return;
	split_words(words.data, options);
	struct waiting *w = mo_alloc(sizeof(*w));
	w->manager = m;
	w->request = http_id(r);
	int e = helper_plan(m, text, n, options, on_planned, w, &w->helper);
	if (e < 0) {
		plan_refuse(r, e);
		free(w);
		return;
	}
	http_on_gone(r, on_gone, w);
}

void plan_refuse(struct http_request *r, int e)
{
	if (e == -EBUSY)
		http_problem(r, 429, "two plan searches are running already: try again in a moment, or run moectl plan on your machine");
	else
		http_problem(r, 500, "the plan search could not be started: %s", strerror(-e));
}

void api_validate(void *arg, struct http_request *r)
{
	size_t n;
	const char *text = http_body(r, &n);
	struct submit *spec = spec_make(arg, r, text, n);

	if (!spec)
		return;
	http_reply(r, 200, "application/json", "{\"valid\":true}", 14, NULL);
	mo_desc_free(&submit_desc, spec);
}
