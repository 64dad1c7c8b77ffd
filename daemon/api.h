/* What the resources of the REST interface share. One resource per api_*.c; the table of all
 * routes is api_routes.c. Handlers get the manager as arg. */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/manager.h"

/* query: names of the query string, separated by blanks; a capital in front: a header. NULL
 * none. */
struct api_route {
	struct http_route route;
	const char *summary;
	const char *tag;
	const char *query;
	/* what is taken (JSON); NULL: a recipe, or nothing */
	const struct mo_desc *body;
	/* what is answered, of a list its items; NULL: no described struct */
	const struct mo_desc *answer;
	const struct mo_desc *beside; /* of a list: what it has beside items and next */
	/* member of query with which it is another document, which no struct describes */
	const char *other;
	const char *media; /* NULL = application/json */
	bool list;
};
extern const struct api_route api_routes[];
extern const size_t n_api_routes;

/* application/json */
void api_send(struct http_request *r, int status, const struct mo_buf *body);
void api_send_doc(struct http_request *r, int status, const struct mo_desc *d, const void *obj);
char *api_text(const struct mo_desc *d, const void *obj); /* caller frees */
/* The job of {id}; NULL after 404 was sent. */
const struct job *api_job(struct manager *m, struct http_request *r);
/* What is said (410) of a job that gave its recipe and configuration up; caller frees. */
char *api_let_go(const struct job *j);
/* Where the rank ran in that attempt: steps are kept until the agent forgot them, else it is
 * most likely where it runs now. NULL = nowhere. */
const char *api_node_of(const struct job *j, int64_t attempt, int64_t rank);
const struct node *api_node(struct manager *m, struct http_request *r);
/* Optional integer of the query string. false after 400 was sent. */
bool api_int(struct http_request *r, const char *name, int64_t min, int64_t max, int64_t fallback,
	     int64_t *ret);
/* ?name=1 or true */
bool api_flag(const struct http_request *r, const char *name);
/* JSON text (empty = {}) into an initialised object: 0, or with err the status 400 (no JSON) or
 * 422 (wrong content). */
int api_read(const char *text, size_t n, const struct mo_desc *d, void *obj, struct mo_error *err);
/* The same of a request's body; false after 400 or 422 was sent. */
bool api_body(struct http_request *r, const struct mo_desc *d, void *obj);
void api_job_doc(struct manager *m, const struct http_request *r, const struct job *j,
		 struct mo_buf *b);
void api_node_doc(struct manager *m, const struct node *n, bool with_info, struct mo_buf *b);
/* "j-7" -> 7; -EINVAL. */
int api_job_id(const char *text, int64_t *ret);

/* A list document {items[],next}: add what comes after `after`, stop when list_add says false
 * (there is more than limit). */
#define API_LIMIT_MAX 1000
/* last=1: so many stand before the first */
struct list {
	struct mo_buf b;
	int64_t limit, n, earlier;
	bool more, last;
	struct mo_buf next;
};
/* reads limit; false after 400 */
bool list_start(struct http_request *r, struct list *l);
/* false: full; `next` will be the last key */
bool list_room(struct list *l);
/* key: what `after` takes to go on */
void list_add(struct list *l, const struct mo_desc *d, const void *obj, const char *key);
void list_add_numbered(struct list *l, const struct mo_desc *d, const void *obj, int64_t key);
void list_send(struct http_request *r, struct list *l);
/* with further members: behind the others, or (instead of list_start) in front of them */
void list_send_with(struct http_request *r, struct list *l, const struct mo_desc *beside,
		    const void *obj);
bool list_start_with(struct http_request *r, struct list *l, const struct mo_desc *beside,
		     const void *obj);
static inline void list_done(struct list *l)
{
	mo_buf_done(&l->b);
	mo_buf_done(&l->next);
}

/* Bodies of requests, and answers that belong to no view of the core. */
extern const struct mo_desc cancel_body_desc, restart_body_desc, drain_body_desc, fence_body_desc,
	ack_body_desc, resolve_body_desc, token_body_desc, use_body_desc;
extern const struct mo_desc submitted_view_desc, samples_view_desc, events_view_desc,
	explained_view_desc, record_line_desc, records_view_desc, token_view_desc,
	revoked_view_desc, resolved_view_desc, session_view_desc, signin_view_desc, valid_view_desc,
	probe_view_desc;

/* Handlers, by file. */
#define HANDLER(name) void name(void *arg, struct http_request *r)
HANDLER(api_jobs_submit);
HANDLER(api_jobs_list);
HANDLER(api_jobs_get);
HANDLER(api_jobs_cancel);
HANDLER(api_jobs_pause);
HANDLER(api_jobs_resume);
HANDLER(api_jobs_restart);
HANDLER(api_job_ranks);
HANDLER(api_job_metrics);
HANDLER(api_job_events);
HANDLER(api_job_checkpoints);
HANDLER(api_job_records);
HANDLER(api_job_report);
HANDLER(api_job_why);
HANDLER(api_job_env);
HANDLER(api_job_bind);
HANDLER(api_job_config);
HANDLER(api_job_logs);
HANDLER(api_nodes_list);
HANDLER(api_nodes_get);
HANDLER(api_nodes_topology);
HANDLER(api_nodes_why);
HANDLER(api_stack_drift);
HANDLER(api_nodes_drain);
HANDLER(api_nodes_undrain);
HANDLER(api_nodes_ack);
HANDLER(api_nodes_fence);
HANDLER(api_backup);
HANDLER(api_steps_resolve);
HANDLER(api_events);
HANDLER(api_cluster);
HANDLER(api_healthz);
HANDLER(api_readyz);
HANDLER(api_metrics);
HANDLER(api_openapi);
HANDLER(api_tokens_create);
HANDLER(api_tokens_list);
HANDLER(api_tokens_revoke);
HANDLER(api_session_create);
HANDLER(api_session_delete);
HANDLER(api_signin_create);
HANDLER(api_signin_use);
HANDLER(api_plan);
HANDLER(api_anchors);
HANDLER(api_validate);
HANDLER(api_web);
/* 200 with a cookie for this token. */
void api_session_reply(struct manager *m, struct http_request *r, const char *token_id,
		       const char *user, enum role role);
struct signins;
void signins_new(struct manager *m);
struct signins *signins_free(struct signins *s);
void plan_refuse(struct http_request *r, int e); /* helper_plan() failed with e */
