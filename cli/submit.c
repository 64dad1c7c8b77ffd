/* submit: recipe -> [local check] -> POST /v1/jobs with an Idempotency-Key of its own, so that a
 * lost answer never makes a second job. */
#include "cli/submit.h"

#include <errno.h>
#include <json-c/json.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/bind/preview.h"
#include "cli/dryrun.h"
#include "cli/experiment.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/planning.h"
#include "cli/recipe.h"
#include "cli/recipe_check.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "cli/watch.h"
#include "daemon/core/rules/dryrun.h"
#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/argv.h"
#include "lib/wire/dryrun.h"
#include "lib/wire/encode.h"

/* the connection broke after it stood: the controller restarts */
#define LOST_LIMIT_US (30 * 1000000LL)
#define REFUSED_LIMIT_US (2 * 1000000LL) /* nobody listened from the start */
#define AGAIN_MS 200

/* Lines that the controller names are those of the text that was sent: the file's only where
 * nothing was set. */
static int judge(struct cli *cli, const struct recipe_input *in, const struct answer *a)
{
	struct json_object *errors = js_get(a->doc, "errors");

	for (size_t i = 0; recipe_input_changed(in) && i < js_len(errors); i++) {
		json_object_object_del(js_at(errors, i), "line");
		json_object_object_del(js_at(errors, i), "column");
	}
	return client_judge(cli, in->file, a);
}

/* Sends until there is an answer; the same key makes repeats harmless. The controller checks
 * what `moectl validate` checks, so the recipe is checked here only when nobody answers:
 * whoever has two things to mend hears of the recipe first. */
int submit_send(struct cli *cli, struct recipe_input *in, const char *text, struct answer *a)
{
	_cleanup_(mo_freep) char *key = mo_random_hex(16),
				 *header = mo_printf("Idempotency-Key: %s", key);
	const char *const headers[] = { header, NULL };
	const struct request q = { .method = "POST",
				   .path = "/v1/jobs",
				   .body = text,
				   .n = strlen(text),
				   .content_type = "application/yaml",
				   .headers = headers,
				   .timeout_ms = 60000 };
	int64_t began = mo_clock_boot_us();
	bool lost = false;
	for (;;) {
		int r = client_send(cli, &q, a);
		if (r)
			return r;
		if (!a->status && !in->checked && (r = recipe_input_check(cli, in)))
			return r;
		if (!lost && client_wrong_scheme(cli, a))
			return client_judge(cli, in->file, a);
		lost = lost || a->error == -ECONNRESET;
		int64_t limit = lost                        ? LOST_LIMIT_US
				: a->error == -ECONNREFUSED ? REFUSED_LIMIT_US
							    : 0;
		if (a->status || mo_clock_boot_us() - began > limit)
			return judge(cli, in, a);
		if (interrupt_wait(AGAIN_MS))
			return cli_fail(CLI_FAILED,
					"submit: interrupted before the controller answered; "
					"`moectl list` shows whether it took the job");
	}
}

MO_DEFINE_DONE(submit)
MO_DEFINE_DONE(state)

/* The planner's word when the recipe names a model and a GPU, NULL otherwise or when the sizes
 * that it gives cannot be planned. What it left to the planner is written into `in`, as the
 * controller does: without a plan it cannot go on. */
static int plan_of(struct recipe_input *in, char **ret, struct mo_error *err)
{
	struct plan_doc doc;
	struct mo_buf b = { 0 };
	*ret = NULL;
	if (!in->recipe.model || !in->recipe.gpu)
		return 0;
	mo_desc_init(&plan_doc_desc, &doc);
	int r = planning_choose(in, &doc, err);
	if (r >= 0) {
		wire_encode(&plan_doc_desc, &doc, &b);
		*ret = mo_buf_take(&b);
	}
	mo_desc_done(&plan_doc_desc, &doc);
	return in->recipe.parallelism.automatic ? r : 0;
}

static const char *login_name(void)
{
	const struct passwd *pw = getpwuid(geteuid());
	return pw ? pw->pw_name : NULL;
}

static int add_node(void *arg, const struct nodeinfo *info, const struct dryrun_rank *ranks,
		    size_t n, struct mo_error *err)
{
	struct mo_buf *b = arg;

	wire_dryrun_ranks(ranks, n, b->data[b->len - 1] == '[', b);
	return 0;
}

static int offline(struct recipe_input *in, struct mo_buf *ret)
{
	_cleanup_(submit_done) struct submit spec;
	_cleanup_(mo_freep) char *plan = NULL;
	const struct dryrun_walk walk = {
		.ranks = preview_ranks, .node = add_node, .arg = ret, .to = MO_NONE
	};
	_cleanup_(state_done) struct state empty;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	mo_desc_init(&submit_desc, &spec);
	mo_desc_init(&state_desc, &empty);
	int r = plan_of(in, &plan, &err);
	if (r >= 0)
		r = recipe_for_user(&in->recipe, login_name(), &err);
	if (r < 0)
		return cli_fail_error(CLI_USAGE, in->file, &err, r);
	mo_error_done(&err);
	r = recipe_input_spec(in, &spec, &err);
	wire_dryrun_head(spec.recipe.name, plan, spec.engine.resume, spec.engine.n_resume, ret);
	if (r >= 0)
		r = dryrun_walk(&empty, &spec, &walk, &err);
	if (r < 0)
		return cli_fail_error(CLI_FAILED, in->file, &err, r);
	wire_dryrun_end(dryrun_placed_names[r], ret);
	return 0;
}

