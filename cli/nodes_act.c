/* drain, undrain, ack, fence: what a person asks of a node. */
#include "cli/nodes_act.h"

#include <string.h>

#include "cli/client.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/wire/encode.h"

static int act(struct cli *cli, const char *node, const char *verb, const char *body,
	       const char *said)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(node);
	int r = client_call(cli, "POST", node, body, &a, "/v1/nodes/%s/%s", name, verb);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	if ((!strcmp(verb, "undrain") || !strcmp(verb, "ack")) && js_str(a.doc, "refuses"))
		said = "still gets no new work";
	printf("%s %s: %s\n", node, paint_state(cli, js_str(a.doc, "state")), said);
	if (js_str(a.doc, "refuses") && strcmp(verb, "drain"))
		printf("because    %s\ndo         %s\n", js_str(a.doc, "refuses"),
		       text_or(js_str(a.doc, "next")));
	return CLI_OK;
}

static int run_drain(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *reason = NULL, *when = "idle";
	const struct opt opts[] = { { "reason", 0, OPT_STR, &reason },
				    { "when", 0, OPT_STR, &when } };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (!reason || !*reason)
		return cli_misuse(cli, "--reason is missing; say why, others will read it");
	if (strcmp(when, "idle") && strcmp(when, "checkpoint") && strcmp(when, "now"))
		return cli_misuse(cli, "--when %s is none of idle, checkpoint, now", when);
	mo_buf_str(&body, "{\"reason\":");
	wire_string(reason, &body);
	mo_buf_printf(&body, ",\"when\":\"%s\"}", when);
	return act(cli, args[0], "drain", body.data,
		   "gets no new work; `moectl undrain` takes it back");
}

static int run_undrain(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool force = false;
	const struct opt opts[] = { { "force", 0, OPT_FLAG, &force } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	return r ? cli_stop(r)
		 : act(cli, args[0], "undrain", force ? "{\"force\":true}" : "{}",
		       "takes work again");
}

static int run_ack(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL };
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 2);

	if (r)
		return cli_stop(r);
	if (!args[1])
		return act(cli, args[0], "ack", "{\"learned\":true}",
			   "its checks are trusted: what they find cordons it");
	mo_buf_str(&body, "{\"check\":");
	wire_string(args[1], &body);
	mo_buf_str(&body, "}");
	return act(cli, args[0], "ack", body.data, "takes work again");
}

static int run_fence(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool confirmed = false;
	const struct opt opts[] = { { "confirmed", 0, OPT_FLAG, &confirmed } };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if (!confirmed)
		return cli_misuse(cli,
				  "--confirmed is missing: it states that %s is powered off; its "
				  "ranks count as dead and its jobs start elsewhere",
				  args[0]);
	_cleanup_(answer_done) struct answer seen = { 0 };
	_cleanup_(mo_freep) char *name = url_quote(args[0]);
	_cleanup_(mo_buf_done) struct mo_buf body = { 0 };
	if ((r = client_get(cli, args[0], &seen, "/v1/nodes/%s", name)))
		return r;
	/* of the boot that is shown now: a request that arrives late must not hit ranks of the
	 * next one */
	mo_buf_str(&body, "{\"confirmed\":true");
	if (js_str(seen.doc, "boot_id")) {
		mo_buf_str(&body, ",\"boot_id\":");
		wire_string(js_str(seen.doc, "boot_id"), &body);
	}
	mo_buf_str(&body, "}");
	return act(cli, args[0], "fence", body.data, "its ranks count as dead");
}

const struct verb verb_drain = {
	"drain",
	"Nodes",
	"drain NODE --reason TEXT [--when idle|checkpoint|now]",
	"give a node no new work, and take its jobs away",
	"  --reason TEXT                why; shown to everyone\n  --when idle|checkpoint|now   "
	"jobs there end by themselves (default), move after their next checkpoint, or stop now\n",
	run_drain,
	.examples = "  moectl drain node-3 --reason 'fan 2 is loud' --when checkpoint\n",
};

const struct verb verb_undrain = {
	"undrain",
	"Nodes",
	"undrain NODE [--force]",
	"give a drained node work again",
	"  --force   whatever its GPUs compute: where what they did has cordoned the node, they "
	"are "
	"tried\n            (check gpu.canary) before it takes work\n",
	run_undrain,
	.examples = "  moectl undrain node-3\n",
};
const struct verb verb_ack = {
	"ack",
	"Nodes",
	"ack NODE [CHECK]",
	"say that what a check found since the boot is known, so that it keeps no job away",
	"Without CHECK: the checks of a new node are trusted before its time of learning "
	"(health.learn) is over: what\nthose find that never met such hardware cordons it from now "
	"on, and what they have found does at once.\n"
	"With it: for what stays found until the next boot (an uncorrected error, lines of the "
	"kernel's log). It keeps jobs away\nagain when it counts more, and after the next boot. "
	"What is so now goes when it is repaired.\n",
	run_ack,
	.examples = "  moectl ack node-3 gpu.ras_ue\n",
};

const struct verb verb_fence = {
	"fence",
	"Nodes",
	"fence NODE --confirmed",
	"state that a silent node is off, so that its jobs may start elsewhere",
	"  --confirmed   you saw that it is\n"
	"Only when the node is powered off: two attempts of one job writing the same checkpoint "
	"destroy it.\n",
	run_fence,
	.examples = "  moectl fence node-3 --confirmed\n",
};
