/* Nodes: list, one node, why, and the verbs drain, undrain, fence. */
#include "daemon/api_nodes.h"

#include <string.h>
#include "daemon/api.h"
#include "daemon/core/view/stack_drift.h"
#include "daemon/core/state/lemon.h"
#include "daemon/core/view/view_node.h"
#include "daemon/core/view/why_node.h"
#include "daemon/core/view/why_view.h"
#include "daemon/input.h"
#include "lib/base/parse.h"

void api_nodes_list(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct state *s = manager_state(m);
	const char *after = http_query(r, "after");
	_cleanup_(list_done) struct list l = { 0 };
	int64_t now = manager_now(m);
	struct node_view v;

	if (!list_start(r, &l))
		return;
	_cleanup_(mo_freep) double *lemons = mo_alloc_array(s->n_nodes + 1, sizeof(*lemons));
	lemon_scores(s, now, lemons);
	for (size_t i = 0; i < s->n_nodes; i++) {
		if (after && strcmp(s->nodes[i]->name, after) <= 0)
			continue;
		if (!list_room(&l))
			break;
		mo_desc_init(&node_view_desc, &v);
		node_view(s, s->nodes[i], now, false, &v);
		v.lemon_score = lemons[i];
		list_add(&l, &node_view_desc, &v, s->nodes[i]->name);
		mo_desc_done(&node_view_desc, &v);
	}
	list_send(r, &l);
}

void api_nodes_get(void *arg, struct http_request *r)
{
	const struct node *n = api_node(arg, r);
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!n)
		return;
	api_node_doc(arg, n, true, &b);
	api_send(r, 200, &b);
}

void api_nodes_why(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct node *n = api_node(m, r);
	struct why_view v;

	if (!n)
		return;
	mo_desc_init(&why_view_desc, &v);
	node_why(manager_state(m), n, manager_now(m), &v);
	api_send_doc(r, 200, &why_view_desc, &v);
	mo_desc_done(&why_view_desc, &v);
}

void api_stack_drift(void *arg, struct http_request *r)
{
	struct drift_view v;

	mo_desc_init(&drift_view_desc, &v);
	stack_drift_view(manager_state(arg), &v);
	api_send_doc(r, 200, &drift_view_desc, &v);
	mo_desc_done(&drift_view_desc, &v);
}

struct verb_body {
	char *reason, *when, *boot_id, *check;
	bool confirmed, learned, force;
};
static const struct mo_field drain_fields[] = {
	MO_D(verb_body, reason, MO_STR, "why; others will read it", .max = 500),
	MO_D(verb_body, when, MO_STR, "idle (not given: this), checkpoint or now: when jobs leave"),
};
static const struct mo_field undrain_fields[] = {
	MO_D(verb_body, force, MO_BOOL, "true: whatever its GPUs compute"),
};
static const struct mo_field fence_fields[] = {
	MO_D(verb_body, confirmed, MO_BOOL, "true: the node is powered off"),
	MO_D(verb_body, boot_id, MO_STR, "boot of the node that this is said of", .max = 100),
};
static const struct mo_field ack_fields[] = {
	MO_D(verb_body, check, MO_STR, "id of the check whose findings are known", .max = 100),
	MO_D(verb_body, learned, MO_BOOL, "instead: the node is new no more"),
};
const struct mo_desc ack_body_desc = MO_DESC(verb_body, ack_fields);
const struct mo_desc drain_body_desc = MO_DESC(verb_body, drain_fields);
const struct mo_desc undrain_body_desc = MO_DESC(verb_body, undrain_fields);
const struct mo_desc fence_body_desc = MO_DESC(verb_body, fence_fields);

static bool drain_body_ok(struct http_request *r, struct verb_body *b)
{
	if (!b->reason || !*b->reason) {
		http_problem(r, 422, "reason: is missing: say why, others will read it");
		return false;
	}
	if (!b->when)
		b->when = mo_strdup("idle");
	if (strcmp(b->when, "idle") != 0 && strcmp(b->when, "checkpoint") != 0 &&
	    strcmp(b->when, "now") != 0) {
		http_problem(r, 422, "when: must be idle, checkpoint or now");
		return false;
	}
	return true;
}

