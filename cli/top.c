/* top: the cluster at a glance; on a terminal redrawn until Ctrl-C, elsewhere printed once. */
#include "cli/top.h"

#include <limits.h>
#include <string.h>

#include "cli/client.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

#define REDRAW_MS 1000
#define JOBS_SHOWN 20 /* where it is printed once */
#define WAITING_MAX 200
#define LINES_BESIDE 8 /* of a terminal that are not jobs */

static void print_cluster(const struct cli *cli, struct json_object *c)
{
	static const char *const node_states[] = { "up", "suspect", "down", "draining", "drained" };
	printf("%s  epoch %s  moed %s\n%-6s", paint(cli, "1", "cluster"),
	       text_int(js_int(c, "epoch")), text_or(js_str(c, "version")), "nodes");
	for (size_t i = 0; i < ELEMENTSOF(node_states); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("nodes.%s", node_states[i]);
		if (js_int(c, path) > 0 || i == 0)
			printf("  %s %s", text_int(js_int(c, path)),
			       paint_state(cli, node_states[i]));
	}
	printf("\n%-6s  %s total  %s free\n%-6s", "GPUs", text_int(js_int(c, "gpus.total")),
	       text_int(js_int(c, "gpus.free")), "jobs");
	struct json_object *jobs = js_get(c, "jobs");
	size_t n = 0;
	if (jobs) {
		json_object_object_foreach(jobs, state, count) {
			if (json_object_get_int64(count) > 0) {
				printf("  %lld %s", (long long)json_object_get_int64(count),
				       paint_state(cli, state));
				n++;
			}
		}
	}
	puts(n ? "" : "  none");
}

/* What runs comes first, then what is about to, then what waits; the newest of each first. */
static const char *const order[] = { "running",  "recovering", "starting",
				     "stopping", "paused",     "queued" };

/* Prints jobs of this state from the newest on, at most room; returns how many. */
static size_t print_state(const struct cli *cli, struct json_object *items, const char *state,
			  size_t room)
{
	size_t n = 0;
	for (size_t i = js_len(items); i-- > 0 && n < room;) {
		struct json_object *j = js_at(items, i);
		if (!mo_streq(js_str(j, "state"), state))
			continue;
		const char *name = text_or(js_str(j, "name"));
		int width = cli->live ? MO_MAX(cli->width - 1, 20) : 0;
		_cleanup_(mo_freep) char *progress =
			progress_line(cli, j,
				      width ? MO_MAX(width - 1 - MO_MAX((int)strlen(name), 16), 1)
					    : 0);
		_cleanup_(mo_freep) char *line = mo_printf("%-16s %s", name, progress);
		print_clipped(line, width ? width : INT_MAX);
		putchar('\n');
		n++;
	}
	return n;
}

/* counts: of the whole cluster by state; those that are not shown are counted. */
static void print_jobs(const struct cli *cli, struct json_object *counts, struct json_object *items)
{
	_cleanup_(mo_buf_done) struct mo_buf more = { 0 };
	size_t room = cli->live && cli->height ? (size_t)MO_MAX(cli->height - LINES_BESIDE, 3)
					       : JOBS_SHOWN;
	int64_t hidden = 0;
	if (js_len(items))
		putchar('\n');
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		size_t n = print_state(cli, items, order[i], room);
		int64_t left = MO_MAX(js_int(counts, order[i]), (int64_t)n) - (int64_t)n;
		room -= n;
		hidden += left;
		if (left)
			mo_buf_printf(&more, "%s%s %s", more.len ? ", " : "", text_int(left),
				      order[i]);
	}
	if (hidden)
		printf("and %s more (%s); `moectl list` shows all\n", text_int(hidden), more.data);
}

/* shown: it was drawn before. Then a controller that is away is waited for. */
static int draw(struct cli *cli, bool shown)
{
	const struct request q = { .path = "/v1/cluster", .timeout_ms = 5000 };
	_cleanup_(answer_done) struct answer cluster = { 0 }, jobs = { 0 }, waiting = { 0 };
	int r = client_send(cli, &q, &cluster);
	if (!r && shown && !cluster.status) {
		printf("\r\033[Kcontroller %s: no answer, trying again", client_url(cli));
		fflush(stdout);
		return CLI_OK;
	}
	if (r || (r = client_judge(cli, NULL, &cluster)))
		return r;
	if (cli->json)
		return print_answer(&cluster);
	/* there may be far more that wait than lines to show them */
	if ((r = client_get_all(cli, NULL, &jobs,
				"/v1/jobs?state=running,recovering,starting,stopping")) ||
	    (r = client_get(cli, NULL, &waiting, "/v1/jobs?state=queued,paused&limit=%d&last=1",
			    WAITING_MAX)))
		return r;
	for (size_t i = 0; i < js_len(js_items(waiting.doc)); i++)
		json_object_array_add(js_items(jobs.doc),
				      json_object_get(js_at(js_items(waiting.doc), i)));
	if (cli->live)
		fputs("\033[H\033[J", stdout);
	print_cluster(cli, cluster.doc);
	print_jobs(cli, js_get(cluster.doc, "jobs"), js_items(jobs.doc));
	if (cli->live)
		puts("\n(Ctrl-C ends)");
	fflush(stdout);
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	int r = cli_options(cli, argc, argv, NULL, 0, NULL, 0, 0);
	if (r)
		return cli_stop(r);
	interrupt_catch();
	r = draw(cli, false);
	while (!r && cli->live && !cli->json && !interrupt_wait(REDRAW_MS))
		r = draw(cli, true);
	return r;
}

const struct verb verb_top = {
	"top",
	"Look",
	"top",
	"the cluster at a glance: nodes, GPUs, jobs",
	NULL,
	run,
	.examples = "  moectl top\n",
};
