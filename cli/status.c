/* status: one job on one screen. */
#include "cli/status.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

/* checkpoints that fit are told from here on down */
#define FEW_FIT 10

static void line(const char *label, const char *text)
{
	printf("%-12s %s\n", label, text);
}

static void print_times(struct json_object *j)
{
	const char *created = js_str(j, "created_at"), *started = js_str(j, "started_at"),
		   *ended = js_str(j, "ended_at");
	printf("%-12s created %s", "times", text_or(created));
	if (started)
		printf("   started %s", started);
	if (ended)
		printf("   ended %s", ended);
	putchar('\n');
}

static void print_nodes(struct json_object *j)
{
	struct json_object *nodes = js_get(j, "nodes");
	printf("%-12s %s", "ranks", text_int(js_int(j, "ranks")));
	for (size_t i = 0; i < js_len(nodes) && i < 8; i++)
		printf("%s%s", i ? ", " : " on ", json_object_get_string(js_at(nodes, i)));
	if (js_len(nodes) > 8)
		printf(" and %zu more nodes", js_len(nodes) - 8);
	putchar('\n');
}

static void next_step(const char *id, const char *state)
{
	if (!strcmp(state, "completed"))
		printf("\nnext: moectl report %s\n", id);
	else if (!strcmp(state, "running"))
		printf("\nnext: moectl watch %s, moectl logs %s -f\n", id, id);
	else if (!strcmp(state, "paused"))
		printf("\nnext: moectl resume %s\n", id);
	else
		printf("\nnext: moectl why %s, moectl logs %s\n", id, id);
}

/* What the planner made of `parallelism: auto`. */
static void print_chosen(struct json_object *c)
{
	static const char *const sizes[] = { "tp", "pp", "vpp", "ep", "etp", "cp", "dp", "micro" },
				 *const words[] = { "sharding", "schedule", "recompute",
						    "pipeline_layout" };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	if (!c)
		return;
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
		mo_buf_printf(&b, "%s%s %s", i ? " " : "", sizes[i], text_int(js_int(c, sizes[i])));
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (js_str(c, words[i]))
			mo_buf_printf(&b, ", %s %s", words[i], js_str(c, words[i]));
	mo_buf_str(&b, "; chosen by the planner");
	line("sharding", b.data);
}

/* Where a resume of a paused job begins, which is not where its ranks had come to. */
static void print_resume(struct json_object *j)
{
	int64_t at = js_int(j, "resumes_at"), came = js_int(j, "iteration");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (at == MO_NONE)
		return;
	mo_buf_printf(&b, "begins at iteration %s", text_int(at));
	mo_buf_str(&b, at > 0 ? ", its newest checkpoint" : ": no checkpoint of it is known");
	if (came != MO_NONE && came > at)
		mo_buf_printf(&b, "; it had come to %s", text_int(came));
	line("resume", b.data);
}

static void print_spares(struct json_object *j)
{
	struct json_object *spares = js_get(j, "spares");
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (js_int(j, "spares_wanted") == MO_NONE)
		return;
	mo_buf_printf(&b, "%zu of %s", js_len(spares), text_int(js_int(j, "spares_wanted")));
	for (size_t i = 0; i < js_len(spares); i++)
		mo_buf_printf(&b, ", %s%s", text_or(js_str(js_at(spares, i), "node")),
			      json_object_get_boolean(js_get(js_at(spares, i), "checked"))
				      ? " (checked)"
				      : "");
	line("spares", b.data);
}

static void print_labels(struct json_object *labels)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < js_len(labels); i++)
		mo_buf_printf(&b, "%s%s=%s", i ? ", " : "",
			      text_or(js_str(js_at(labels, i), "key")),
			      text_or(js_str(js_at(labels, i), "value")));
	if (b.len)
		line("labels", b.data);
}

/* Data that its attempts leave out. */
static void print_skips(struct json_object *skips)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t i = 0; i < js_len(skips); i++) {
		struct json_object *s = js_at(skips, i);

		mo_buf_printf(&b, "%s%s to ", i ? ", " : "iterations ",
			      text_int(js_int(s, "first")));
		mo_buf_str(&b, text_int(js_int(s, "last")));
	}
	if (b.len)
		line("left out", b.data);
}

