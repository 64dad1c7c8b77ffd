/* What is known of one job: ranks, metrics, checkpoints, report, why, environment. */
#include "daemon/api_job_docs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "daemon/anchors.h"
#include "daemon/api.h"
#include "daemon/api_config.h"
#include "daemon/api_job_drawn.h"
#include "daemon/core/rules/plan_drift.h"
#include "daemon/core/rules/rank_doing.h"
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/heard.h"
#include "daemon/core/state/slot_health.h"
#include "daemon/core/view/report.h"
#include "daemon/core/view/why.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/why_view.h"
#include "daemon/sample_files.h"
#include "daemon/too_large.h"
#include "daemon/visible.h"
#include "lib/base/parse.h"

void api_job_ranks(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);
	_cleanup_(list_done) struct list l = { 0 };
	int64_t after;

	if (!j || !api_int(r, "after", 0, INT64_MAX, -1, &after) || !list_start(r, &l))
		return;
	for (size_t i = 0; i < j->run.n_ranks; i++) {
		if (j->run.ranks[i].rank <= after)
			continue;
		if (!list_room(&l))
			break;
		_cleanup_(mo_freep) char *note =
			rank_slot_note(manager_state(arg), j, &j->run.ranks[i]);
		struct rank shown = j->run.ranks[i]; /* borrowed */
		shown.gpu_note = note;
		shown.doing = rank_doing_of(manager_state(arg), j, i, manager_now(arg));
		shown.own_times = rank_own_times_of(manager_state(arg), j, i);
		rank_progress_of(manager_state(arg), j, i, &shown.iteration, &shown.step_ms);
		list_add_numbered(&l, &rank_view_desc, &shown, shown.rank);
	}
	list_send(r, &l);
}

struct samples_view {
	int64_t left_out;
};
static const struct mo_field samples_view_fields[] = {
	MO_D(samples_view, left_out, MO_INT,
	     "iterations of which no Sample is kept: they came too fast for long"),
};
const struct mo_desc samples_view_desc = MO_DESC(samples_view, samples_view_fields);

/* An iteration repeated by a later attempt appears again, so the place in the list is
 * "attempt.iteration". */
static bool read_place(struct http_request *r, int64_t *attempt, int64_t *iteration)
{
	const char *after = http_query(r, "after"), *dot = after ? strchr(after, '.') : NULL;

	*attempt = 0;
	*iteration = -1;
	if (!after)
		return true;
	_cleanup_(mo_freep) char *head = dot ? mo_strndup(after, (size_t)(dot - after)) : NULL;
	if (head && mo_parse_i64(head, 0, INT64_MAX, attempt) == 0 &&
	    mo_parse_i64(dot + 1, 0, INT64_MAX, iteration) == 0)
		return true;
	http_problem(r, 400, "after=%.40s: must be the `next` of an earlier answer", after);
	return false;
}

/* Those that are asked for: behind a place, of iterations from `since` on, without the first
 * `skip`. */
struct sample_list {
	struct list list;
	int64_t attempt, iteration, since, skip;
};

static bool wanted(const struct sample_list *l, int64_t attempt, int64_t iteration)
{
	return iteration >= l->since &&
	       (attempt > l->attempt || (attempt == l->attempt && iteration > l->iteration));
}

static bool block_listed(void *arg, const struct sample_block *b)
{
	struct sample_list *l = arg;

	if (l->skip >= b->n) {
		l->skip -= b->n;
		return false;
	}
	return l->skip > 0 || wanted(l, b->attempt, b->last);
}

static bool sample_listed(void *arg, const struct sample *s)
{
	struct sample_list *l = arg;
	struct sample shown = *s;
	char key[48];

	if (l->skip > 0) {
		l->skip--;
		return true;
	}
	if (!wanted(l, s->attempt, s->iteration))
		return true;
	if (!list_room(&l->list))
		return false;
	snprintf(key, sizeof(key), "%lld.%lld", (long long)s->attempt, (long long)s->iteration);
	/* documents have milliseconds; the ledger keeps what the node measured */
	shown.time -= shown.time % 1000;
	list_add(&l->list, &sample_desc, &shown, key);
	return true;
}

