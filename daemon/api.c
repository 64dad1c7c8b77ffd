/* See api.h. */
#include "daemon/api.h"
#include "daemon/core/aside.h"
#include "daemon/core/state/lemon.h"
#include "daemon/visible.h"
#include <errno.h>
#include <string.h>
#include "lib/base/parse.h"
#include "daemon/core/view/view_node.h"
#include "lib/model/limits.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

void api_send(struct http_request *r, int status, const struct mo_buf *body)
{
	http_reply(r, status, "application/json", body->data, body->len, NULL);
}

void api_send_doc(struct http_request *r, int status, const struct mo_desc *d, const void *obj)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	wire_encode(d, obj, &b);
	api_send(r, status, &b);
}

char *api_text(const struct mo_desc *d, const void *obj)
{
	struct mo_buf b = { 0 };

	wire_encode(d, obj, &b);
	return mo_buf_take(&b);
}

int api_job_id(const char *text, int64_t *ret)
{
	if (!mo_starts_with(text, "j-"))
		return -EINVAL;
	return mo_parse_i64(text + 2, 1, INT64_MAX, ret);
}

const struct job *api_job(struct manager *m, struct http_request *r)
{
	const char *text = http_param(r, "id");
	int64_t id = 0;

	const struct job *j = api_job_id(text, &id) < 0 ? NULL : job_find(manager_state(m), id);
	if (!j && core_is_out(m->core, id))
		http_problem(r, 404,
			     "job %.80s: it is in quarantine: %s/quarantine has it, and says how "
			     "to put it back",
			     text, m->options->state_dir);
	else if (!j && id > 0 && id < manager_state(m)->next_job)
		http_problem(r, 404,
			     "job %.80s: there is no such job (any more): one that ended is kept "
			     "for as long as moed.yaml says (history), of more than %d the newest",
			     text, MO_JOBS_RETAINED_MAX);
	else if (!j)
		http_problem(r, 404, "job %.80s: there is no such job; ids look like j-7", text);
	return j;
}

static const char *nearest_node(const struct state *s, const char *name)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(s->n_nodes + 1, sizeof(*names));

	for (size_t i = 0; i < s->n_nodes; i++)
		names[i] = s->nodes[i]->name;
	return mo_near_miss(name, names, s->n_nodes);
}

const struct node *api_node(struct manager *m, struct http_request *r)
{
	const char *name = http_param(r, "name");

	const struct node *n = mo_name_valid(name) ? node_find(manager_state(m), name) : NULL;
	const char *near = n ? NULL : nearest_node(manager_state(m), name);
	if (near)
		http_problem(r, 404,
			     "node %.80s: there is no such node: did you mean %s? `moectl nodes` "
			     "lists them",
			     name, near);
	else if (!n)
		http_problem(r, 404, "node %.80s: there is no such node; `moectl nodes` lists them",
			     name);
	return n;
}

bool api_int(struct http_request *r, const char *name, int64_t min, int64_t max, int64_t fallback,
	     int64_t *ret)
{
	const char *text = http_query(r, name);

	*ret = fallback;
	if (!text)
		return true;
	if (mo_parse_i64(text, min, max, ret) == 0)
		return true;
	http_problem(r, 400, "%s=%.40s: must be a whole number from %lld to %lld", name, text,
		     (long long)min, (long long)max);
	return false;
}

bool api_flag(const struct http_request *r, const char *name)
{
	const char *text = http_query(r, name);
	bool flag = false;

	return text && mo_parse_bool(text, &flag) == 0 && flag;
}

int api_read(const char *text, size_t n, const struct mo_desc *d, void *obj, struct mo_error *err)
{
	struct json_object *json = NULL;

	if (n == 0)
		return 0;
	int e = wire_affordable(text, n, err);
	if (e >= 0)
		e = wire_parse(text, n, &json, err);
	if (e < 0)
		return 400;
	e = wire_from_json(d, json, true, obj, err);
	json_object_put(json);
	return e < 0 ? 422 : 0;
}

bool api_body(struct http_request *r, const struct mo_desc *d, void *obj)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	size_t n;
	const char *text = http_body(r, &n);
	int status = api_read(text, n, d, obj, &err);

	if (status)
		http_problem(r, status, "body: %s", mo_error_text(&err, -EINVAL));
	return !status;
}

