/* events: what happened, of the cluster, one job or one node; -f follows the stream. */
#include "cli/events.h"

#include <json-c/json.h>
#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/stream.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/model/event_type.h"
#include "lib/wire/parse.h"

void event_print(const struct cli *cli, struct json_object *e)
{
	const char *type = text_or(js_str(e, "type")), *job = js_str(e, "job"),
		   *node = js_str(e, "node");
	const char *code = strstr(type, "fail") || strstr(type, "lost") || strstr(type, "torn") ||
					   strstr(type, "down")
				   ? "31"
			   : strstr(type, "exited") || strstr(type, "recover") ||
					   strstr(type, "suspect") || strstr(type, "tainted") ||
					   mo_starts_with(type, "loss.")
				   ? "33"
				   : NULL;
	printf("%s  %s%*s", text_clock(js_str(e, "time")), paint(cli, code, type),
	       MO_MAX(20 - (int)strlen(type), 0), "");
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

#define NEWEST_MOST 1000 /* that one answer has */

struct filter {
	struct cli *cli;
	const char *job, *node;
	int64_t newest; /* so many of them; MO_NONE: all */
};

/* Caller frees. */
static char *path_of(const struct filter *f)
{
	_cleanup_(mo_freep) char *node = f->node ? url_quote(f->node) : NULL;

	return f->job ? mo_printf("/v1/jobs/%s/events", f->job)
	       : node ? mo_printf("/v1/events?node=%s", node)
		      : mo_strdup("/v1/events");
}

static int on_event(void *arg, const char *data)
{
	const struct filter *f = arg;
	struct json_object *e = NULL;
	if (wire_parse(data, strlen(data), &e, NULL) < 0)
		return 0;
	if (!f->cli->raw)
		visible_json(e);
	if (f->cli->json)
		print_json(data, strlen(data));
	else if (mo_streq(js_str(e, "type"), event_registry[EVENT_EVENTS_GONE].type))
		fprintf(stderr, "(%s)\n", text_or(js_str(e, "message")));
	else
		event_print(f->cli, e);
	fflush(stdout);
	json_object_put(e);
	return ferror(stdout);
}

/* Of an older controller, which does not tell: unknown. */
static void print_gone(const struct filter *f, int64_t n)
{
	const char *of = f->job    ? " of "
			 : f->node ? " about "
				   : "",
		   *whose = f->job    ? f->job
			    : f->node ? f->node
				      : "";

	if (n != MO_NONE && n > 0)
		fprintf(stderr,
			"(%lld earlier event%s%s%s %s no longer kept; the log of moed has them: "
			"journalctl -u moed)\n",
			(long long)n, n == 1 ? "" : "s", of, whose, n == 1 ? "is" : "are");
}

static int ask(struct cli *cli, const struct filter *f, struct answer *ret)
{
	_cleanup_(mo_freep) char *path = path_of(f);
	const char *what = f->job ? f->job : f->node;

	if (f->newest == MO_NONE)
		return client_get_all(cli, what, ret, "%s", path);
	return client_get(cli, what, ret, "%s%clast=%lld&limit=%lld", path,
			  strchr(path, '?') ? '&' : '?', (long long)f->newest,
			  (long long)f->newest);
}

/* Events after this one are followed. */
static int follow_from(struct cli *cli, const struct filter *f, int64_t *ret)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = f->newest == MO_NONE ? CLI_OK : ask(cli, f, &a);

	*ret = js_len(js_items(a.doc)) ? js_int(js_at(js_items(a.doc), 0), "seq") - 1 : 0;
	return r;
}

static int history(struct cli *cli, const struct filter *f)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = ask(cli, f, &a);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	struct json_object *items = js_items(a.doc);
	if (f->newest == MO_NONE)
		print_gone(f, js_int(a.doc, "gone"));
	for (size_t i = 0; i < js_len(items); i++)
		event_print(cli, js_at(items, i));
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool follow = false;
	struct filter f = { .cli = cli, .newest = MO_NONE };
	const struct opt opts[] = { { "follow", 'f', OPT_FLAG, &follow },
				    { "lines", 'n', OPT_INT, &f.newest, 1, NEWEST_MOST } };
	_cleanup_(mo_freep) char *job = NULL;
	int64_t from = 0;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 0, 1);
	if (r)
		return cli_stop(r);
	if (args[0] && (r = client_subject(cli, args[0], &job)))
		return r;
	f.job = job;
	f.node = job ? NULL : args[0];
	if (!follow)
		return history(cli, &f);
	_cleanup_(mo_freep) char *path = path_of(&f),
				 *followed = mo_printf("%s%cfollow=1", path,
						       strchr(path, '?') ? '&' : '?');

	if ((r = follow_from(cli, &f, &from)))
		return r;
	return stream_events(cli, followed, from, on_event, &f);
}

const struct verb verb_events = {
	"events",
	"Look",
	"events [JOB|NODE] [-f] [-n LINES]",
	"what happened; -f follows",
	"  -f, --follow        earlier events, then new ones as they come; survives a controller "
	"restart without a gap\n"
	"  -n, --lines LINES   the newest LINES events (at most 1000); with -f those first\n",
	run,
	.examples = "  moectl events j-7\n"
		    "  moectl events -n 20\n"
		    "  moectl events node-3 -f\n",
};
