/* plan: sharding, memory, step time and reliability of a recipe, before a GPU is spent. Offline:
 * lib/plan, as the controller uses it. */
#include "cli/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/checkpoints.h"
#include "cli/options.h"
#include "cli/plan_svg.h"
#include "cli/plan_text.h"
#include "cli/planning.h"
#include "cli/recipe_check.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/plan/anchor.h"
#include "lib/plan/options.h"
#include "lib/plan/plan_desc.h"
#include "lib/recipe/catalogue.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define ANCHOR_BYTES_MAX (4u << 20)
#define ANCHOR_RUNS_MAX 500 /* each is planned, which takes milliseconds; 16 count */

MO_DEFINE_DONE(gpu_type)
MO_DEFINE_DONE(plan_doc)

static int read_scale(const char *list, int64_t sizes[static PLAN_SCALE_MAX], size_t *n)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	return plan_scale_parse(list, sizes, n, &err) < 0
		       ? cli_fail(CLI_USAGE, "plan: --scale: %s", mo_error_text(&err, -EINVAL))
		       : 0;
}

static int read_tokens(const char *text, double *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	return plan_tokens_parse(text, ret, &err) < 0
		       ? cli_fail(CLI_USAGE, "plan: --tokens: %s", mo_error_text(&err, -EINVAL))
		       : 0;
}

static int read_failures(const char *text, struct plan_failures *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	return plan_failures_parse(text, ret, &err) < 0
		       ? cli_fail(CLI_USAGE, "plan: --failures: %s", mo_error_text(&err, -EINVAL))
		       : 0;
}

static int read_fabric(const char *text, struct plan_fabric *ret)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	return plan_fabric_parse(text, ret, &err) < 0
		       ? cli_fail(CLI_USAGE, "plan: --fabric: %s", mo_error_text(&err, -EINVAL))
		       : 0;
}

/* Regular files are replaced as a whole; what else has the name (a device, a pipe, a link) is
 * written to and stays what it is. */
static int put_file(const char *path, const struct mo_buf *b)
{
	struct stat st;
	if (lstat(path, &st) < 0 || S_ISREG(st.st_mode))
		return mo_write_file(path, b->data, b->len, 0644, false);
	/* a pipe that nobody reads is an error, not a wait */
	_cleanup_(mo_closep) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fcntl(fd, F_SETFL, O_WRONLY) < 0)
		return -errno;
	return mo_write_all(fd, b->data, b->len);
}

static int write_svg(const char *path, struct json_object *doc, const struct timeline *lines,
		     size_t n_lines)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	plan_svg(doc, lines, n_lines, &b);
	int r = put_file(path, &b);
	return r < 0 ? cli_fail(CLI_FAILED, "plan: %s: %s; choose a place that can be written",
				path, strerror(-r))
		     : 0;
}

/* One run of the anchor file: its recipe is planned here, and what was measured is set against
 * that. */
static int anchor_run(struct cli *cli, const char *file, struct json_object *run,
		      struct plan_anchor *a)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	_cleanup_(plan_doc_done) struct plan_doc doc;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *recipe = js_get(run, "recipe");
	const struct plan_options o = { .top = 1, .figures = true };
	recipe_input_init(&in);
	mo_desc_init(&plan_doc_desc, &doc);
	if (!recipe)
		return cli_fail(CLI_USAGE,
				"%s: a run has no recipe; the file must be as `moectl report JOB "
				"--anchor` writes it",
				file);
	in.file = file;
	mo_buf_str(&in.text,
		   json_object_to_json_string_ext(recipe, JSON_C_TO_STRING_PLAIN |
								  JSON_C_TO_STRING_NOSLASHESCAPE));
	int r = recipe_input_check(cli, &in);
	if (r)
		return r;
	r = planning(&in, NULL, &o, &doc, &err);
	if (r < 0)
		return cli_fail_error(CLI_USAGE, file, &err, r);
	plan_anchor_add(a, &in.recipe, &doc, js_real(run, "measured.step_time_s"),
			js_real(run, "measured.memory_gb"));
	return 0;
}

