/* See api_job_drawn.h. Both answers are bounded: a curve by its points, a matrix by pages. */
#include "daemon/api_job_drawn.h"

#include <string.h>

#include "daemon/api.h"
#include "daemon/core/view/curve.h"
#include "daemon/core/view/matrix.h"
#include "daemon/sample_files.h"
#include "lib/base/parse.h"

/* -1 after 400 was sent. */
static int read_name(struct http_request *r, const char *what, const char *name,
		     const char *const *names, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf all = { 0 };
	int k = mo_enum_parse(names, n, name);

	if (k >= 0)
		return k;
	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
	http_problem(r, 400, "%s=%.40s: must be one of %s", what, name, all.data);
	return -1;
}

/* names=loss,step_ms; not given: all. False after 400 was sent. */
static bool read_names(struct http_request *r, bool *ret)
{
	const char *given = http_query(r, "names");
	_cleanup_(mo_freep) char *names = mo_strdup(given);

	for (int k = 0; k < _CURVE_N; k++)
		ret[k] = !given;
	for (char *rest = names, *name; rest && (name = strsep(&rest, ","));) {
		int k = read_name(r, "names", name, curve_names, _CURVE_N);

		if (k < 0)
			return false;
		ret[k] = true;
	}
	return true;
}

static bool block_seen(void *arg, const struct sample_block *b)
{
	curve_seen(arg, b->attempt, b->first, b->last, b->n);
	return false;
}

static bool sample_seen(void *arg, const struct sample *s)
{
	curve_seen(arg, s->attempt, s->iteration, s->iteration, 1);
	return true;
}

static bool block_add(void *arg, const struct sample_block *b)
{
	bool needed = curve_needs(arg, b);

	if (!needed)
		curve_add(arg, b);
	return needed;
}

static bool sample_add(void *arg, const struct sample *s)
{
	struct sample_block one;

	sample_block_of(s, 1, &one);
	curve_add(arg, &one);
	return true;
}

static void draw(struct manager *m, const struct job *j, const struct curve_question *q,
		 struct curve_view *ret)
{
	struct curve c;

	curve_start(&c, q, ret);
	sample_files_read(m, j, &(struct sample_reader){ block_seen, sample_seen, &c });
	curve_begin(&c, j);
	sample_files_read(m, j, &(struct sample_reader){ block_add, sample_add, &c });
	curve_end(&c);
}

void api_job_curve(struct manager *m, struct http_request *r, const struct job *j, int64_t attempt,
		   int64_t iteration)
{
	struct curve_question q = { .attempt = attempt, .iteration = iteration };
	struct curve_view v;

	if (!api_int(r, "points", CURVE_POINTS_MIN, CURVE_POINTS_MAX, 0, &q.points) ||
	    !read_names(r, q.names))
		return;
	mo_desc_init(&curve_view_desc, &v);
	draw(m, j, &q, &v);
	api_send_doc(r, 200, &curve_view_desc, &v);
	mo_desc_done(&curve_view_desc, &v);
}

void api_job_matrix(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);
	const char *metric = http_query(r, "metric");
	int64_t limit, after;
	struct matrix_view v;
	int k;

	if (!j ||
	    (k = read_name(r, "metric", metric ? metric : "state", matrix_metric_names,
			   _MATRIX_N)) < 0 ||
	    !api_int(r, "limit", 1, MATRIX_RANKS_MAX, MATRIX_RANKS_MAX, &limit) ||
	    !api_int(r, "after", 0, INT32_MAX, -1, &after))
		return;
	mo_desc_init(&matrix_view_desc, &v);
	matrix_of(manager_state(arg), j, k, after + 1, limit, manager_now(arg), &v);
	api_send_doc(r, 200, &matrix_view_desc, &v);
	mo_desc_done(&matrix_view_desc, &v);
}
