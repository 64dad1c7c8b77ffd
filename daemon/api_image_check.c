/* See api_image_check.h. The node's agent is asked, and looks as the caller: he learns of the
 * node's files nothing that his own jobs could not read. */
#include "daemon/api_image_check.h"

#include <stdio.h>
#include <string.h>

#include "daemon/agent_link.h"
#include "daemon/api.h"
#include "daemon/api_submit.h"
#include "daemon/auth.h"
#include "daemon/core/state/node.h"
#include "daemon/quota.h"
#include "lib/base/parse.h"
#include "lib/model/image_check.h"
#include "lib/model/limits.h"
#include "lib/wire/cost.h"
#include "lib/wire/decode.h"

struct image_question {
	struct manager *manager;
	uint64_t request;
	char node[MO_LONGEST_NAME + 1];
};

static void on_answer(void *arg, const struct query_answer *a, const char *why)
{
	const struct image_question *q = arg;
	struct http_request *r = http_find(q->manager->http, q->request);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(image_checks_done) struct image_checks checks;

	mo_desc_init(&image_checks_desc, &checks);
	if (!r)
		return;
	const char *text = a && a->text ? a->text : "";
	size_t n = strlen(text);

	if (!a)
		http_problem(r, 503, "%s; try again", why);
	else if (a->error)
		http_problem(r, 422, "node %s: %s", q->node, a->error);
	else if (wire_affordable(text, n, &err) < 0 ||
		 wire_decode(&image_checks_desc, text, n, false, &checks, &err) < 0)
		http_problem(r, 502, "node %s: what it says of the image cannot be read", q->node);
	else
		api_send_doc(r, 200, &image_checks_desc, &checks);
}

bool api_caller_account(struct manager *m, struct http_request *r)
{
	const struct http_caller *c = http_caller(r);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	if (!c->user)
		http_problem(r, 422, "user: this token is nobody's: name an account of the node");
	else if (mo_streq(c->user, "root") && !api_may_be_root(m, c))
		http_problem(r, 422,
			     "user: root runs no jobs: name the account whose jobs are meant");
	else if (!api_may_be_root(m, c) && auth_account(m, c, &err) < 0)
		http_problem(r, 403, "%s", err.text);
	else
		return true;
	return false;
}

/* As whom it is looked at: the caller, or whom an admin names. NULL after a 4xx was sent. */
static const char *user_of(struct manager *m, struct http_request *r)
{
	const struct http_caller *c = http_caller(r);
	const char *user = http_query(r, "user");

	if (user && !mo_streq(user, c->user) && c->role != ROLE_ADMIN)
		http_problem(r, 403, "user: only an admin looks as somebody else");
	else if (user && !mo_name_valid(user))
		http_problem(r, 400, "user=%.40s: is not the name of an account", user);
	else if (user || api_caller_account(m, r))
		return user ? user : c->user;
	return NULL;
}

void api_nodes_image(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const struct node *n = api_node(m, r);
	const char *image = http_query(r, "image"), *user;
	_cleanup_(mo_freep) char *problem = image_check_problem(image);

	if (!n)
		return;
	if (problem) {
		http_problem(r, 422, "%s", problem);
		return;
	}
	if (!(user = user_of(m, r)))
		return;
	if (n->state == NODE_DOWN) {
		http_problem(r, 409, "node %s is down: it cannot be asked", n->name);
		return;
	}
	if (!quota_hold(m, r))
		return;
	struct image_question *q = mo_alloc(sizeof(*q));
	const struct command c = { .what = (char *)IMAGE_CHECK_WHAT,
				   .dir = (char *)image,
				   .user = (char *)user,
				   .allow_root = api_may_be_root(m, http_caller(r)) };

	*q = (struct image_question){ .manager = m, .request = http_id(r) };
	snprintf(q->node, sizeof(q->node), "%s", n->name);
	http_hold(r);
	link_query_image(m, n->name, &c, on_answer, q);
}