static int anchor(struct cli *cli, const char *file, const struct recipe *recipe, const char *gpu,
		  struct plan_doc *doc)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	_cleanup_(plan_anchor_done) struct plan_anchor a = { 0 };
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *text = NULL;
	int r = mo_read_file(file, ANCHOR_BYTES_MAX, &b);
	if (r < 0)
		return cli_fail(CLI_USAGE,
				"%s: %s; give a file written by `moectl report JOB --anchor`", file,
				strerror(-r));
	if (wire_parse(b.data ? b.data : "", b.len, &text, &err) < 0)
		return cli_fail(CLI_USAGE,
				"%s: %s; give a file written by `moectl report JOB --anchor`", file,
				mo_error_text(&err, -EINVAL));
	struct json_object *runs = js_get(text, "runs");
	r = js_int(text, "anchor") != 1 || !js_len(runs)
		    ? cli_fail(CLI_USAGE,
			       "%s: no anchor file; expected {\"anchor\":1,\"runs\":[...]} as "
			       "written by `moectl report JOB --anchor`",
			       file)
		    : 0;
	if (!r && js_len(runs) > ANCHOR_RUNS_MAX)
		r = cli_fail(CLI_USAGE, "%s: %zu runs; more than %d are not read: keep the newest",
			     file, js_len(runs), ANCHOR_RUNS_MAX);
	for (size_t i = 0; i < js_len(runs) && !r; i++)
		r = anchor_run(cli, file, js_at(runs, i), &a);
	json_object_put(text);
	if (!r && a.n_far)
		fprintf(stderr,
			"moectl: plan: %zu of %zu runs in %s took more than 4 times what is "
			"planned for them, or less than a quarter: something else ran, it does not "
			"count\n",
			a.n_far, a.n_runs, file);
	if (!r && !plan_anchor_apply(&a, recipe, gpu ? gpu : recipe->gpu, doc))
		fprintf(stderr,
			"moectl: plan: no run in %s is of this GPU and precision; the plan is not "
			"calibrated\n",
			file);
	return r;
}

struct wish {
	const char *gpu, *svg, *scale, *anchor, *tokens, *failures, *fabric, *pp_dump, *alltoall,
		*reduce;
	int64_t gpus, top, pp_iteration;
	double token_budget;
	struct plan_failures faults;
	struct plan_fabric network;
	bool open, assumes;
};

/* Timelines: of the plan for the picture, of the run that was dumped for the picture and for
 * measured_pipeline. */
static int pipelines(const struct wish *w, const struct recipe *recipe,
		     const struct plan_options *o, const struct plan_doc *doc,
		     struct json_object *json)
{
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(gpu_type_done) struct gpu_type type;
	struct timeline lines[2] = { { .s = { 0 } } };
	size_t n = 0;
	mo_desc_init(&gpu_type_desc, &type);
	if (w->svg && gpu_type_load(doc->hardware.gpu, &type, &err) == 0 &&
	    timeline_of_plan(recipe, &type, &doc->plans[0], o, &lines[0], &err) == 0)
		n++;
	else
		timeline_done(&lines[0]);
	if (err.text && doc->plans[0].parallelism.pp > 1)
		fprintf(stderr, "moectl: plan: %s: no pipeline drawn: %s\n", w->svg,
			mo_error_text(&err, -EINVAL));
	mo_error_done(&err);
	int r = w->pp_dump ? timeline_read(w->pp_dump, w->pp_iteration, &lines[n], &err) : 0;
	if (r < 0)
		r = cli_fail_error(CLI_USAGE, "plan", &err, r);
	else if (w->pp_dump)
		json_object_object_add(json, "measured_pipeline", timeline_json(&lines[n++]));
	if (!r && w->svg)
		r = write_svg(w->svg, json, lines, n);
	for (size_t i = 0; i < n; i++)
		timeline_done(&lines[i]);
	return r;
}

