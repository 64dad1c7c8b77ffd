/* Jobs: list, one job, and the verbs. A change becomes an input of the next turn; its answer
 * leaves after the sync. */
#include "daemon/api_jobs.h"

#include <stdio.h>
#include <string.h>
#include "daemon/api.h"
#include "daemon/input.h"
#include "daemon/visible.h"
#include "lib/base/parse.h"
#include "lib/model/labels.h"

/* "queued,running" into a set of states; false after 400. */
static bool read_states(struct http_request *r, bool wanted[static _JOB_STATE_N])
{
	const char *p = http_query(r, "state");

	for (int i = 0; i < _JOB_STATE_N; i++)
		wanted[i] = !p;
	while (p && *p) {
		size_t n = strcspn(p, ",");
		_cleanup_(mo_freep) char *word = mo_strndup(p, n);
		int state = mo_enum_parse(job_state_names, _JOB_STATE_N, word);
		if (state < 0) {
			const char *near = mo_near_miss(word, job_state_names, _JOB_STATE_N);

			http_problem(r, 400,
				     "state=%.40s: not a state of a job%s%s%s (queued starting "
				     "running recovering stopping paused completed failed "
				     "cancelled)",
				     word, near ? ": did you mean " : "", near ? near : "",
				     near ? "?" : "");
			return false;
		}
		wanted[state] = true;
		p += n + (p[n] == ',');
	}
	return true;
}

/* What a list is asked for; NULL: whatever it is. */
struct wanted {
	int64_t after;
	bool states[_JOB_STATE_N];
	const char *name, *user, *labels;
};

static bool is_wanted(const struct job *j, const struct wanted *w)
{
	return j->id > w->after && w->states[j->state] &&
	       (!w->name || mo_streq(w->name, j->spec.recipe.name)) &&
	       (!w->user || mo_streq(w->user, j->spec.user)) &&
	       (!w->labels ||
		labels_match(j->spec.recipe.labels, j->spec.recipe.n_labels, w->labels));
}

/* last=1: the newest that fit into limit. */
void api_jobs_list(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct state *s = manager_state(m);
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	struct viewer viewer;
	struct wanted w = { .name = http_query(r, "name"),
			    .user = http_query(r, "user"),
			    .labels = http_query(r, "label") };
	int64_t matching = 0, skip, now = manager_now(m);
	struct job_view v;
	char key[32];

	if (after && api_job_id(after, &w.after) < 0) {
		http_problem(r, 400, "after=%.40s: must be the id of a job such as j-7", after);
		return;
	}
	if (w.labels && !labels_wanted_valid(w.labels)) {
		http_problem(r, 400, "label=%.80s: must be NAME or NAME=VALUE, several with commas",
			     w.labels);
		return;
	}
	if (!read_states(r, w.states) || !list_start(r, &l))
		return;
	viewer_of(m, r, &viewer);
	l.last = api_flag(r, "last");
	for (size_t i = 0; l.last && i < s->n_jobs; i++)
		matching += is_wanted(s->jobs[i], &w);
	skip = l.earlier = matching - l.limit;
	for (size_t i = 0; i < s->n_jobs; i++) {
		const struct job *j = s->jobs[i];
		if (!is_wanted(j, &w) || skip-- > 0)
			continue;
		if (!list_room(&l))
			break;
		mo_desc_init(&job_view_desc, &v);
		job_view(s, j, now, &v);
		visible_job(&viewer, j, &v);
		snprintf(key, sizeof(key), "j-%lld", (long long)j->id);
		list_add(&l, &job_view_desc, &v, key);
		mo_desc_done(&job_view_desc, &v);
	}
	list_send(r, &l);
}

void api_jobs_get(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!j)
		return;
	api_job_doc(arg, r, j, &b);
	api_send(r, 200, &b);
}

struct verb_body {
	bool now;
	int64_t from;
};
static const struct mo_field cancel_fields[] = {
	MO_D(verb_body, now, MO_BOOL, "end it without grace"),
};
static const struct mo_field restart_fields[] = {
	MO_D(verb_body, from, MO_INT, "iteration of the checkpoint; not given: the newest"),
};
const struct mo_desc cancel_body_desc = MO_DESC(verb_body, cancel_fields);
const struct mo_desc restart_body_desc = MO_DESC(verb_body, restart_fields);
static const struct mo_desc nothing_desc = { .name = "nothing", .size = sizeof(struct verb_body) };

/* The job, when the body of a verb on it is as it must be; NULL = the request is answered. */
static const struct job *verb(struct manager *m, struct http_request *r, const struct mo_desc *d,
			      struct verb_body *ret)
{
	const struct job *j = api_job(m, r);

	*ret = (struct verb_body){ .from = MO_NONE };
	if (!j || !api_body(r, d, ret))
		return NULL;
	if (ret->from != MO_NONE && ret->from < 0) {
		http_problem(r, 422, "from: must be an iteration, 0 or more");
		return NULL;
	}
	return j;
}

static void push(struct manager *m, struct input *in)
{
	in->answer = ANSWER_JOB;
	input_push(m, in);
}

void api_jobs_cancel(void *arg, struct http_request *r)
{
	struct verb_body body;
	const struct job *j = verb(arg, r, &cancel_body_desc, &body);

	if (!j)
		return;
	struct input *in = input_new(IN_CANCEL, r);
	in->core.cancel = mo_desc_new(&in_cancel_desc);
	*in->core.cancel = (struct in_cancel){ .job = j->id, .now = body.now };
	push(arg, in);
}
void api_jobs_pause(void *arg, struct http_request *r)
{
	struct verb_body body;
	const struct job *j = verb(arg, r, &nothing_desc, &body);

	if (!j)
		return;
	struct input *in = input_new(IN_PAUSE, r);
	in->core.pause = mo_desc_new(&in_pause_desc);
	in->core.pause->job = j->id;
	push(arg, in);
}
void api_jobs_resume(void *arg, struct http_request *r)
{
	struct verb_body body;
	const struct job *j = verb(arg, r, &nothing_desc, &body);

	if (!j)
		return;
	struct input *in = input_new(IN_RESUME, r);
	in->core.resume = mo_desc_new(&in_resume_desc);
	in->core.resume->job = j->id;
	push(arg, in);
}
void api_jobs_restart(void *arg, struct http_request *r)
{
	struct verb_body body;
	const struct job *j = verb(arg, r, &restart_body_desc, &body);

	if (!j)
		return;
	struct input *in = input_new(IN_RESTART, r);
	in->core.restart = mo_desc_new(&in_restart_desc);
	*in->core.restart = (struct in_restart){ .job = j->id, .from_iteration = body.from };
	push(arg, in);
}