static bool block_counted(void *arg, const struct sample_block *b)
{
	*(int64_t *)arg += b->n;
	return false;
}

static bool sample_counted(void *arg, const struct sample *s)
{
	(*(int64_t *)arg)++;
	return true;
}

void api_job_metrics(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);
	struct sample_list l = { 0 };
	int64_t n = 0;

	if (!j || !read_place(r, &l.attempt, &l.iteration))
		return;
	if (http_query(r, "points")) {
		api_job_curve(arg, r, j, l.attempt, l.iteration);
		return;
	}
	if (!api_int(r, "since", 0, INT64_MAX, INT64_MIN, &l.since) || !list_start(r, &l.list))
		return;
	l.list.last = api_flag(r, "last");
	if (l.list.last)
		sample_files_read(arg, j,
				  &(struct sample_reader){ block_counted, sample_counted, &n });
	l.list.earlier = l.skip = MO_MAX(n - l.list.limit, 0);
	sample_files_read(arg, j, &(struct sample_reader){ block_listed, sample_listed, &l });
	const struct samples_view beside = { .left_out = MO_MAX(j->progress.left_out, 0) };
	list_send_with(r, &l.list, &samples_view_desc, &beside);
	list_done(&l.list);
}

void api_job_checkpoints(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);
	_cleanup_(list_done) struct list l = { 0 };
	struct checkpoint shown;
	size_t first = 0;
	int64_t after;

	if (!j || !api_int(r, "after", 0, INT64_MAX, -1, &after) || !list_start(r, &l))
		return;
	l.last = api_flag(r, "last");
	if (l.last && j->n_checkpoints > (size_t)l.limit)
		first = j->n_checkpoints - (size_t)l.limit;
	l.earlier = (int64_t)first;
	for (size_t i = first; i < j->n_checkpoints; i++) {
		if (j->checkpoints[i].iteration <= after)
			continue;
		if (!list_room(&l))
			break;
		shown = checkpoint_shown(&j->checkpoints[i]);
		list_add_numbered(&l, &checkpoint_view_desc, &shown, shown.iteration);
	}
	list_send(r, &l);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What the job was measured at; before it has steady steps enough, the median of all. */
static bool measure(const struct job *j, struct measured *ret)
{
	_cleanup_(mo_freep) double *steps =
		mo_alloc_array(j->progress.n_samples + 1, sizeof(*steps));
	size_t n = 0;

	if (j->progress.measured) {
		*ret = *j->progress.measured;
		return true;
	}
	mo_desc_init(&measured_desc, ret);
	if (plan_drift_measure(j, ret))
		return true;
	for (size_t i = 0; i < j->progress.n_samples; i++) {
		const struct sample *s = &j->progress.samples[i];
		if (s->step_ms != MO_NONE_F && isfinite(s->step_ms))
			steps[n++] = s->step_ms;
		if (s->mem_gb != MO_NONE_F && isfinite(s->mem_gb))
			ret->memory_gb = MO_MAX(ret->memory_gb, s->mem_gb);
	}
	qsort(steps, n, sizeof(*steps), by_value);
	ret->steps = (int64_t)n;
	ret->step_time_s = steps[n / 2] / 1000;
	return n > 0;
}

/* The run as `moectl plan --anchor` reads it. */
static void anchor(struct http_request *r, const struct job *j)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct measured m;

	if (!measure(j, &m)) {
		http_problem(r, 409,
			     "job j-%lld has no measured step times yet: let it run some "
			     "iterations",
			     (long long)j->id);
		return;
	}
	if (!j->spec.recipe_text && j->let_go != MO_NONE) {
		_cleanup_(mo_freep) char *gone = api_let_go(j);
		http_problem(r, 410, "%s", gone);
		return;
	}
	_cleanup_(mo_freep) char *run = anchor_run_text(&j->spec.recipe, j->spec.recipe_text, &m);
	if (!run) {
		http_problem(r, 409,
			     "job j-%lld: this version refuses its recipe: moectl validate tells "
			     "why",
			     (long long)j->id);
		return;
	}
	mo_buf_printf(&b, "{\"anchor\":1,\"runs\":[%s]}", run);
	api_send(r, 200, &b);
}

