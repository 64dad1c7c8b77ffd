/* Every follower reads the ring of events at its own pace: it is fed while little of what it got
 * is unsent, so neither a slow client nor the replay of ten thousand events costs memory; who
 * falls behind misses what left the ring, and gets their number. A comment every 15 s keeps
 * proxies quiet and finds out who has gone; a follower that takes nothing for a minute is ended.
 * Any stream, of events or logs, ends within a second of its token's end.
 *
 * Who looks at a job gets its progress beside the events (event: progress): what it is now, not
 * what happened, so it has no id, is not resumed, and what a slow client does not take is left
 * out. Nothing is asked of the state while nobody looks. */
#include "daemon/streams.h"
#include <string.h>
#include <uthash.h>
#include "daemon/auth.h"
#include "daemon/core/update/ring.h"
#include "daemon/core/view/progress_view.h"
#include "daemon/visible.h"
#include "lib/loop/loop.h"
#include "lib/wire/encode.h"

#define FEED_BYTES (64 * 1024)
#define HEARTBEAT_US (15 * 1000000LL)
#define STUCK_US (60 * 1000000LL)
#define PROGRESS_US 1000000LL
#define ENCODED 64

struct stream {
	uint64_t id;  /* request */
	int64_t next; /* seq wanted next */
	int64_t gone; /* of those from there on, no longer held: reported */
	struct stream_filter filter;
	struct viewer viewer;
	int64_t fed_at;         /* boot us: everything sent so far was taken then */
	struct mo_buf progress; /* what was told of it last */
	UT_hash_handle hh;
};
struct streams {
	struct manager *manager;
	struct stream *all;
	struct mo_timer *heartbeat, *expiry, *progress;
	bool looked;  /* the last one runs: who comes meanwhile does not make it later for others */
	int64_t seen; /* newest event that was flushed */
	/* by seq modulo ENCODED: encoded once for all followers */
	struct {
		int64_t seq;
		struct mo_buf text;
	} encoded[ENCODED];
};

bool stream_wants(const struct stream_filter *f, const struct event *e)
{
	return (f->job == MO_NONE || e->job == f->job) &&
	       (!f->node[0] || mo_streq(e->node, f->node)) &&
	       (!f->type[0] || mo_streq(e->type, f->type));
}

int64_t stream_gone(const struct state *s, const struct stream_filter *f, int64_t after)
{
	const struct job *j = f->job == MO_NONE ? NULL : job_find(s, f->job);
	const struct node *n = f->node[0] ? node_find(s, f->node) : NULL;
	int64_t gone = ring_gone(s, after);

	if (f->job != MO_NONE)
		gone = MO_MIN(gone, j ? MO_MAX(j->events_gone, 0) : 0);
	if (f->node[0])
		gone = MO_MIN(gone, n ? MO_MAX(n->events_gone, 0) : 0);
	return gone;
}

static void put(const struct event *e, struct mo_buf *b)
{
	mo_buf_printf(b, "id: %lld\ndata: ", (long long)e->seq);
	wire_encode(&event_desc, e, b);
	mo_buf_str(b, "\n\n");
}

/* For a viewer who may not see all of it; rare. */
static int write_cut(struct http_request *r, const struct event *e)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	struct event *cut = visible_event_cut(e);

	put(cut, &b);
	mo_desc_free(&event_desc, cut);
	return http_stream_write(r, b.data, b.len);
}

static const struct mo_buf *encode(struct streams *s, const struct event *e)
{
	struct mo_buf *b = &s->encoded[e->seq % ENCODED].text;

	if (s->encoded[e->seq % ENCODED].seq == e->seq)
		return b;
	s->encoded[e->seq % ENCODED].seq = e->seq;
	mo_buf_reset(b);
	put(e, b);
	return b;
}

/* Says how many of what this follower wants left the ring since that was said last; it stands
 * where they would have. */
static void tell_gone(struct streams *s, struct stream *f, struct http_request *r, int64_t gone)
{
	_cleanup_(mo_freep) char *message =
		mo_printf("events from here to now that are no longer kept: %s%lld; the log of the "
			  "controller has them",
			  f->filter.type[0] ? "up to " : "", (long long)gone);
	const struct event e = { .seq = f->next - 1,
				 .time = manager_now(s->manager),
				 .type = event_registry[EVENT_EVENTS_GONE].type,
				 .job = f->filter.job,
				 .node = f->filter.node[0] ? f->filter.node : NULL,
				 .rank = MO_NONE,
				 .attempt = MO_NONE,
				 .message = message };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	put(&e, &b);
	http_stream_write(r, b.data, b.len);
}

static void feed(struct streams *s, struct stream *f)
{
	const struct state *state = manager_state(s->manager);
	struct http_request *r = http_find(s->manager->http, f->id);

	if (!r || state->n_events == 0 || state->events[state->n_events - 1].seq < f->next)
		return;
	const int64_t gone = stream_gone(state, &f->filter, f->next - 1);
	if (gone > f->gone)
		tell_gone(s, f, r, gone - f->gone);
	for (size_t i = ring_find(state, f->next);
	     i < state->n_events && http_stream_backlog(r) < FEED_BYTES; i++) {
		const struct event *e = &state->events[i];
		f->next = e->seq + 1;
		if (!stream_wants(&f->filter, e))
			continue;
		const struct mo_buf *text =
			visible_event(&f->viewer, state, e) ? encode(s, e) : NULL;
		if ((text ? http_stream_write(r, text->data, text->len) : write_cut(r, e)) < 0)
			return;
	}
	f->gone = stream_gone(state, &f->filter, f->next - 1);
}

