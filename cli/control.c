/* cancel, pause, resume, restart: one POST each; the answer is the Job document. */
#include "cli/control.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

/* What a resume will begin with. A job that is stopping may still save. */
static void print_paused(struct json_object *doc)
{
	int64_t iteration = js_int(doc, "iteration");

	if (js_get(doc, "checkpoint")) {
		puts("asked to stop and keep its place in the list; `moectl resume` continues from "
		     "the newest checkpoint");
		return;
	}
	printf("asked to stop and keep its place in the list; no checkpoint of it is known: unless "
	       "one is saved while it stops, `moectl resume` begins at 0");
	if (iteration > 0)
		printf(" (%lld iterations are lost)", (long long)iteration);
	putchar('\n');
}

/* said: what happens to a job with ranks, NULL = a pause; idle: when there was nothing to stop,
 * that is, the job is in the state `at` already. */
static int act(struct cli *cli, const char *word, const char *verb, const char *body,
	       const char *said, const char *at, const char *idle)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = client_job_to_act_on(cli, word, &id);
	if (r || (r = client_call(cli, "POST", id, body, &a, "/v1/jobs/%s/%s", id, verb)))
		return r;
	if (cli->json)
		return print_answer(&a);
	const char *state = text_or(js_str(a.doc, "state"));
	printf("%s %s: ", id, paint_state(cli, state));
	if (!said && strcmp(state, at))
		print_paused(a.doc);
	else
		puts(at && !strcmp(state, at) ? idle : said);
	return CLI_OK;
}

static int run_cancel(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool now = false;
	const struct opt opts[] = { { "now", 0, OPT_FLAG, &now } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	return act(cli, args[0], "cancel", now ? "{\"now\":true}" : "{}",
		   now ? "killed at once"
		       : "asked to stop; ranks may save a checkpoint within stop.grace",
		   "cancelled", "it had no ranks to stop");
}

static int run_pause(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	return r ? cli_stop(r)
		 : act(cli, args[0], "pause", "{}", NULL, "paused",
		       "it had no ranks to stop; `moectl resume` queues it again");
}

static int run_resume(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	return r ? cli_stop(r) : act(cli, args[0], "resume", "{}", "queued again", NULL, NULL);
}

static int run_restart(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	int64_t from = MO_NONE;
	const struct opt opts[] = { { "from", 0, OPT_INT, &from, 0, INT64_MAX } };
	_cleanup_(mo_freep) char *body = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	body = from == MO_NONE ? mo_strdup("{}") : mo_printf("{\"from\":%lld}", (long long)from);
	return act(cli, args[0], "restart", body,
		   "stops as planned and starts again from a checkpoint", "queued",
		   "it had no ranks to stop; queued");
}

const struct verb verb_cancel = {
	"cancel",
	"Act",
	"cancel JOB [--now]",
	"end a job; its ranks get stop.signal and stop.grace",
	"  --now    kill the ranks at once, no grace\n",
	run_cancel,
	.examples = "  moectl cancel j-7\n",
};
const struct verb verb_pause = {
	"pause",
	"Act",
	"pause JOB",
	"stop a job as planned and free its GPUs",
	NULL,
	run_pause,
	.examples = "  moectl pause j-7\n",
};
const struct verb verb_resume = {
	"resume",
	"Act",
	"resume JOB",
	"continue a paused job from its newest checkpoint",
	NULL,
	run_resume,
	.examples = "  moectl resume j-7\n",
};
const struct verb verb_restart = {
	"restart",
	"Act",
	"restart JOB [--from ITER]",
	"start again from a checkpoint; also a failed job",
	"  --from ITER   from the checkpoint of this iteration "
	"(default: the newest usable one); 0 starts afresh\n"
	"A running job is stopped as planned first. A failed one goes on "
	"with its id,\nhistory and ledger, a completed one with --from "
	"only; a cancelled one never does.\n",
	run_restart,
	.examples = "  moectl restart j-7\n"
		    "  moectl restart j-7 --from 4000\n",
};
