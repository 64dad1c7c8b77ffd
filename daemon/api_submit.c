/* POST /v1/jobs: recipe -> checks -> [plan search in a helper] -> dry-run document, or an input
 * of the next turn whose answer leaves after the sync. */
#include "daemon/api_submit.h"

#include <errno.h>
#include <string.h>
#include "agent/core/bind/preview.h"
#include "daemon/admit.h"
#include "daemon/anchors.h"
#include "daemon/api_plan.h"
#include "daemon/auth.h"
#include "daemon/core/rules/dryrun.h"
#include "daemon/forked.h"
#include "daemon/forked_child.h"
#include "daemon/helper.h"
#include "daemon/input.h"
#include "daemon/disk.h"
#include "daemon/spec.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/plan/plan.h"
#include "lib/recipe/catalogue.h"
#include "lib/wire/dryrun.h"

#define KEY_MAX 128
#define PIECE (64 << 10) /* of a dry-run document */

static bool key_valid(const char *key)
{
	size_t n = strlen(key);

	if (n == 0 || n > KEY_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return false;
	return true;
}

/* Ranks may run as root, or as a system account, only for an admin who is on this machine, or in
 * a cluster that moed itself made the tokens for; and only where nobody from elsewhere can reach
 * this controller: a cluster on one machine. */
bool api_may_be_root(const struct manager *m, const struct http_caller *c)
{
	const struct options *o = m->options;

	return options_loopback(o) && c->role == ROLE_ADMIN &&
	       (c->local || (o->bootstrap_tokens && *o->bootstrap_tokens));
}

/* What a node read is judged while the job runs (node_config.c): that it waits is said of a new
 * one alone. */
static bool admit_new(const struct manager *m, struct submit *spec, char **ret_why)
{
	bool ok = spec_admit(m, spec, ret_why);

	admit_warn_too_large(manager_state(m), spec);
	if (mo_streq(spec->recipe.on_node_loss, "spare") &&
	    (!m->options->fence_command || !*m->options->fence_command))
		mo_strs_add(&spec->warnings, &spec->n_warnings,
			    "recovery.on_node_loss: spare is as wait here: this controller has no "
			    "fence_command that could prove a silent node off");
	return ok;
}

/* What a submit still needs when its recipe is read. plan: from the helper, NULL when none was
 * needed. */
struct pending {
	struct manager *manager;
	uint64_t request, helper;
	struct submit *spec;
	bool dry;
};

static void pending_free(struct pending *p)
{
	mo_desc_free(&submit_desc, p->spec);
	free(p);
}

/* fd -1: the document is only measured. */
struct document {
	struct mo_buf b;
	int64_t bytes;
	bool any;
	int fd;
};

static void document_done(struct document *d)
{
	mo_buf_done(&d->b);
}

static int document_flush(struct document *d)
{
	int r = d->fd < 0 ? 0 : mo_write_all(d->fd, d->b.data, d->b.len);

	d->bytes += (int64_t)d->b.len;
	mo_buf_reset(&d->b);
	return r;
}

static int document_node(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
			 size_t n, struct mo_error *err)
{
	struct document *d = arg;

	wire_dryrun_ranks(ranks, n, !d->any, &d->b);
	d->any = true;
	if (d->bytes + (int64_t)d->b.len > MO_DRYRUN_BYTES_MAX)
		return mo_error_set(err, -E2BIG,
				    "its document would have more than %d MB: ask for fewer ranks "
				    "(--set cluster.gpus=N)",
				    MO_DRYRUN_BYTES_MAX >> 20);
	return d->b.len < PIECE ? 0 : document_flush(d);
}

struct dry_work {
	const struct submit *spec;
	const char *plan;
};

static int document_write(const struct state *s, const struct dry_work *w, int fd,
			  struct mo_error *err)
{
	_cleanup_(document_done) struct document d = { .fd = fd };
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = document_node, .arg = &d, .to = MO_NONE
	};
	int r;

	wire_dryrun_head(w->spec->recipe.name, w->plan, w->spec->engine.resume,
			 w->spec->engine.n_resume, &d.b);
	r = dryrun_walk(s, w->spec, &walk, err);
	if (r < 0)
		return r;
	wire_dryrun_end(dryrun_placed_names[r], &d.b);
	return document_flush(&d);
}

/* In a child. All of it is made twice, so that whatever is wrong with a rank is said instead of
 * the document, and neither is kept whole in memory. */
static int dry_run(const struct manager *m, const void *arg, int fd)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct dry_work w = *(const struct dry_work *)arg;
	_cleanup_(mo_freep) char *plan = w.plan ? NULL : admit_plan(manager_state(m), w.spec);

	w.plan = plan ? plan : w.plan;
	int r = document_write(manager_state(m), &w, -1, &err);
	if (r < 0) {
		_cleanup_(mo_freep) char *detail = mo_printf("dry run: %s", mo_error_text(&err, r));
		return forked_problem(fd, 422, detail);
	}
	r = forked_status(fd, 200);
	return r < 0 ? r : document_write(manager_state(m), &w, fd, &err);
}

