/* events: what happened, of the cluster, one job or one node; -f follows the stream. */
#include <string.h>

#include "cli/client.h"
#include "cli/output.h"
#include "cli/stream.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/model/limits.h"
#include "lib/wire/json.h"

static void print_event(const struct cli *cli, struct json_object *e)
{
	const char *type = text_or(js_str(e, "type")), *job = js_str(e, "job"), *node = js_str(e, "node");
	const char *code = strstr(type, "fail") || strstr(type, "lost") || strstr(type, "torn") || strstr(type, "down") ? "31" :
			   strstr(type, "exited") || strstr(type, "recover") || strstr(type, "suspect") ? "33" : NULL;
	printf("%s  %s%*s", text_clock(js_str(e, "time")), paint(cli, code, type), MO_MAX(20 - (int)strlen(type), 0), "");
	if (job)
		printf("  %s", job);
	if (job && js_int(e, "attempt") != MO_NONE)
		printf(" attempt %s", text_int(js_int(e, "attempt")));
	if (js_int(e, "rank") != MO_NONE)
		printf(" rank %s", text_int(js_int(e, "rank")));
	if (node)
		printf("  %s", node);
	printf("  %s\n", text_or(js_str(e, "message")));
}

struct filter { struct cli *cli; const char *job, *node; };

static bool wanted(const struct filter *f, struct json_object *e)
{
	return (!f->job || mo_streq(js_str(e, "job"), f->job)) && (!f->node || mo_streq(js_str(e, "node"), f->node));
}

static int on_event(void *arg, const char *data)
{
	const struct filter *f = arg;
	struct json_object *e = NULL;
	if (wire_parse(data, strlen(data), &e, NULL) < 0)
		return 0;
	if (!f->cli->raw)
		visible_json(e);
	if (wanted(f, e)) {
		if (f->cli->json)
			print_json(data, strlen(data));
		else
			print_event(f->cli, e);
		fflush(stdout);
	}
	json_object_put(e);
	return ferror(stdout);
}

static int history(struct cli *cli, const struct filter *f)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *quoted = f->node ? url_quote(f->node) : NULL;
	int r = f->job ? client_get_all(cli, f->job, &a, "/v1/jobs/%s/events", f->job) :
		f->node ? client_get_all(cli, f->node, &a, "/v1/events?node=%s", quoted) : client_get_all(cli, NULL, &a, "/v1/events");
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (!f->job && !f->node && js_len(items) >= MO_EVENTS_MAX)
		fprintf(stderr, "(the newest %d events are kept; earlier ones are in the journal of moed: journalctl -u moed)\n", MO_EVENTS_MAX);
	for (size_t i = 0; i < js_len(items); i++)
		if (wanted(f, js_at(items, i)))
			print_event(cli, js_at(items, i));
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool follow = false;
	const struct opt opts[] = { { "follow", 'f', OPT_FLAG, &follow } };
	_cleanup_(mo_freep) char *job = NULL;
	struct filter f = { .cli = cli };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);
	if (r)
		return cli_stop(r);
	if (args[0] && (r = client_subject(cli, args[0], &job)))
		return r;
	f.job = job;
	f.node = job ? NULL : args[0];
	return follow ? stream_events(cli, 0, on_event, &f) : history(cli, &f);
}

const struct verb verb_events = {
	"events", "Look", "events [JOB|NODE] [-f]", "what happened; -f follows",
	"  -f, --follow   earlier events, then new ones as they come; survives a controller restart without a gap\n", run,
};
