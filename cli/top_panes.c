/* See top_panes.h. */
#include "cli/top_panes.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/control.h"
#include "cli/events.h"
#include "cli/list.h"
#include "cli/nodes.h"
#include "cli/nodes_act.h"
#include "cli/ranks_heat.h"
#include "cli/text.h"
#include "cli/top_cluster.h"
#include "cli/top_state.h"
#include "cli/value.h"
#include "cli/why.h"
#include "daemon/core/view/matrix.h"

#define EVENTS_SHOWN 300
#define FAILED_SHOWN 20 /* the newest: they may want a restart */
#define GUTTER 2        /* beside lists */
#define LIST_MIN 72     /* columns: names, which are acted on by, are never cut */

static void add_state(struct json_object *items, const char *state, struct table *t)
{
	for (size_t i = js_len(items); i-- > 0;) /* newest first */
		if (mo_streq(js_str(js_at(items, i), "state"), state))
			table_row(t, js_at(items, i));
}

static int print_jobs(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 }, failed = { 0 };
	_cleanup_(table_done) struct table t = { 0 };
	int r = cluster_jobs(cli, &a);

	if (r || (r = client_get(cli, NULL, &failed, "/v1/jobs?state=failed&limit=%d&last=1",
				 FAILED_SHOWN)))
		return r;
	jobs_table(&t);
	for (size_t i = 0; i < CLUSTER_STATES; i++)
		add_state(js_items(a.doc), cluster_states[i], &t);
	add_state(js_items(failed.doc), "failed", &t);
	(void)table_print(cli, &t);
	return CLI_OK;
}

static int print_nodes(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(table_done) struct table t = { 0 };
	int r = client_get_all(cli, NULL, &a, "/v1/nodes");

	if (r)
		return r;
	nodes_table(js_items(a.doc), &t);
	(void)table_print(cli, &t);
	return CLI_OK;
}

static int print_events(struct cli *cli)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(cli, NULL, &a, "/v1/events?last=%d&limit=%d", EVENTS_SHOWN,
			   EVENTS_SHOWN);

	for (size_t i = js_len(js_items(a.doc)); !r && i-- > 0;) /* newest first */
		event_print(cli, js_at(js_items(a.doc), i));
	return r;
}

static int print_why(struct cli *cli, const struct top *t)
{
	char *argv[] = { t->of_node ? t->node : t->job, NULL };

	if (argv[0])
		return verb_why.run(cli, 1, argv);
	puts("choose a job (1) or a node (2) first");
	return CLI_OK;
}

int top_print_pane(struct cli *cli, void *arg)
{
	const struct top *t = arg;
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(cli, NULL, &a, "/v1/cluster");

	if (r)
		return r;
	cluster_print(cli, a.doc);
	putchar('\f');
	if (top_is_list(t))
		cli->width = MO_MAX(cli->width - GUTTER, LIST_MIN);
	switch (t->pane) {
	case PANE_JOBS: return print_jobs(cli);
	case PANE_NODES: return print_nodes(cli);
	case PANE_EVENTS: return print_events(cli);
	case PANE_WHY: return print_why(cli, t);
	case PANE_RANKS:
		if (t->job)
			return ranks_heat(cli, t->job, matrix_metric_names[t->metric]);
		puts("choose a job (1) first");
		return CLI_OK;
	default: fputs(top_help, stdout); return CLI_OK;
	}
}

/* From where it goes on, and what that costs. */
static void print_place(struct json_object *job)
{
	int64_t saved = js_int(job, "checkpoint.iteration"), at = js_int(job, "iteration");

	if (at != MO_NONE)
		printf("; it is at iteration %s", text_int(at));
	if (saved == MO_NONE)
		printf("; no checkpoint of it is known");
	else
		printf("; newest checkpoint %s", text_int(saved));
	if (at != MO_NONE && at > MO_MAX(saved, (int64_t)0))
		printf(": %s iterations are lost unless it saves while it stops",
		       text_int(at - MO_MAX(saved, (int64_t)0)));
}

static int print_job_act(struct cli *cli, const struct top *t)
{
	static const struct {
		const char *verb, *text;
	} texts[] = {
		{ "pause", "stops as planned and frees its GPUs, until it is resumed" },
		{ "cancel", "gets its time to save (stop.grace) and ends for good" },
		{ "resume", "is queued again and goes on from its newest checkpoint" },
		{ "restart", "stops as planned and starts again from its newest checkpoint" },
	};
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(cli, t->target, &a, "/v1/jobs/%s", t->target);

	if (r)
		return r;
	printf("%s %s (%s, %s, %s ranks)? It ", t->act->verb, t->target,
	       text_or(js_str(a.doc, "name")), text_or(js_str(a.doc, "state")),
	       text_int(js_int(a.doc, "ranks")));
	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		if (!strcmp(texts[i].verb, t->act->verb))
			fputs(texts[i].text, stdout);
	print_place(a.doc);
	putchar('\n');
	return CLI_OK;
}

static int print_node_act(struct cli *cli, const struct top *t)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(t->target);
	int r = client_get(cli, t->target, &a, "/v1/nodes/%s", name);
	struct json_object *jobs = js_get(a.doc, "jobs");

	if (r)
		return r;
	printf("%s %s (%s)? It ", t->act->verb, t->target, text_or(js_str(a.doc, "state")));
	if (strcmp(t->act->verb, "drain")) {
		printf("takes work again%s%s\n",
		       js_str(a.doc, "reason") ? "; it does not, as: " : "",
		       js_str(a.doc, "reason") ? js_str(a.doc, "reason") : "");
		return CLI_OK;
	}
	fputs("gets no new work, until it is undrained; ", stdout);
	for (size_t i = 0; i < js_len(jobs); i++)
		printf("%s%s", i ? ", " : "", json_object_get_string(js_at(jobs, i)));
	puts(js_len(jobs) ? " on it may end by themselves" : "no job is on it");
	return CLI_OK;
}

int top_print_act(struct cli *cli, void *arg)
{
	const struct top *t = arg;

	return t->act->node ? print_node_act(cli, t) : print_job_act(cli, t);
}

int top_act(struct cli *cli, void *arg)
{
	static const struct verb *const verbs[] = { &verb_pause,   &verb_cancel, &verb_resume,
						    &verb_restart, &verb_drain,  &verb_undrain };
	const struct top *t = arg;
	char option[] = "--reason";
	char *argv[] = { t->target, option, t->reason.data, NULL };

	cli->colour = false;
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
		if (!strcmp(verbs[i]->name, t->act->verb)) {
			cli->verb = verbs[i];
			return verbs[i]->run(cli, t->act->reason ? 3 : 1, argv);
		}
	return CLI_FAILED;
}
