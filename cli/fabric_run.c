/* See fabric_run.h. */
#include "cli/fabric_run.h"

#include <string.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/submit.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define LOOK_MS 200
#define SECOND_US 1000000LL
#define QUEUED_LIMIT_US (120 * SECOND_US) /* its nodes were free: somebody else was faster */
#define ENDING_LIMIT_US (120 * SECOND_US) /* beyond its time limit */
#define AWAY_LIMIT_US (120 * SECOND_US)

void fabric_job_done(struct fabric_job *j)
{
	free(j->id);
	free(j->failed);
	mo_buf_done(&j->out);
}

/* What the recipe says of these is not meant for a measurement: it is tried once, on these nodes
 * and all of their GPUs, and ends. */
static void set_own(const struct fabric_recipe *r, const char *const *nodes, size_t n,
		    struct recipe_input *in)
{
	static const char *const fixed[][2] = {
		{ "stop.grace", "5s" },
		{ "recovery.hang", "off" },
		{ "recovery.policy", "{user_error: stop, transient: stop, suspect: stop, "
				     "node_fault: stop, hang: stop, numerical: stop, "
				     "storage: stop, collateral: stop, preempted: stop}" },
		{ "health.preflight", "none" },
	};
	_cleanup_(mo_buf_done) struct mo_buf list = { 0 };
	_cleanup_(mo_freep) char *gpus = mo_printf("%lld", (long long)r->gpus * (long long)n);
	_cleanup_(mo_freep) char *limit = mo_printf("%llds", (long long)r->limit_s);

	for (size_t i = 0; i < n; i++) {
		mo_buf_str(&list, i ? "," : "[");
		wire_string(nodes[i], &list);
	}
	mo_buf_str(&list, "]");
	recipe_input_option(in, "fabric check", "cluster.nodes", list.data);
	recipe_input_option(in, "fabric check", "cluster.gpus", gpus);
	recipe_input_option(in, "fabric check", "time_limit", limit);
	for (size_t i = 0; i < ELEMENTSOF(fixed); i++)
		recipe_input_option(in, "fabric check", fixed[i][0], fixed[i][1]);
}

int fabric_submit(struct cli *cli, const struct fabric_recipe *r, const char *const *nodes,
		  size_t n, struct fabric_job *ret)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	_cleanup_(answer_done) struct answer a = { 0 };
	int failed = 0;

	recipe_input_init(&in);
	in.file = r->file;
	in.checked = true; /* as it was given, before the first of them */
	mo_buf_add(&in.text, r->text.data, r->text.len);
	for (size_t i = 0; i < r->sets.n && !failed; i++)
		failed = recipe_input_set(cli, &in, r->sets.items[i]);
	set_own(r, nodes, n, &in);
	_cleanup_(mo_freep) char *text = failed ? NULL : recipe_input_document(cli, &in);

	if (!text)
		return CLI_USAGE;
	ret->sent_at = mo_clock_boot_us();
	if ((failed = submit_send(cli, &in, text, &a)))
		return failed;
	ret->id = mo_strdup(js_str(a.doc, "id"));
	return ret->id ? CLI_OK
		       : cli_fail(CLI_FAILED, "controller %s: its answer names no job",
				  client_url(cli));
}

/* As records: what could not be read must not look like a measurement without a row. */
static int read_output(struct cli *cli, struct fabric_job *j)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs/%s/logs?rank=0&records=1", j->id);
	int r = client_send(cli, &(struct request){ .path = path, .timeout_ms = 60000 }, &a);
	bool end = false;

	if (r || (r = client_judge(cli, j->id, &a)))
		return r;
	for (const char *line = a.body.data, *nl; line && (nl = strchr(line, '\n'));
	     line = nl + 1) {
		struct json_object *o = NULL;

		if (wire_parse(line, (size_t)(nl - line), &o, NULL) == 0) {
			end = json_object_get_boolean(js_get(o, "end"));
			mo_buf_str(&j->out, js_str(o, "text") ? js_str(o, "text") : "");
			if (js_str(o, "error"))
				r = cli_fail(CLI_FAILED, "fabric check: output of %s: %s", j->id,
					     js_str(o, "error"));
		}
		json_object_put(o);
	}
	if (!r && !end)
		r = cli_fail(CLI_FAILED, "fabric check: the output of %s broke off; check again",
			     j->id);
	return r;
}

