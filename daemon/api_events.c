/* GET /v1/events: the ring of events as a list, or followed as Server-Sent Events (Last-Event-ID
 * goes on with what was missed, and says how much of it is no longer held). */
#include "daemon/api_events.h"

#include <string.h>
#include "daemon/api.h"
#include "daemon/quota.h"
#include "daemon/streams.h"
#include "daemon/visible.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

struct events_view {
	int64_t gone;
};
static const struct mo_field events_view_fields[] = {
	MO_D(events_view, gone, MO_INT, "events behind `after` that are not kept any more"),
};
const struct mo_desc events_view_desc = MO_DESC(events_view, events_view_fields);

/* Where the newest `last` events that pass the filter begin: seq of the one before them. */
static int64_t before_newest(const struct state *s, const struct stream_filter *filter,
			     int64_t last)
{
	size_t i = s->n_events;

	while (i > 0 && last > 0)
		last -= stream_wants(filter, &s->events[--i]);
	return i < s->n_events ? s->events[i].seq - 1 : s->next_event_seq - 1;
}

/* Lists what passes the filter after `after`. */
static void send_list(struct manager *m, struct http_request *r, const struct stream_filter *filter,
		      int64_t after)
{
	const struct state *s = manager_state(m);
	_cleanup_(list_done) struct list l = { 0 };
	struct viewer viewer;

	if (!list_start(r, &l))
		return;
	viewer_of(m, r, &viewer);
	l.last = http_query(r, "last") != NULL;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct event *e = &s->events[i];
		if (!stream_wants(filter, e))
			continue;
		if (e->seq <= after) {
			l.earlier++;
			continue;
		}
		if (!list_room(&l))
			break;
		struct event *cut = visible_event(&viewer, s, e) ? NULL : visible_event_cut(e);
		list_add_numbered(&l, &event_desc, cut ? cut : e, e->seq);
		mo_desc_free(&event_desc, cut);
	}
	const struct events_view beside = { .gone = stream_gone(s, filter, l.last ? 0 : after) };

	list_send_with(r, &l, &events_view_desc, &beside);
}

/* The seq after which the answer begins. A follower without a place starts with what comes next;
 * last=N: with the newest N that pass the filter. */
static bool read_after(struct manager *m, struct http_request *r,
		       const struct stream_filter *filter, bool follow, int64_t *ret)
{
	const struct state *s = manager_state(m);
	const char *header = http_header(r, "Last-Event-ID");
	int64_t last;

	if (!api_int(r, "last", 1, MO_EVENTS_MAX, 0, &last) ||
	    !api_int(r, "after", 0, INT64_MAX - 1, follow && last == 0 ? s->next_event_seq - 1 : 0,
		     ret))
		return false;
	if (last > 0 && !(follow && http_query(r, "after")))
		*ret = MO_MAX(*ret, before_newest(s, filter, last));
	if (follow && header && mo_parse_i64(header, 0, INT64_MAX - 1, ret) < 0) {
		http_problem(r, 400, "Last-Event-ID %.40s: must be the id of an event (its seq)",
			     header);
		return false;
	}
	return true;
}

static void serve(struct manager *m, struct http_request *r, struct stream_filter *filter)
{
	const char *type = http_query(r, "type"), *progress = http_query(r, "progress");
	bool follow = api_flag(r, "follow");
	int64_t after;

	if (type && strlen(type) >= sizeof(filter->type)) {
		http_problem(r, 400, "type=%.40s...: no event has such a type", type);
		return;
	}
	if (type)
		memcpy(filter->type, type, strlen(type) + 1);
	if (progress && (!follow || api_job_id(progress, &filter->progress) < 0)) {
		http_problem(r, 400, "progress=%.40s: %s", progress,
			     follow ? "ids look like j-7" : "needs follow=1");
		return;
	}
	if (!read_after(m, r, filter, follow, &after))
		return;
	if (follow && !quota_hold(m, r))
		return;
	if (follow)
		streams_follow(m, r, after, filter);
	else
		send_list(m, r, filter, after);
}

void api_events(void *arg, struct http_request *r)
{
	struct stream_filter filter = { .job = MO_NONE, .progress = MO_NONE };
	const char *node = http_query(r, "node"), *job = http_query(r, "job");

	if (node && !mo_name_valid(node)) {
		http_problem(r, 400, "node=%.80s: not a valid node name", node);
		return;
	}
	if (node)
		memcpy(filter.node, node, strlen(node) + 1);
	if (job && api_job_id(job, &filter.job) < 0) {
		http_problem(r, 400, "job=%.40s: ids look like j-7", job);
		return;
	}
	serve(arg, r, &filter);
}

void api_job_events(void *arg, struct http_request *r)
{
	const struct job *j = api_job(arg, r);

	if (!j)
		return;
	serve(arg, r, &(struct stream_filter){ .job = j->id, .progress = MO_NONE });
}
