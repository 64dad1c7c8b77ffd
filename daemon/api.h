/* What the resources of the REST interface share: documents, lists, arguments, problems. One
 * resource per api_*.c; the table of all routes, with the role that each needs, is api_routes.h,
 * from which /openapi.json and docs/rest.md are made.
 *
 * A handler gets the manager as arg. One that only reads answers at once, from the views of the
 * core (core/view); what takes long (plans, large recipes, logs of nodes) is answered when a child
 * or an agent is done. One that changes something queues an input (input.h): the answer is an
 * effect of the turn, after its records are on the disk.
 *
 * What never happens: a handler changes the state or waits; a request gets here without its token's
 * role having been checked (lib/http); a user is shown another user's words (visible.h). */
#pragma once
#include "daemon/core/view/view.h"
#include "daemon/manager.h"

/* application/json */
void api_send(struct http_request *r, int status, const struct mo_buf *body);
void api_send_doc(struct http_request *r, int status, const struct mo_desc *d, const void *obj);
char *api_text(const struct mo_desc *d, const void *obj); /* caller frees */
/* The job of {id}; NULL after 404 was sent. */
const struct job *api_job(struct manager *m, struct http_request *r);
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