/* Takes the texts of b. */
static void fill(struct core_input *in, const char *node, struct verb_body *b)
{
	if (in->type == IN_DRAIN) {
		in->drain = mo_desc_new(&in_drain_desc);
		*in->drain = (struct in_drain){ .node = mo_strdup(node),
						.reason = TAKE_PTR(b->reason),
						.when = TAKE_PTR(b->when) };
	} else if (in->type == IN_UNDRAIN) {
		in->undrain = mo_desc_new(&in_undrain_desc);
		in->undrain->node = mo_strdup(node);
		in->undrain->force = b->force;
	} else if (in->type == IN_ACK) {
		in->ack = mo_desc_new(&in_ack_desc);
		*in->ack = (struct in_ack){ .node = mo_strdup(node),
					    .check = TAKE_PTR(b->check),
					    .learned = b->learned };
	} else {
		in->fence = mo_desc_new(&in_fence_desc);
		*in->fence = (struct in_fence){ .node = mo_strdup(node),
						.boot_seen = TAKE_PTR(b->boot_id) };
	}
}

static void verb(struct manager *m, struct http_request *r, int type, const struct mo_desc *d)
{
	const struct node *n = api_node(m, r);
	struct verb_body body = { 0 };

	if (!n)
		return;
	bool ok = api_body(r, d, &body) && (type != IN_DRAIN || drain_body_ok(r, &body));
	if (ok && type == IN_FENCE && !body.confirmed) {
		http_problem(r, 422,
			     "confirmed: must be true: it states that node %s is powered off; its "
			     "ranks count as dead and its jobs start elsewhere",
			     n->name);
		ok = false;
	}
	if (ok && type == IN_ACK && body.learned && body.check) {
		http_problem(r, 422,
			     "check and learned: give one of them: a check's findings are known, "
			     "or all checks of the node can be trusted");
		ok = false;
	} else if (ok && type == IN_ACK && !body.learned && (!body.check || !*body.check)) {
		http_problem(r, 422,
			     "check: is missing: which check's findings are known, such as "
			     "gpu.ras_ue");
		ok = false;
	}
	if (ok) {
		struct input *in = input_new(type, r);
		fill(&in->core, n->name, &body);
		in->answer = ANSWER_NODE;
		in->answer_node = mo_strdup(n->name);
		input_push(m, in);
	}
	free(body.reason);
	free(body.when);
	free(body.boot_id);
	free(body.check);
}

void api_nodes_drain(void *arg, struct http_request *r)
{
	verb(arg, r, IN_DRAIN, &drain_body_desc);
}
void api_nodes_undrain(void *arg, struct http_request *r)
{
	verb(arg, r, IN_UNDRAIN, &undrain_body_desc);
}
void api_nodes_ack(void *arg, struct http_request *r)
{
	verb(arg, r, IN_ACK, &ack_body_desc);
}
void api_nodes_fence(void *arg, struct http_request *r)
{
	verb(arg, r, IN_FENCE, &fence_body_desc);
}

struct resolve_body {
	char *how, *node;
};
static const struct mo_field resolve_fields[] = {
	MO_D(resolve_body, how, MO_STR, "kill or gone", .max = 16),
	MO_D(resolve_body, node, MO_STR, "node that holds the step", .max = 100),
};
const struct mo_desc resolve_body_desc = MO_DESC(resolve_body, resolve_fields);

struct resolved_view {
	bool resolved;
};
static const struct mo_field resolved_view_fields[] = {
	MO_D(resolved_view, resolved, MO_BOOL, "true"),
};
const struct mo_desc resolved_view_desc = MO_DESC(resolved_view, resolved_view_fields);

/* "j-7.a3" */
static bool step_of_path(struct http_request *r, int64_t *ret_job, int64_t *ret_attempt)
{
	const char *text = http_param(r, "step"), *dot = strstr(text, ".a");
	_cleanup_(mo_freep) char *job = dot ? mo_strndup(text, (size_t)(dot - text)) : NULL;

	if (job && api_job_id(job, ret_job) >= 0 &&
	    mo_parse_i64(dot + 2, 1, INT64_MAX / 2, ret_attempt) >= 0)
		return true;
	http_problem(r, 422, "step: must be like j-7.a3: job 7, attempt 3");
	return false;
}

void api_steps_resolve(void *arg, struct http_request *r)
{
	struct resolve_body body = { 0 };
	int64_t job, attempt;

	if (step_of_path(r, &job, &attempt) && api_body(r, &resolve_body_desc, &body)) {
		struct input *in = input_new(IN_RESOLVE, r);
		in->core.resolve = mo_desc_new(&in_resolve_desc);
		*in->core.resolve = (struct in_resolve){
			.job = job,
			.attempt = attempt,
			.how = TAKE_PTR(body.how),
			.node = TAKE_PTR(body.node),
		};
		in->answer = ANSWER_TEXT;
		in->answer_text = api_text(&resolved_view_desc, &(struct resolved_view){ true });
		input_push(arg, in);
	}
	free(body.how);
	free(body.node);
}
