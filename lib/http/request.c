/* A request from its head to its handler: the checks named in server.h, in that order, then the
 * body, then the handler exactly once. The body of a request that is refused by its head is never
 * kept. A short one is read and dropped, so that the client surely sees the answer (a close with
 * unread bytes is a reset); a longer one is not read: MHD answers at once and closes the
 * connection. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>
#include "lib/base/assert.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/http/door.h"
#include "lib/http/ended.h"
#include "lib/http/frames.h"
#include "lib/http/guard.h"
#include "lib/http/held.h"
#include "lib/http/pump.h"
#include "lib/http/reply.h"
#include "lib/http/request.h"
#include "lib/http/request_check.h"

#define QUERY_NAMES_MAX 16
#define DROP_MAX (1024 * 1024) /* bytes of a refused body that are read and dropped */

const char *const role_names[_ROLE_N] = { "none", "viewer", "user", "operator", "admin", "agent" };

static struct http_request *begin(struct http_server *s, struct MHD_Connection *mhd,
				  const char *url, const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_request *r = mo_alloc(sizeof(*r));

	r->server = s;
	r->mhd = mhd;
	r->connection = info->socket_context;
	r->id = ++s->next_id;
	r->method = strcmp(method, "HEAD") == 0 ? "GET" : method;
	r->path = mo_strdup(url);
	s->stats.requests++;
	/* A stranger's time began with the connection, so that one head after another does not make
	 * it longer. */
	if (!r->connection->stranger)
		r->connection->deadline_us = mo_clock_mono_ns() / 1000 + s->idle_us;
	return r;
}

/* First call: the head is there. Refusals of requests with a body are answered now, so that the
 * body is never read. */
static enum MHD_Result on_head(struct http_request *r, const char *version)
{
	const char *length_text = request_header(r, "Content-Length"),
		   *coding = request_header(r, "Transfer-Encoding");
	int64_t length = 0;

	if (length_text && mo_parse_i64(length_text, 0, INT64_MAX, &length) < 0)
		length = INT64_MAX;
	bool has_body = length > 0 || coding;
	request_check_head(r, version, has_body, (uint64_t)length);
	/* Where the next request begins is not known either, after a head that means two things. */
	if (r->answered && (coding || length > DROP_MAX || r->status == 400 || r->status == 429)) {
		MHD_add_response_header(r->response, "Connection", "close");
		return reply_queue(r);
	}
	return MHD_YES;
}

static enum MHD_Result on_body(struct http_request *r, const char *data, size_t *n)
{
	r->received += *n;
	if (!r->answered && r->received > r->route->max_body) {
		reply_cut(r, 413, "the body is larger than the %zu bytes allowed here",
			  r->route->max_body);
		mo_buf_done(&r->body);
	}
	if (r->cut && r->received > r->route->max_body + DROP_MAX)
		return MHD_NO;
	if (!r->answered)
		mo_buf_add(&r->body, data, *n);
	*n = 0;
	return MHD_YES;
}

struct query_names {
	struct http_request *r;
	const char *names[QUERY_NAMES_MAX];
	size_t n;
};

/* What to do instead: the name that was meant, or those that there are. */
static void tell_names(const struct query_names *q, const char *key, struct mo_buf *b)
{
	const char *near = mo_near_miss(key, q->names, q->n);

	if (near)
		mo_buf_printf(b, "; did you mean %s?", near);
	else if (!q->n)
		mo_buf_str(b, ", nor any other");
	else
		mo_buf_str(b, "; it takes ");
	for (size_t i = 0; !near && i < q->n; i++)
		mo_buf_printf(b, "%s%s", i ? ", " : "", q->names[i]);
}

static enum MHD_Result on_query_name(void *cls, enum MHD_ValueKind kind, const char *key,
				     const char *value)
{
	_cleanup_(mo_buf_done) struct mo_buf instead = { 0 };
	struct query_names *q = cls;

	for (size_t i = 0; i < q->n; i++)
		if (strcmp(q->names[i], key) == 0)
			return MHD_YES;
	tell_names(q, key, &instead);
	http_problem(q->r, 400, "?%.40s: %s %s takes no such value in its query string%s", key,
		     q->r->method, q->r->route->path, instead.data);
	return MHD_NO;
}

/* A misspelt option must not change something, nor answer another question than was asked. false
 * after 400. */