void api_job_doc(struct manager *m, const struct http_request *r, const struct job *j,
		 struct mo_buf *b)
{
	struct viewer viewer;
	struct job_view v;

	mo_desc_init(&job_view_desc, &v);
	job_view(manager_state(m), j, manager_now(m), &v);
	viewer_of(m, r, &viewer);
	visible_job(&viewer, j, &v);
	wire_encode(&job_view_desc, &v, b);
	mo_desc_done(&job_view_desc, &v);
}

void api_node_doc(struct manager *m, const struct node *n, bool with_info, struct mo_buf *b)
{
	const struct gpu_sensors *sensors;
	const struct nic_sensors *nics;
	size_t n_sensors = 0, n_nics = 0;
	struct node_view v;

	mo_desc_init(&node_view_desc, &v);
	node_view(manager_state(m), n, manager_now(m), with_info, &v);
	sensors = with_info ? core_sensors(m->core, n->name, manager_now(m), &n_sensors) : NULL;
	for (size_t i = 0; i < n_sensors; i++)
		*MO_ADD(&v, sensors, &gpu_sensors_desc) = sensors[i];
	nics = with_info ? core_nics(m->core, n->name, manager_now(m), &n_nics) : NULL;
	for (size_t i = 0; i < n_nics; i++)
		mo_desc_copy(&nic_sensors_desc, MO_ADD(&v, nic_sensors, &nic_sensors_desc),
			     &nics[i]);
	v.lemon_score = lemon_of(manager_state(m), n, manager_now(m), &v.failures, &v.n_failures);
	if (!with_info)
		mo_vec_clear(&node_failure_desc, (void **)&v.failures, &v.n_failures);
	wire_encode(&node_view_desc, &v, b);
	mo_desc_done(&node_view_desc, &v);
}

bool list_start(struct http_request *r, struct list *l)
{
	*l = (struct list){ 0 };
	if (!api_int(r, "limit", 1, API_LIMIT_MAX, API_LIMIT_MAX, &l->limit))
		return false;
	mo_buf_str(&l->b, "{\"items\":[");
	return true;
}

bool list_room(struct list *l)
{
	l->more = l->n == l->limit;
	return !l->more;
}

static void item(struct list *l, const struct mo_desc *d, const void *obj)
{
	if (l->n++)
		mo_buf_str(&l->b, ",");
	wire_encode(d, obj, &l->b);
	mo_buf_reset(&l->next);
}

void list_add(struct list *l, const struct mo_desc *d, const void *obj, const char *key)
{
	item(l, d, obj);
	wire_string(key, &l->next);
}

void list_add_numbered(struct list *l, const struct mo_desc *d, const void *obj, int64_t key)
{
	item(l, d, obj);
	mo_buf_printf(&l->next, "%lld", (long long)key);
}

/* The members of an object, without its braces. */
static void members(const struct mo_desc *d, const void *obj, struct mo_buf *b)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };

	wire_encode(d, obj, &text);
	mo_buf_add(b, text.data + 1, text.len - 2);
}

bool list_start_with(struct http_request *r, struct list *l, const struct mo_desc *beside,
		     const void *obj)
{
	if (!list_start(r, l))
		return false;
	mo_buf_reset(&l->b);
	mo_buf_str(&l->b, "{");
	members(beside, obj, &l->b);
	mo_buf_str(&l->b, ",\"items\":[");
	return true;
}

static void list_close(struct list *l)
{
	mo_buf_printf(&l->b, "],\"next\":%s", l->more ? l->next.data : "null");
}

static void list_end(struct http_request *r, struct list *l)
{
	if (l->last)
		mo_buf_printf(&l->b, ",\"earlier\":%lld", (long long)MO_MAX(l->earlier, 0));
	mo_buf_str(&l->b, "}");
	api_send(r, 200, &l->b);
}

void list_send_with(struct http_request *r, struct list *l, const struct mo_desc *beside,
		    const void *obj)
{
	list_close(l);
	mo_buf_str(&l->b, ",");
	members(beside, obj, &l->b);
	list_end(r, l);
}

void list_send(struct http_request *r, struct list *l)
{
	list_close(l);
	list_end(r, l);
}