MO_DEFINE_DONE(report_view)

void api_job_report(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	struct report_view v;

	if (!j)
		return;
	if (api_flag(r, "anchor")) {
		if (visible_to(m, r, j, "arguments"))
			anchor(r, j);
		return;
	}
	struct viewer viewer;
	viewer_of(m, r, &viewer);
	mo_desc_init(&report_view_desc, &v);
	job_report(manager_state(m), j, manager_now(m), &v);
	visible_report(&viewer, j, &v);
	api_send_doc(r, 200, &report_view_desc, &v);
	mo_desc_done(&report_view_desc, &v);
}

void api_job_ledger(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	const char *window = http_query(r, "window");
	int64_t window_us = MO_NONE;
	struct ledger_view v;

	if (!j)
		return;
	if (window && (mo_parse_duration_us(window, &window_us) < 0 || window_us == 0)) {
		http_problem(r, 400, "window=%.40s: must be how long, such as 30m, 1h or 7d",
			     window);
		return;
	}
	mo_desc_init(&ledger_view_desc, &v);
	job_ledger(manager_state(m), j, manager_now(m), window_us, &v);
	api_send_doc(r, 200, &ledger_view_desc, &v);
	mo_desc_done(&ledger_view_desc, &v);
}

void api_job_incidents(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	_cleanup_(report_view_done) struct report_view v;
	_cleanup_(list_done) struct list l = { 0 };
	struct viewer viewer;
	int64_t after;

	mo_desc_init(&report_view_desc, &v);
	if (!j || !api_int(r, "after", 0, INT64_MAX, -1, &after) || !list_start(r, &l))
		return;
	viewer_of(m, r, &viewer);
	job_report(manager_state(m), j, manager_now(m), &v);
	visible_report(&viewer, j, &v);
	l.last = api_flag(r, "last");
	l.earlier = l.last ? (int64_t)v.n_incidents - l.limit : 0;
	for (size_t i = (size_t)MO_MAX(l.earlier, 0); i < v.n_incidents; i++) {
		if (v.incidents[i].attempt <= after)
			continue;
		if (!list_room(&l))
			break;
		list_add_numbered(&l, &incident_desc, &v.incidents[i], v.incidents[i].attempt);
	}
	list_send(r, &l);
}

/* One that waits for more than there is: what it said at its submit. */
static void why_too_large(const struct state *s, const struct viewer *viewer, const struct job *j,
			  struct why_view *v)
{
	_cleanup_(too_large_done) struct too_large t = { 0 };
	bool waits = false;

	for (size_t i = 0; i < v->n_reasons; i++)
		waits = waits ||
			mo_streq(v->reasons[i].code, waiting_code_names[WAITING_TOO_LARGE]);
	if (!waits || !viewer_sees(viewer, j) || !too_large(s, &j->spec, &t))
		return;
	free(v->next);
	v->next = mo_printf("it starts when more nodes join%s%s", t.next ? "; " : "",
			    t.next ? t.next : "");
}

void api_job_why(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct job *j = api_job(m, r);
	struct why_view v;

	if (!j)
		return;
	mo_desc_init(&why_view_desc, &v);
	job_why(manager_state(m), j, manager_now(m), &v);
	core_why_readings(m->core, j, manager_now(m), &v);
	struct viewer viewer;
	viewer_of(m, r, &viewer);
	why_too_large(manager_state(m), &viewer, j, &v);
	visible_why(&viewer, j, &v);
	api_send_doc(r, 200, &why_view_desc, &v);
	mo_desc_done(&why_view_desc, &v);
}