static void print_resume_args(struct json_object *words)
{
	if (js_len(words))
		printf("a resume adds:");
	for (size_t i = 0; i < js_len(words); i++)
		printf(" %s%s", json_object_get_string(js_at(words, i)),
		       i + 1 == js_len(words) ? "\n" : "");
}

/* engine.container, which moectl itself has read. */
static void print_image(const struct recipe_container *c)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	if (!c)
		return;
	mo_buf_printf(&b, "in the image %s, whose own variables come before those below", c->image);
	for (size_t i = 0; i < c->n_mounts; i++)
		mo_buf_printf(&b, "%s%s:%s%s", i ? ", " : "; it sees ", c->mounts[i].source,
			      c->mounts[i].target, c->mounts[i].readonly ? ":ro" : "");
	_cleanup_(mo_freep) char *text = visible(b.data);

	puts(text);
}

/* Whoever reads on must know whether these are his machines. */
static void print_placed(const struct cli *cli, struct json_object *doc, bool is_offline)
{
	const char *on = js_str(doc, "placed_on");
	bool example = mo_streq(on, dryrun_placed_names[DRYRUN_EXAMPLE]);
	bool idle = mo_streq(on, dryrun_placed_names[DRYRUN_IDLE]);

	printf("%s: %zu ranks%s; nothing was started\n",
	       paint(cli, "1", text_or(js_str(doc, "name"))), js_len(js_get(doc, "ranks")),
	       example ? " on an EXAMPLE, not on your machines"
	       : idle  ? " on these nodes when nothing else runs there"
		       : "");
	if (example)
		printf("  %s: the GPUs, CPUs, NUMA nodes and NICs\n"
		       "  below, and the variables that hang on them, are invented; commands and "
		       "all other\n"
		       "  variables are those of a launch\n",
		       is_offline ? "no controller was asked" : "no nodes there can take the job");
	puts("  the job's number, HOME, MASTER_PORT and paths in /run/moe-agent are examples: only "
	     "the\n"
	     "  launch knows them");
}

static void print_dryrun(const struct cli *cli, const struct recipe_input *in,
			 struct json_object *doc, bool is_offline)
{
	static const struct column columns[] = {
		{ ">RANK", "rank", CELL_INT },
		{ "NODE", "node" },
		{ ">LOCAL", "local_rank", CELL_INT },
		{ ">GPU", "gpu", CELL_INT },
		{ ">NUMA", "numa_node", CELL_INT },
		{ "CPUS", "cpus" },
		{ "NIC", "nic" },
	};
	struct json_object *ranks = js_get(doc, "ranks"),
			   *plan = js_at(js_get(doc, "plan.plans"), 0);
	print_placed(cli, doc, is_offline);
	if (plan)
		printf("plan: %s GB of %s GB per GPU%s, step %s, MFU %s\n",
		       text_real(js_real(plan, "memory_gb.total"), 1),
		       text_real(js_real(plan, "memory_gb.capacity"), 1),
		       json_object_get_boolean(js_get(plan, "fits")) ? "" : " (does NOT fit)",
		       text_seconds(js_real(plan, "step_time_s.total")),
		       text_percent(js_real(plan, "mfu")));
	if (in->recipe.spares > 0)
		printf("beside them %lld spare node%s that nobody else gets, as far as whole nodes "
		       "are free\n",
		       (long long)in->recipe.spares, in->recipe.spares == 1 ? "" : "s");
	print_image(in->recipe.engine.container);
	print_resume_args(js_get(doc, "resume_args"));
	dryrun_print(cli, ranks);
	print_table(cli, columns, ELEMENTSOF(columns), ranks);
}

static int dry_run(struct cli *cli, struct recipe_input *in, const char *text)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	const struct request q = { .method = "POST",
				   .path = "/v1/jobs?dry_run=1",
				   .body = text,
				   .n = strlen(text),
				   .content_type = "application/yaml",
				   .timeout_ms = 60000 };
	int r = client_send(cli, &q, &a);
	if (r)
		return r;
	bool is_offline = a.status == 0;
	if (is_offline) {
		mo_buf_reset(&a.body);
		if ((r = offline(in, &a.body)))
			return r;
		a.doc = json_tokener_parse(a.body.data);
		if (!cli->json)
			visible_json(a.doc);
		if (!cli->json)
			fprintf(stderr, "moectl: submit: no controller at %s; planned without it\n",
				client_url(cli));
	} else if ((r = judge(cli, in, &a))) {
		return r;
	}
	if (cli->json)
		return print_answer(&a);
	print_dryrun(cli, in, a.doc, is_offline);
	return CLI_OK;
}

