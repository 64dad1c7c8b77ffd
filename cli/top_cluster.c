/* See top_cluster.h. */
#include "cli/top_cluster.h"

#include <stdio.h>

#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

#define WAITING_MAX 200 /* there may be far more that wait than lines to show them */

const char *const cluster_states[CLUSTER_STATES] = { "running",  "recovering", "starting",
						     "stopping", "paused",     "queued" };

void cluster_print(const struct cli *cli, struct json_object *c)
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

int cluster_jobs(struct cli *cli, struct answer *ret)
{
	_cleanup_(answer_done) struct answer waiting = { 0 };
	int r = client_get_all(cli, NULL, ret,
			       "/v1/jobs?state=running,recovering,starting,stopping");

	if (r || (r = client_get(cli, NULL, &waiting,
				 "/v1/jobs?state=queued,paused&limit=%d&last=1", WAITING_MAX)))
		return r;
	for (size_t i = 0; i < js_len(js_items(waiting.doc)); i++)
		json_object_array_add(js_items(ret->doc),
				      json_object_get(js_at(js_items(waiting.doc), i)));
	return CLI_OK;
}