/* An empty file has no rows either: plan_make() says so. */
static int read_measured(const char *file, struct mo_buf *ret)
{
	int r = file ? mo_read_file(file, ANCHOR_BYTES_MAX, ret) : 0;
	if (r < 0)
		return cli_fail(CLI_USAGE, "%s: %s; give the output of rccl-tests", file,
				strerror(-r));
	if (file && !ret->data)
		mo_buf_str(ret, "");
	return 0;
}

static int plan(struct cli *cli, const struct recipe_input *in, const struct wish *w)
{
	_cleanup_(plan_doc_done) struct plan_doc doc;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };
	int64_t sizes[PLAN_SCALE_MAX];
	size_t n_sizes = 0;
	mo_desc_init(&plan_doc_desc, &doc);
	int r = w->scale ? read_scale(w->scale, sizes, &n_sizes) : 0;
	if (r)
		return r;
	_cleanup_(mo_buf_done) struct mo_buf alltoall = { 0 }, reduce = { 0 };
	if ((r = read_measured(w->alltoall, &alltoall)) || (r = read_measured(w->reduce, &reduce)))
		return r;
	const struct plan_options o = { .alltoall = w->alltoall ? alltoall.data : NULL,
					.reduce = w->reduce ? reduce.data : NULL,
					.gpus = w->gpus,
					.top = w->top,
					.scale = sizes,
					.n_scale = n_sizes,
					.tokens = w->token_budget,
					.failures = w->faults,
					.fabric = w->network,
					.open = w->open };
	r = planning(in, w->gpu, &o, &doc, &err);
	if (r < 0)
		return cli_fail_error(CLI_USAGE, in->file, &err, r);
	if (w->anchor && (r = anchor(cli, w->anchor, &in->recipe, w->gpu, &doc)))
		return r;
	for (size_t i = 0; w->assumes && i < doc.n_plans; i++)
		mo_strs_add(&doc.plans[i].notes, &doc.plans[i].n_notes,
			    "the recipe names no GPU: planned for " PLAN_GPU_ASSUMED
			    "; another one: cluster.gpu, --gpu, over REST ?gpu=");
	for (size_t i = 0; i < doc.n_plans; i++) {
		_cleanup_(mo_freep) char *misfit =
			checkpoints_misfit(in, &doc.plans[i].parallelism);
		if (misfit)
			mo_strs_add(&doc.plans[i].notes, &doc.plans[i].n_notes, misfit);
	}
	wire_encode(&plan_doc_desc, &doc, &b);
	struct json_object *json = json_tokener_parse(b.data);
	if (!cli->json)
		visible_json(json);
	r = pipelines(w, &in->recipe, &o, &doc, json);
	if (!r && cli->json)
		print_json_doc(json);
	else if (!r)
		plan_text(cli, in->file, &in->recipe, json);
	json_object_put(json);
	return r;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	struct wish w = { 0 };
	struct strs sets = { 0 };
	const struct opt opts[] = {
		{ "set", 0, OPT_STRS, &sets },
		{ "gpus", 0, OPT_INT, &w.gpus, 1, PLAN_GPUS_MAX },
		{ "gpu", 0, OPT_STR, &w.gpu },
		{ "top", 0, OPT_INT, &w.top, 1, 1000 },
		{ "svg", 0, OPT_STR, &w.svg },
		{ "scale", 0, OPT_STR, &w.scale },
		{ "anchor", 0, OPT_STR, &w.anchor },
		{ "alltoall", 0, OPT_STR, &w.alltoall },
		{ "reduce", 0, OPT_STR, &w.reduce },
		{ "tokens", 0, OPT_STR, &w.tokens },
		{ "failures", 0, OPT_STR, &w.failures },
		{ "fabric", 0, OPT_STR, &w.fabric },
		{ "open", 0, OPT_FLAG, &w.open },
		{ "pp-dump", 0, OPT_STR, &w.pp_dump },
		{ "pp-iteration", 0, OPT_INT, &w.pp_iteration, 1, INT32_MAX },
	};
	_cleanup_(recipe_input_done) struct recipe_input in;
	_cleanup_(mo_freep) char *gpus = NULL;
	recipe_input_init(&in);
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	for (size_t i = 0; i < sets.n && !r; i++)
		r = recipe_input_set(cli, &in, sets.items[i]);
	free(sets.items);
	if (w.gpus)
		recipe_input_option(&in, "--gpus", "cluster.gpus",
				    gpus = mo_printf("%lld", (long long)w.gpus));
	if (w.gpu)
		recipe_input_option(&in, "--gpu", "cluster.gpu", w.gpu);
	if (!r && w.tokens)
		r = read_tokens(w.tokens, &w.token_budget);
	if (!r && w.failures)
		r = read_failures(w.failures, &w.faults);
	if (!r && w.fabric)
		r = read_fabric(w.fabric, &w.network);
	if (r)
		return cli_stop(r);
	if ((r = recipe_input_read(&in, args[0])) || (r = recipe_input_check(cli, &in)))
		return r;
	w.assumes = !in.recipe.gpu && in.recipe.model;
	if (w.assumes)
		mo_str_set(&in.recipe.gpu, PLAN_GPU_ASSUMED);
	return plan(cli, &in, &w);
}