/* The warning without its "LINE:COLUMN: ". */
static const char *without_place(const char *warning)
{
	static const char digits[] = "0123456789";
	size_t line = strspn(warning, digits);
	size_t end =
		line && warning[line] == ':' ? line + 1 + strspn(warning + line + 1, digits) : 0;
	return end > line + 1 && mo_starts_with(warning + end, ": ") ? warning + end + 2 : warning;
}

/* Has the local check said it, at a place of the file or as that of a value that was set? */
static bool said_here(const struct recipe_input *in, const char *text)
{
	size_t n = strlen(text);
	for (size_t i = 0; i < in->n_warnings; i++) {
		size_t own = strlen(in->warnings[i]);
		const char *end = own >= n ? in->warnings[i] + own - n : "";
		if (mo_streq(end, text) &&
		    (own == n || (own > n + 1 && mo_starts_with(end - 2, ": "))))
			return true;
	}
	return false;
}

/* What only the controller can know: the local check has printed the rest. Its places are those
 * of the text that was sent (judge). */
static void print_warnings(const struct recipe_input *in, struct json_object *list)
{
	for (size_t i = 0; i < js_len(list); i++) {
		const char *text = json_object_get_string(js_at(list, i)),
			   *message = without_place(text);
		if (!said_here(in, message))
			recipe_print_warning(in->file, recipe_input_changed(in) ? message : text);
	}
}

static int submit(struct cli *cli, struct recipe_input *in, const char *text, bool watch)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = submit_send(cli, in, text, &a);
	if (r)
		return r;
	const char *id = js_str(a.doc, "id");
	if (!id)
		return cli_fail(CLI_FAILED,
				"controller %s: its answer names no job; is something else "
				"listening there?",
				client_url(cli));
	if (cli->json)
		print_answer(&a);
	else
		printf("%s  %s  %s\n", paint(cli, "1", id), text_or(js_str(a.doc, "name")),
		       paint_state(cli, js_str(a.doc, "state")));
	fflush(stdout);
	print_warnings(in, js_get(a.doc, "warnings"));
	if (watch)
		return watch_job(cli, id);
	if (cli->live && !cli->json)
		printf("next: moectl watch %s\n", id);
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *name = NULL;
	int64_t priority = MO_NONE;
	bool watch = false, dry = false;
	struct strs sets = { 0 };
	const struct opt opts[] = {
		{ "set", 0, OPT_STRS, &sets },
		{ "name", 0, OPT_STR, &name },
		{ "priority", 0, OPT_INT, &priority, 0, 100 },
		{ "watch", 'w', OPT_FLAG, &watch },
		{ "dry-run", 0, OPT_FLAG, &dry },
	};
	_cleanup_(recipe_input_done) struct recipe_input in;
	_cleanup_(mo_freep) char *text = NULL, *number = NULL;
	recipe_input_init(&in);
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	for (size_t i = 0; i < sets.n && !r; i++)
		r = recipe_input_set(cli, &in, sets.items[i]);
	free(sets.items);
	if (name)
		recipe_input_option(&in, "--name", "name", name);
	if (priority != MO_NONE)
		recipe_input_option(&in, "--priority", "priority",
				    (number = mo_printf("%lld", (long long)priority)));
	if (r)
		return cli_stop(r);
	if ((r = recipe_input_read(&in, args[0])))
		return r;
	/* An error in a value that --set gave is printed in its own words, which the controller
	 * does not know. */
	if ((dry || in.n_sets || recipe_input_has_experiment(&in)) &&
	    (r = recipe_input_check(cli, &in)))
		return r;
	if ((r = places_check(cli, &in)))
		return r;
	text = recipe_input_document(cli, &in);
	if (!text)
		return CLI_USAGE;
	return dry ? dry_run(cli, &in, text) : submit(cli, &in, text, watch);
}

const struct verb verb_submit = {
	"submit",
	"Prepare",
	"submit RECIPE [--set key=value]... [--name N] [--priority P] [--watch] [--dry-run]",
	"check a recipe and train it",
	"  --set key=value   replaces a value of the recipe: --set batch.micro=4 --set "
	"checkpoint.dir=/ckpt/a\n"
	"  --name N          the same as --set name=N\n"
	"  --priority P      0 to 100 (50)\n"
	"  --watch           follow it; exit status 0 completed, 10 failed, 11 cancelled\n"
	"  --dry-run         show the exact command and environment of every rank, nodes and CPUs; "
	"start nothing (works without a controller)\n",
	run,
	.examples =
		"  moectl submit recipe.yaml --watch\n"
		"  moectl submit recipe.yaml --set steps=200 --set batch.micro=2 --name trial\n"
		"  moectl submit recipe.yaml --dry-run     what each rank would be started with\n",
};