/* True: it still looks at a job that there is. */
static bool feed_progress(struct streams *s, struct stream *f)
{
	const struct job *j = f->filter.progress == MO_NONE
				      ? NULL
				      : job_find(manager_state(s->manager), f->filter.progress);
	struct http_request *r = j ? http_find(s->manager->http, f->id) : NULL;
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	struct progress_view v;

	if (!r)
		return false;
	if (http_stream_backlog(r) > 0)
		return true;
	mo_desc_init(&progress_view_desc, &v);
	progress_view_of(j, &v);
	mo_buf_str(&text, "event: progress\ndata: ");
	wire_encode(&progress_view_desc, &v, &text);
	mo_buf_str(&text, "\n\n");
	mo_desc_done(&progress_view_desc, &v);
	if (f->progress.len == text.len && memcmp(f->progress.data, text.data, text.len) == 0)
		return true;
	mo_buf_reset(&f->progress);
	mo_buf_add(&f->progress, text.data, text.len);
	http_stream_write(r, text.data, text.len);
	return true;
}

static void look_again(struct streams *s)
{
	if (!s->looked)
		mo_timer_in(s->progress, PROGRESS_US);
	s->looked = true;
}

static void on_progress(void *arg)
{
	struct streams *s = arg;
	struct stream *f, *tmp;

	s->looked = false;
	HASH_ITER(hh, s->all, f, tmp)
		if (feed_progress(s, f))
			look_again(s);
}

static struct stream *stream_free(struct stream *f)
{
	mo_buf_done(&f->progress);
	free(f);
	return NULL;
}

static void on_drained(void *arg, uint64_t id)
{
	struct streams *s = ((struct manager *)arg)->streams;
	struct stream *f = NULL;

	HASH_FIND(hh, s->all, &id, sizeof(id), f);
	if (!f)
		return;
	f->fed_at = mo_clock_boot_us();
	feed(s, f);
}

static void on_gone(void *arg, uint64_t id)
{
	struct streams *s = ((struct manager *)arg)->streams;
	struct stream *f = NULL;

	HASH_FIND(hh, s->all, &id, sizeof(id), f);
	if (!f)
		return;
	HASH_DEL(s->all, f);
	stream_free(f);
}

static void end(struct streams *s, struct stream *f)
{
	struct http_request *r = http_find(s->manager->http, f->id);

	HASH_DEL(s->all, f);
	stream_free(f);
	if (r)
		http_stream_end(r);
}

static void on_heartbeat(void *arg)
{
	struct streams *s = arg;
	struct stream *f, *tmp;
	int64_t now = mo_clock_boot_us();

	HASH_ITER(hh, s->all, f, tmp) {
		struct http_request *r = http_find(s->manager->http, f->id);
		if (!r || (http_stream_backlog(r) > 0 && now - f->fed_at > STUCK_US))
			end(s, f);
		else if (http_stream_backlog(r) == 0)
			http_stream_write(r, ": beat\n\n", 8);
	}
	mo_timer_in(s->heartbeat, HEARTBEAT_US);
}

static void set_expiry(struct streams *s)
{
	int64_t next = auth_next_expiry(s->manager);

	mo_timer_at(s->expiry, next == INT64_MAX
				       ? INT64_MAX
				       : mo_clock_boot_us() +
						 MO_MAX(next - manager_now(s->manager), 0) + 1000);
}

void streams_check(struct manager *m)
{
	if (m->http)
		http_server_check_tokens(m->http);
	set_expiry(m->streams);
}

static void on_expiry(void *arg)
{
	struct streams *s = arg;

	auth_reload(s->manager);
	streams_check(s->manager);
}

void streams_new(struct manager *m)
{
	struct streams *s = mo_alloc(sizeof(*s));

	s->manager = m;
	m->streams = s;
	if (mo_timer_new(m->loop, on_heartbeat, s, &s->heartbeat) < 0 ||
	    mo_timer_new(m->loop, on_expiry, s, &s->expiry) < 0 ||
	    mo_timer_new(m->loop, on_progress, s, &s->progress) < 0)
		abort();
	mo_timer_in(s->heartbeat, HEARTBEAT_US);
}

struct streams *streams_free(struct streams *s)
{
	struct stream *f, *tmp;

	if (!s)
		return NULL;
	HASH_ITER(hh, s->all, f, tmp) {
		HASH_DEL(s->all, f);
		stream_free(f);
	}
	mo_timer_free(s->progress);
	mo_timer_free(s->heartbeat);
	mo_timer_free(s->expiry);
	for (size_t i = 0; i < ENCODED; i++)
		mo_buf_done(&s->encoded[i].text);
	free(s);
	return NULL;
}

void streams_follow(struct manager *m, struct http_request *r, int64_t after,
		    const struct stream_filter *filter)
{
	struct streams *s = m->streams;
	struct stream *f = mo_alloc(sizeof(*f));

	f->id = http_id(r);
	f->next = after + 1;
	f->filter = *filter;
	viewer_of(m, r, &f->viewer);
	f->fed_at = mo_clock_boot_us();
	HASH_ADD(hh, s->all, id, sizeof(f->id), f);
	http_on_gone(r, on_gone, m);
	http_stream_start(r, "text/event-stream");
	http_stream_on_drained(r, on_drained, m);
	http_stream_write(r, ": moectl events\n\n", 17);
	feed(s, f);
	if (feed_progress(s, f))
		look_again(s);
}

void streams_flush(struct manager *m)
{
	struct streams *s = m->streams;
	struct stream *f, *tmp;
	int64_t newest = manager_state(m)->next_event_seq - 1;

	if (newest == s->seen)
		return;
	s->seen = newest;
	HASH_ITER(hh, s->all, f, tmp)
		feed(s, f);
}
