/* top: the cluster at a glance; on a terminal redrawn until Ctrl-C, elsewhere printed once. */
#include <limits.h>
#include <string.h>

#include "cli/client.h"
#include "cli/job.h"
#include "cli/output.h"
#include "cli/value.h"

#define REDRAW_MS 1000
#define JOBS_SHOWN 20

static void print_cluster(const struct cli *cli, struct json_object *c)
{
	static const char *const node_states[] = { "up", "suspect", "down", "draining", "drained" };
	printf("%s  epoch %s  moed %s\n%-6s", paint(cli, "1", "cluster"), text_int(js_int(c, "epoch")), text_or(js_str(c, "version")), "nodes");
	for (size_t i = 0; i < ELEMENTSOF(node_states); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("nodes.%s", node_states[i]);
		if (js_int(c, path) > 0 || i == 0)
			printf("  %s %s", text_int(js_int(c, path)), paint_state(cli, node_states[i]));
	}
	printf("\n%-6s  %s total  %s free\n%-6s", "GPUs", text_int(js_int(c, "gpus.total")), text_int(js_int(c, "gpus.free")), "jobs");
	struct json_object *jobs = js_get(c, "jobs");
	size_t n = 0;
	if (jobs) {
		json_object_object_foreach(jobs, state, count) {
			if (json_object_get_int64(count) > 0) {
				printf("  %lld %s", (long long)json_object_get_int64(count), paint_state(cli, state));
				n++;
			}
		}
	}
	puts(n ? "" : "  none");
}

static void print_jobs(const struct cli *cli, struct json_object *items)
{
	size_t n = js_len(items), first = n > JOBS_SHOWN ? n - JOBS_SHOWN : 0;
	for (size_t i = n; i-- > first;) {
		_cleanup_(mo_freep) char *progress = progress_line(cli, js_at(items, i));
		_cleanup_(mo_freep) char *line = mo_printf("%-16s %s", text_or(js_str(js_at(items, i), "name")), progress);
		print_clipped(line, cli->live ? MO_MAX(cli->width - 1, 20) : INT_MAX);
		putchar('\n');
	}
}

/* shown: it was drawn before. Then a controller that is away is waited for. */
static int draw(struct cli *cli, bool shown)
{
	const struct request q = { .path = "/v1/cluster", .timeout_ms = 5000 };
	_cleanup_(answer_done) struct answer cluster = { 0 }, jobs = { 0 };
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
	if ((r = client_get_all(cli, NULL, &jobs, "/v1/jobs?state=queued,starting,running,recovering,stopping,paused")))
		return r;
	if (cli->live)
		fputs("\033[H\033[J", stdout);
	print_cluster(cli, cluster.doc);
	if (js_len(js_items(jobs.doc)))
		putchar('\n');
	print_jobs(cli, js_items(jobs.doc));
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
	watch_signals();
	r = draw(cli, false);
	while (!r && cli->live && !cli->json && !watch_wait(REDRAW_MS))
		r = draw(cli, true);
	return r;
}

const struct verb verb_top = { "top", "Look", "top", "the cluster at a glance: nodes, GPUs, jobs", NULL, run };