/* Frees p. */
static void go_on(struct http_request *r, struct pending *p, const char *plan)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };

	int e = plan ? spec_apply_plan(p->spec, plan, &err) : 0;
	if (e < 0) {
		http_problem(r, 422, "%s", mo_error_text(&err, e));
	} else if (p->dry) {
		const struct dry_work w = { p->spec, plan };
		const struct forked_work work = { .kind = FORKED_DRY_RUN,
						  .user = http_caller(r)->user,
						  .run = dry_run,
						  .arg = &w,
						  .content_type = "application/json" };
		forked_answer(p->manager, r, &work);
	} else {
		admit_warn_resume(manager_state(p->manager), p->spec);
		admit_warn_checkpoints(manager_state(p->manager), p->spec);
		admit_warn_spares(manager_state(p->manager), p->spec);
		struct input *in = input_new(IN_SUBMIT, r);
		in->core.submit = TAKE_PTR(p->spec);
		in->answer = ANSWER_SUBMIT;
		input_push(p->manager, in);
	}
	pending_free(p);
}

static void on_planned(void *arg, int status, const char *text)
{
	struct pending *p = arg;
	struct http_request *r = http_find(p->manager->http, p->request);

	if (r)
		http_on_gone(r, NULL, NULL);
	if (r && status == 200) {
		go_on(r, p, text);
		return;
	}
	if (r)
		http_problem(r, status, "%s", text);
	pending_free(p);
}

static void on_gone(void *arg, uint64_t id)
{
	struct pending *p = arg;

	helper_cancel(p->manager, p->helper);
	pending_free(p);
}

static void plan_first(struct http_request *r, struct pending *p)
{
	char *const options[] = { (char *)"--top", (char *)"1", NULL };

	_cleanup_(mo_freep) char *anchors =
		anchors_document(&p->manager->anchor_texts, manager_state(p->manager), NULL,
				 p->spec->recipe.gpu, p->spec->recipe.precision);
	const struct helper_input input = { .user = http_caller(r)->user,
					    .kind = SEARCH_SUBMIT,
					    .recipe = p->spec->recipe_text,
					    .n = strlen(p->spec->recipe_text),
					    .options = options,
					    .anchors = anchors };

	int e = helper_plan(p->manager, &input, on_planned, p, &p->helper);
	if (e < 0) {
		plan_refuse(r, e);
		pending_free(p);
		return;
	}
	http_on_gone(r, on_gone, p);
}

/* false after 422. */
static bool identify(const struct manager *m, struct http_request *r, struct submit *spec,
		     const char *key, const char *body, size_t n)
{
	const struct http_caller *c = http_caller(r);
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	int e = spec_for_user(spec, c->user, &err);

	if (e < 0) {
		http_problem(r, 422, "%s%s%s", mo_error_text(&err, e), err.hint ? "; " : "",
			     err.hint ? err.hint : "");
		return false;
	}
	spec->allow_root = api_may_be_root(m, c);
	if (key) {
		mo_str_set(&spec->idempotency_key, key);
		free(spec->digest);
		spec->digest = auth_digest(body, n);
	}
	return true;
}

/* A value that is neither yes nor no must not start a job that was only asked about. */
static bool read_dry_run(struct http_request *r, bool *ret)
{
	const char *text = http_query(r, "dry_run");

	*ret = false;
	if (!text || mo_parse_bool(text, ret) == 0)
		return true;
	http_problem(r, 400, "dry_run=%.40s: must be 1 or 0", text);
	return false;
}

static void submit_read(struct manager *m, struct http_request *r, struct submit *spec)
{
	size_t n;
	const char *body = http_body(r, &n);
	bool dry;

	if (!read_dry_run(r, &dry) ||
	    !identify(m, r, spec, http_header(r, "Idempotency-Key"), body, n)) {
		mo_desc_free(&submit_desc, spec);
		return;
	}
	if (mo_streq(spec->user, "root") && !spec->allow_root) {
		mo_desc_free(&submit_desc, spec);
		http_problem(r, 403,
			     "ranks would run as root: only an admin on the machine of a "
			     "controller that listens on loopback alone (`moectl local up`) may "
			     "ask for that; submit as an ordinary user");
		return;
	}
	_cleanup_(mo_error_done) struct mo_error refused = { 0 };
	if (!spec->allow_root && auth_account(m, http_caller(r), &refused) < 0) {
		mo_desc_free(&submit_desc, spec);
		http_problem(r, 403, "%s", refused.text);
		return;
	}
	struct pending *p = mo_alloc(sizeof(*p));
	*p = (struct pending){ .manager = m, .request = http_id(r), .spec = spec, .dry = dry };
	if (spec_needs_plan(spec))
		plan_first(r, p);
	else
		go_on(r, p, NULL);
}

void api_jobs_submit(void *arg, struct http_request *r)
{
	struct manager *m = arg;
	const char *key = http_header(r, "Idempotency-Key");
	bool dry;

	if (key && !key_valid(key)) {
		http_problem(r, 400,
			     "Idempotency-Key: must be 1 to %d printable characters without spaces",
			     KEY_MAX);
		return;
	}
	if (!read_dry_run(r, &dry))
		return;
	if (!dry && !disk_for_submit(m)) {
		http_problem(r, 507,
			     "the state disk of the controller is full: running jobs go on; free "
			     "space below %s and submit again",
			     m->options->state_dir);
		return;
	}
	spec_read(m, r, &(struct spec_wish){ .done = submit_read, .check = admit_new });
}