/* Why what stands so will give no measurement any more; NULL: it may. Caller frees. */
static char *gives_none(const struct fabric_recipe *r, const struct fabric_job *j,
			struct json_object *doc, int64_t now)
{
	const char *state = js_str(doc, "state"), *why = js_str(doc, "reason");
	int64_t waits = now - j->sent_at;

	if (mo_streq(state, "cancelled") || mo_streq(state, "paused"))
		return mo_printf("%s was %s by somebody", j->id, state);
	if (mo_streq(state, "queued") && waits > QUEUED_LIMIT_US)
		return mo_printf("%s does not start: %s", j->id, text_or(why));
	if (waits > QUEUED_LIMIT_US + r->limit_s * SECOND_US + ENDING_LIMIT_US)
		return mo_printf("%s does not end; `moectl why %s` says what is left of it", j->id,
				 j->id);
	return NULL;
}

/* *away_since: since when nobody answers, 0 = somebody does */
static int look(struct cli *cli, const struct fabric_recipe *r, struct fabric_job *j,
		int64_t *away_since)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs/%s", j->id);
	int64_t now = mo_clock_boot_us();
	int failed = client_send(cli, &(struct request){ .path = path, .timeout_ms = 5000 }, &a);

	if (failed)
		return failed;
	if (!a.status && now - (*away_since ? *away_since : now) <= AWAY_LIMIT_US) {
		*away_since = *away_since ? *away_since : now;
		return CLI_OK;
	}
	if ((failed = client_judge(cli, j->id, &a)))
		return failed;
	*away_since = 0;
	_cleanup_(mo_freep) char *none = gives_none(r, j, a.doc, now);

	if (none)
		return cli_fail(CLI_FAILED, "fabric check: %s; nothing is said of the nodes", none);
	j->ended = mo_streq(js_str(a.doc, "state"), "completed");
	if (j->ended)
		return read_output(cli, j);
	if (mo_streq(js_str(a.doc, "state"), "failed")) {
		j->ended = true;
		j->failed = mo_strdup(text_or(js_str(a.doc, "reason")));
	}
	return CLI_OK;
}

void fabric_cancel(struct cli *cli, struct fabric_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(answer_done) struct answer a = { 0 };
		_cleanup_(mo_freep) char *path =
			mo_printf("/v1/jobs/%s/cancel", text_or(jobs[i].id));
		const struct request q = { .method = "POST",
					   .path = path,
					   .body = "{\"now\":true}",
					   .n = strlen("{\"now\":true}"),
					   .content_type = "application/json",
					   .timeout_ms = 5000 };

		if (!jobs[i].id || jobs[i].ended || client_send(cli, &q, &a))
			continue;
		fprintf(stderr, "moectl: fabric check: %s %s\n", jobs[i].id,
			a.status >= 200 && a.status < 300 ? "was cancelled"
							  : "ends by its time limit");
	}
}

int fabric_wait(struct cli *cli, const struct fabric_recipe *r, struct fabric_job *jobs, size_t n)
{
	int64_t away_since = 0;
	int failed = 0;

	interrupt_catch();
	for (size_t left = n; left && !failed;) {
		left = 0;
		for (size_t i = 0; i < n && !failed; i++) {
			if (!jobs[i].ended)
				failed = look(cli, r, &jobs[i], &away_since);
			left += !jobs[i].ended;
		}
		if (left && !failed && interrupt_wait(LOOK_MS))
			failed = cli_fail(CLI_FAILED, "fabric check: interrupted");
	}
	if (failed)
		fabric_cancel(cli, jobs, n);
	return failed;
}
