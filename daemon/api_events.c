/* GET /v1/events: the ring of events as a list, or followed as Server-Sent Events (Last-Event-ID resumes without a gap while the ring holds what was missed). */
#include <string.h>
#include "daemon/api.h"
#include "daemon/streams.h"
#include "lib/base/parse.h"
#include "lib/model/limits.h"

/* Lists what passes the filter and type after `after`; with last=N the newest N. */
static void send_list(struct manager *m, struct http_request *r, const struct stream_filter *filter, int64_t after, int64_t last)
{
	const struct state *s = manager_state(m);
	const char *type = http_query(r, "type");
	_cleanup_(list_done) struct list l = {0};
	int64_t matching = 0, skip;

	if (!list_start(r, &l))
		return;
	for (size_t i = 0; last > 0 && i < s->n_events; i++)
		matching += stream_wants(filter, &s->events[i]) && (!type || strcmp(type, s->events[i].type) == 0);
	skip = last > 0 ? MO_MAX(matching - last, 0) : 0;
	for (size_t i = 0; i < s->n_events; i++) {
		const struct event *e = &s->events[i];
		if (e->seq <= after || !stream_wants(filter, e) || (type && strcmp(type, e->type) != 0) || skip-- > 0)
			continue;
		if (!list_room(&l))
			break;
		list_add_numbered(&l, &event_desc, e, e->seq);
	}
	list_send(r, &l);
}

static bool read_after(struct manager *m, struct http_request *r, bool follow, int64_t last, int64_t *ret)
{
	const struct state *s = manager_state(m);
	const char *header = http_header(r, "Last-Event-ID");
	int64_t newest = s->next_event_seq - 1;

	/* A follower without a place starts with what comes next, or with the last N. */
	if (!api_int(r, "after", 0, INT64_MAX - 1, follow && last == 0 ? newest : 0, ret))
		return false;
	if (follow && last > 0 && !http_query(r, "after") && s->n_events > 0)
		*ret = s->events[s->n_events > (size_t)last ? s->n_events - (size_t)last : 0].seq - 1;
	if (follow && header && mo_parse_i64(header, 0, INT64_MAX - 1, ret) < 0) {
		http_problem(r, 400, "Last-Event-ID %.40s: must be the id of an event (its seq)", header);
		return false;
	}
	return true;
}

static void serve(struct manager *m, struct http_request *r, struct stream_filter *filter)
{
	bool follow = api_flag(r, "follow");
	int64_t last = 0, after = 0;

	if (!api_int(r, "last", 0, MO_EVENTS_MAX, 0, &last) || !read_after(m, r, follow, last, &after))
		return;
	if (follow)
		streams_follow(m, r, after, filter);
	else
		send_list(m, r, filter, after, last);
}

void api_events(void *arg, struct http_request *r)
{
	struct stream_filter filter = { .job = MO_NONE };
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
	serve(arg, r, &(struct stream_filter){ .job = j->id });
}
