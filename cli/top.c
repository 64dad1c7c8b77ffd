/* top: the cluster at a glance; on a terminal it stays open (top_live.c), elsewhere it is printed
 * once. */
#include "cli/top.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/top_cluster.h"
#include "cli/top_live.h"
#include "cli/value.h"

#define JOBS_SHOWN 20  /* where it is printed once */
#define LINES_BESIDE 8 /* of a terminal that are not jobs */

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
	for (size_t i = 0; i < CLUSTER_STATES; i++) {
		size_t n = print_state(cli, items, cluster_states[i], room);
		int64_t left = MO_MAX(js_int(counts, cluster_states[i]), (int64_t)n) - (int64_t)n;
		room -= n;
		hidden += left;
		if (left)
			mo_buf_printf(&more, "%s%s %s", more.len ? ", " : "", text_int(left),
				      cluster_states[i]);
	}
	if (hidden)
		printf("and %s more (%s); `moectl list` shows all\n", text_int(hidden), more.data);
}

static int print_once(struct cli *cli, const struct answer *cluster)
{
	_cleanup_(answer_done) struct answer jobs = { 0 };
	int r = cluster_jobs(cli, &jobs);

	if (r)
		return r;
	cluster_print(cli, cluster->doc);
	print_jobs(cli, js_get(cluster->doc, "jobs"), js_items(jobs.doc));
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const struct request q = { .path = "/v1/cluster", .timeout_ms = 5000 };
	_cleanup_(answer_done) struct answer cluster = { 0 };
	int r = cli_options(cli, argc, argv, NULL, 0, NULL, 0, 0);

	if (r)
		return cli_stop(r);
	if ((r = client_send(cli, &q, &cluster)) || (r = client_judge(cli, NULL, &cluster)))
		return r;
	if (cli->json)
		return print_answer(&cluster);
	return cli->live && isatty(STDIN_FILENO) ? top_live(cli) : print_once(cli, &cluster);
}

const struct verb verb_top = {
	"top",
	"Look",
	"top",
	"the cluster at a glance: jobs, nodes, ranks, events",
	"On a terminal: 1 to 5 or Tab jobs, nodes, ranks of the chosen job, events, why; j k or "
	"arrows choose;\n/ filters; one letter acts on what is chosen, and asks before; ? shows "
	"all keys; q ends.\nElsewhere the cluster is printed once.\n",
	run,
	.examples = "  moectl top\n",
};
