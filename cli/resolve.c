/* resolve STEP --kill | --gone: what becomes of a step on which the controller and its node
 * disagree, which happens after a restore only. */
#include "cli/resolve.h"

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "lib/base/buf.h"
#include "lib/wire/encode.h"

static int run_resolve(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *node = NULL;
	bool kill = false, gone = false;
	const struct opt opts[] = { { "kill", 0, OPT_FLAG, &kill },
				    { "gone", 0, OPT_FLAG, &gone },
				    { "node", 0, OPT_STR, &node } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);

	if (r)
		return cli_stop(r);
	if (kill == gone)
		return cli_misuse(cli, "one of --kill and --gone: --kill ends a step that the "
				       "controller never stored, --gone states that a step which "
				       "its agent does not know any more has no process left");
	_cleanup_(mo_freep) char *step = url_quote(args[0]);
	mo_buf_printf(&body, "{\"how\":\"%s\"", kill ? "kill" : "gone");
	if (node) {
		mo_buf_str(&body, ",\"node\":");
		wire_string(node, &body);
	}
	mo_buf_str(&body, "}");
	if ((r = client_call(cli, "POST", args[0], body.data, &a, "/v1/steps/%s/resolve", step)))
		return r;
	if (cli->json)
		return print_answer(&a);
	printf("%s: %s\n", args[0],
	       kill ? "its processes are killed; the node takes work again when they are gone"
		    : "counts as dead; its job goes on from its newest checkpoint");
	return CLI_OK;
}

const struct verb verb_resolve = {
	"resolve",
	"Nodes",
	"resolve STEP --kill|--gone [--node NAME]",
	"decide about a step on which controller and node disagree (after a restore)",
	"  STEP          as events and `moectl why` name it: j-7.a3 is attempt 3 of job j-7\n"
	"  --kill        the controller never stored it (step.unknown): end it\n"
	"  --gone        its agent does not know it any more (step.missing), and you saw that no "
	"process of it is left\n"
	"  --node NAME   on this node only\n",
	run_resolve,
	.examples = "  moectl resolve j-7.a2 --kill\n",
};