static bool query_known(struct http_request *r)
{
	_cleanup_(mo_freep) char *names = mo_strdup(r->route->query);
	struct query_names q = { .r = r };

	for (char *rest = names, *word; rest && (word = strsep(&rest, " "));)
		if (*word < 'A' || *word > 'Z') {
			mo_assert(q.n < QUERY_NAMES_MAX);
			q.names[q.n++] = word;
		}
	MHD_get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, on_query_name, &q);
	return !r->answered;
}

static void not_resumed(struct http_request *r)
{
	r->server->n_resumed -= r->resumed;
	r->resumed = false;
	mo_assert(r->server->n_resumed >= 0);
}

/* Many requests that are complete at the same moment are not answered in one callback when that
 * would take long, so that the rest of the loop goes on between them. What its head was refused for
 * is said at once. */
static bool must_wait(struct http_request *r)
{
	struct http_server *s = r->server;

	not_resumed(r);
	if (s->quitting || (r->answered && !r->cut) || (r->route && r->route->prompt) ||
	    !(((s->waiting || s->n_resumed) && !r->waited) || pump_spent(s)))
		return false;
	pump_wait(r);
	return true;
}

static enum MHD_Result on_complete(struct http_request *r)
{
	struct http_server *s = r->server;

	if (!r->started) {
		r->connection->deadline_us = 0;
		door_enter(r);
		if (must_wait(r))
			return MHD_YES;
		r->started = true;
		if (r->cut || door_left_behind(r))
			return MHD_NO;
		if (r->answered)
			return reply_queue(r);
		if (s->quitting)
			http_problem(r, 503, "the controller is stopping: try again in a moment");
		else if (ended_token(r))
			reply_refuse(r, "the token of this request has ended");
		else if (query_known(r) && (!s->config.admit || s->config.admit(s->config.arg, r)))
			r->route->handler(s->config.arg, r);
	}
	if (r->road)
		return road_again(r);
	if (r->answered)
		return reply_queue(r);
	r->suspended = true;
	held_add(r);
	MHD_suspend_connection(r->mhd);
	return MHD_YES;
}

enum MHD_Result request_access(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *data, size_t *n,
			       void **con_cls)
{
	struct http_request *r = *con_cls;

	if (!r) {
		r = begin(cls, mhd, url, method);
		*con_cls = r;
		return on_head(r, version);
	}
	if (*n > 0)
		return on_body(r, data, n);
	return r->queued ? MHD_YES : on_complete(r);
}

void request_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
		       enum MHD_RequestTerminationCode code)
{
	struct http_server *s = cls;
	struct http_request *r = *con_cls;

	if (!r)
		return;
	*con_cls = NULL;
	if (r->road)
		road_gone(r);
	held_remove(r);
	door_leave(r);
	if (r->waits)
		DL_DELETE(s->waiting, r);
	not_resumed(r);
	s->stats.streams -= r->stream;
	if (r->gone && (r->stream ? !r->stream_ended : !r->answered))
		r->gone(r->gone_arg, r->id);
	r->connection->deadline_us = mo_clock_mono_ns() / 1000 + guard_patience(r->connection);
	if (r->response)
		MHD_destroy_response(r->response);
	mo_buf_done(&r->body);
	mo_buf_done(&r->backlog);
	free(r->path);
	free(r->segments_text);
	free(r);
}

const char *http_method(const struct http_request *r)
{
	return r->method;
}
const char *http_path(const struct http_request *r)
{
	return r->path;
}
const char *http_query(const struct http_request *r, const char *name)
{
	const char *value = NULL;
	bool there = MHD_lookup_connection_value_n(r->mhd, MHD_GET_ARGUMENT_KIND, name,
						   strlen(name), &value, NULL) == MHD_YES;

	return there && !value ? "" : value; /* ?name without a value is there, and empty */
}

const char *http_header(const struct http_request *r, const char *name)
{
	return request_header(r, name);
}
const struct http_caller *http_caller(const struct http_request *r)
{
	return &r->caller;
}
const char *http_peer_address(const struct http_request *r)
{
	return r->connection->address;
}
uint64_t http_id(const struct http_request *r)
{
	return r->id;
}

const char *http_body(const struct http_request *r, size_t *ret_n)
{
	*ret_n = r->body.len;
	return r->body.data ? r->body.data : "";
}