static void print_job(struct cli *cli, struct json_object *j)
{
	const char *state = text_or(js_str(j, "state")), *reason = js_str(j, "reason"),
		   *id = text_or(js_str(j, "id"));
	int64_t checkpoint = js_int(j, "checkpoint.iteration");
	printf("%s  %s  %s  attempt %s, restarts %s\n", paint(cli, "1", id),
	       text_or(js_str(j, "name")), paint_state(cli, state), text_int(js_int(j, "attempt")),
	       text_int(js_int(j, "restarts")));
	_cleanup_(mo_freep) char *progress =
		progress_numbers(cli, j, cli->width ? MO_MAX(cli->width - 13, 1) : 0);
	line("progress", progress && *progress ? progress : "no iteration yet");
	if (js_real(j, "tflops_per_gpu") != MO_NONE_F)
		printf("%-12s %s TFLOP/s/GPU, MFU %s\n", "speed",
		       text_real(js_real(j, "tflops_per_gpu"), 2), text_percent(js_real(j, "mfu")));
	if (js_str(j, "slower.text"))
		line("slower", js_str(j, "slower.text"));
	if (js_str(j, "straggler.text"))
		line("straggler", js_str(j, "straggler.text"));
	if (js_int(j, "samples_left_out") > 0)
		printf("%-12s of %s iterations were left out: they came faster than 1,000 a second "
		       "for long\n",
		       "metrics", text_int(js_int(j, "samples_left_out")));
	print_skips(js_get(j, "skips"));
	if (!mo_streq(js_str(j, "data_order.kind"), "unknown") && js_str(j, "data_order.text"))
		line("data", js_str(j, "data_order.text"));
	if (js_str(j, "plan.text"))
		line("plan", js_str(j, "plan.text"));
	if (js_str(j, "plan.bubble_note"))
		line("bubble", js_str(j, "plan.bubble_note"));
	print_chosen(js_get(j, "plan.chosen"));
	if (js_str(j, "prepare.text"))
		line("prepare", js_str(j, "prepare.text"));
	print_spares(j);
	print_labels(js_get(j, "labels"));
	if (js_str(j, "image"))
		line("image", js_str(j, "image"));
	print_nodes(j);
	if (checkpoint != MO_NONE)
		printf("%-12s iteration %s%s  %s\n", "checkpoint", text_int(checkpoint),
		       json_object_get_boolean(js_get(j, "checkpoint.verified")) ? " verified" : "",
		       text_or(js_str(j, "checkpoint.path")));
	else
		line("checkpoint", "none yet");
	if (js_str(j, "checkpoint_late"))
		line("saves", js_str(j, "checkpoint_late"));
	if (js_int(j, "checkpoints_fit") != MO_NONE && js_int(j, "checkpoints_fit") < FEW_FIT)
		printf("%-12s %s free, %s more checkpoint%s of the newest one's size\n", "room",
		       text_bytes(js_int(j, "checkpoint_free_bytes")),
		       text_int(js_int(j, "checkpoints_fit")),
		       js_int(j, "checkpoints_fit") == 1 ? "" : "s");
	print_resume(j);
	if (js_str(j, "checkpoint_every.text"))
		line("interval", js_str(j, "checkpoint_every.text"));
	print_times(j);
	if (reason && *reason)
		line("reason", reason);
	next_step(id, state);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	if (r)
		return cli_stop(r);
	if ((r = client_job(cli, args[0], &id)) || (r = client_get(cli, id, &a, "/v1/jobs/%s", id)))
		return r;
	if (cli->json)
		return print_answer(&a);
	print_job(cli, a.doc);
	return CLI_OK;
}

const struct verb verb_status = {
	"status",
	"Look",
	"status JOB",
	"one job on one screen",
	NULL,
	run,
	.examples = "  moectl status j-7\n"
		    "  moectl status my-job     the newest job of that name\n",
};