const struct verb verb_plan = {
	"plan",
	"Prepare",
	"plan RECIPE [--set key=value]... [--gpus N] [--gpu TYPE] [--top K] [--open] [--scale "
	"LIST] [--tokens N] [--failures LIST] [--fabric LIST] [--anchor FILE] [--alltoall FILE] "
	"[--reduce FILE] [--svg FILE] [--pp-dump DIR [--pp-iteration N]]",
	"sharding, memory, step time, failures: before a GPU is spent",
	"  --set key=value   any value of the recipe, as in submit; parallelism=auto searches\n  "
	"--gpus N          instead of cluster.gpus\n"
	"  --gpu TYPE        instead of cluster.gpu: mi300x, mi325x, mi350x, mi355x, ... "
	"(" PLAN_GPU_ASSUMED " when the recipe names none)\n"
	"  --top K           plans that a search lists (5)\n  --open            search all "
	"schedules and shardings that exist, not only those that engines have flags for\n"
	"  --scale LIST      the same global batch on other sizes: 64,128,256\n  --tokens N        "
	"and the days that they take for 15T, 500B or 2.5e12 tokens\n"
	"  --failures LIST   any of rate=6.5 (per 1000 node-days), restart=5m, repair=3d, save=30s "
	"(that it\n                    blocks), spares=95% (of failures find one)\n"
	"  --fabric LIST     leaf=256 (GPUs below a leaf switch), spine=2 (times more bandwidth "
	"below a leaf\n                    than above it); without: switches lose none\n"
	"  --anchor FILE     calibrate by measured runs: `moectl report --anchor` writes the "
	"controller's,\n                    `moectl report JOB --anchor` one\n"
	"  --alltoall FILE   bandwidth between nodes as rccl-tests' alltoall_perf printed it, "
	"instead of the\n                    catalogue's\n  --reduce FILE     the same of "
	"all_reduce_perf\n"
	"  --svg FILE        a picture of memory, step time and every micro-batch of the pipeline\n"
	"  --pp-dump DIR     measure a run that Primus dumped (dump_pp_data), draw it below the "
	"plan's pipeline\n  --pp-iteration N  of the dump (its last)\n"
	"RECIPE - is standard input. The step is off by at most +/- in four of five runs.\n",
	run,
	.examples = "  moectl plan r.yaml                                        does it fit, how "
		    "fast is it, why\n"
		    "  moectl plan r.yaml --set parallelism=auto                 the best "
		    "shardings, what "
		    "others would cost\n"
		    "  moectl plan r.yaml --set parallelism.cp=2 --gpu mi325x    what if\n"
		    "  moectl plan r.yaml --scale 512,1024,2048 --tokens 15T     more GPUs: "
		    "efficiency, days\n",
};
