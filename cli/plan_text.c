/* Plan documents for people (see plan_text.h). Nothing is wider than the terminal; lines of a
 * pipe are not broken. */
#include "cli/plan_text.h"

#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/buf.h"
#include "lib/plan/plan.h"

#define STAGES_SHOWN 10 /* the first ones and the last */
#define LABEL 10

static size_t columns_of(const char *s, size_t bytes)
{
	size_t n = 0;
	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* label, then text with its further lines below the first. */
static void print_beside(const struct cli *cli, int indent, const char *label, const char *text)
{
	size_t room = cli->width > indent + 20 ? (size_t)(cli->width - indent) : (size_t)-1,
	       used = 0;
	printf("%-*s", indent, label);
	while (*text) {
		size_t n = strcspn(text, " "), wide = columns_of(text, n);
		if (used && used + 1 + wide > room) {
			printf("\n%*s", indent, "");
			used = 0;
		} else if (used) {
			putchar(' ');
			used++;
		}
		fwrite(text, 1, n, stdout);
		used += wide;
		text += n + strspn(text + n, " ");
	}
	putchar('\n');
}

static void print_note(const struct cli *cli, const char *label, const char *text)
{
	print_beside(cli, LABEL, label, text);
}

/* Plans differ by hundredths. */
static const char *seconds(double s)
{
	return text_real(s, s < 100 ? 2 : s < 1000 ? 1 : 0);
}

/* ---- the table of a search: what all its plans have in common is printed below it */
static void fits_cell(struct table *t, struct json_object *plan)
{
	table_cell(t, "%s", json_object_get_boolean(js_get(plan, "fits")) ? "yes" : "NO");
}

static void step_cell(struct table *t, struct json_object *plan)
{
	table_cell(t, "%s", seconds(js_real(plan, "step_time_s.total")));
}

static void error_cell(struct table *t, struct json_object *plan)
{
	table_cell(t, "%.0f %%", js_real(plan, "error_pct"));
}

/* common: how it is printed when it is the same for all; NULL: always a column */
static const struct {
	struct column column;
	const char *common;
} plan_columns[] = {
	{ { ">TP", "parallelism.tp", CELL_INT }, "tp %s" },
	{ { ">PP", "parallelism.pp", CELL_INT }, "pp %s" },
	{ { ">VPP", "parallelism.vpp", CELL_INT }, "vpp %s" },
	{ { ">EP", "parallelism.ep", CELL_INT }, "ep %s" },
	{ { ">ETP", "parallelism.etp", CELL_INT }, "etp %s" },
	{ { ">CP", "parallelism.cp", CELL_INT }, "cp %s" },
	{ { ">DP", "parallelism.dp", CELL_INT }, "dp %s" },
	{ { "SHARDING", "parallelism.sharding" }, "sharding %s" },
	{ { ">MICRO", "batch.micro", CELL_INT }, "micro-batch %s" },
	{ { "RECOMPUTE", "recompute" }, "recompute %s" },
	{ { "SCHEDULE", "schedule" }, "schedule %s" },
	{ { ">GB", "memory_gb.total", CELL_REAL, 1 }, NULL },
	{ { "FITS", .cell = fits_cell }, NULL },
	{ { ">BUBBLE", "bubble", CELL_PERCENT }, NULL },
	{ { ">STEP S", .cell = step_cell }, NULL },
	{ { ">+/-", "error_pct", .cell = error_cell }, "step +/- %s %" },
	{ { ">TOK/S/GPU", "tokens_per_s_per_gpu", CELL_REAL, 0 }, NULL },
	{ { ">TFLOP/S/GPU", "tflops_per_gpu", CELL_REAL, 0 }, NULL },
	{ { ">MFU", "mfu", CELL_PERCENT }, NULL },
};

static bool same_everywhere(struct json_object *plans, const char *path)
{
	for (size_t i = 1; i < js_len(plans); i++)
		if (!json_object_equal(js_get(js_at(plans, 0), path),
				       js_get(js_at(plans, i), path)))
			return false;
	return true;
}

static void print_search(const struct cli *cli, struct json_object *plans)
{
	struct column columns[ELEMENTSOF(plan_columns)];
	_cleanup_(mo_buf_done) struct mo_buf common = { 0 };
	size_t n = 0;
	for (size_t i = 0; i < ELEMENTSOF(plan_columns); i++) {
		const char *how = plan_columns[i].common, *path = plan_columns[i].column.path;
		if (!how || !same_everywhere(plans, path)) {
			columns[n++] = plan_columns[i].column;
			continue;
		}
		struct json_object *v = js_get(js_at(plans, 0), path);
		mo_buf_str(&common, common.len ? ", " : "");
		const char *value = json_object_is_type(v, json_type_double)
					    ? text_real(json_object_get_double(v), 0)
					    : json_object_get_string(v);
		for (const char *at = how; *at; at++)
			if (mo_starts_with(at, "%s"))
				mo_buf_str(&common, value ? value : "-"), at++;
			else
				mo_buf_add(&common, at, 1);
	}
	print_table(cli, columns, n, plans);
	if (common.len)
		print_note(cli, "all with", common.data);
}

/* ---- one plan */
static void print_sizes(const struct cli *cli, const char *label, struct json_object *p)
{
	const char *recompute = js_str(p, "recompute");
	_cleanup_(mo_freep) char *text =
		mo_printf("tp %s  pp %s  vpp %s  ep %s  etp %s  cp %s  dp %s, %s, %s, micro-batch "
			  "%s, %s%s",
			  text_int(js_int(p, "parallelism.tp")),
			  text_int(js_int(p, "parallelism.pp")),
			  text_int(js_int(p, "parallelism.vpp")),
			  text_int(js_int(p, "parallelism.ep")),
			  text_int(js_int(p, "parallelism.etp")),
			  text_int(js_int(p, "parallelism.cp")),
			  text_int(js_int(p, "parallelism.dp")),
			  text_or(js_str(p, "parallelism.sharding")),
			  text_or(js_str(p, "schedule")), text_int(js_int(p, "batch.micro")),
			  mo_streq(recompute, "none") ? "nothing recomputed" : "recompute ",
			  mo_streq(recompute, "none") ? "" : text_or(recompute));
	print_note(cli, label, text);
}

static void print_verdict(const struct cli *cli, struct json_object *p)
{
	double total = js_real(p, "memory_gb.total"), capacity = js_real(p, "memory_gb.capacity"),
	       reserve = js_real(p, "memory_gb.reserve");
	bool fits = json_object_get_boolean(js_get(p, "fits"));
	_cleanup_(mo_freep) char *room =
		mo_printf("%s: %s of %s GB on the fullest GPU, %s GB of them held in reserve; %s "
			  "GB %s",
			  fits ? "yes" : "NO", text_real(total, 1), text_real(capacity, 1),
			  text_real(reserve, 1),
			  text_real(fits ? capacity - total : total - capacity, 1),
			  fits ? "stay free" : "are missing");
	_cleanup_(mo_freep) char *speed =
		mo_printf("%s s +/- %.0f %%: %s tokens/s/GPU, %s TFLOP/s/GPU, MFU %s, bubble %s",
			  seconds(js_real(p, "step_time_s.total")), js_real(p, "error_pct"),
			  text_real(js_real(p, "tokens_per_s_per_gpu"), 0),
			  text_real(js_real(p, "tflops_per_gpu"), 0),
			  text_percent(js_real(p, "mfu")), text_percent(js_real(p, "bubble")));
	print_note(cli, "fits", room);
	print_note(cli, "step", speed);
}

static const struct {
	const char *key, *name;
} memory_names[] = {
	{ "params", "parameters" },     { "grads", "gradients" },
	{ "optimizer", "optimizer" },   { "activations", "activations" },
	{ "comm", "exchange buffers" }, { "reserve", "reserve" },
};
static const struct {
	const char *key, *name;
} time_names[] = {
	{ "compute", "compute" },     { "a2a", "all-to-all" },  { "pp", "bubble and transfers" },
	{ "dp", "gradients" },        { "cp", "context" },      { "tp", "tensor" },
	{ "optimizer", "optimizer" }, { "launch", "launches" },
};

static void print_parts(const struct cli *cli, struct json_object *p)
{
	_cleanup_(mo_buf_done) struct mo_buf memory = { 0 }, time = { 0 };
	double step = js_real(p, "step_time_s.total");
	for (size_t i = 0; i < ELEMENTSOF(memory_names); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("memory_gb.%s", memory_names[i].key);
		double gb = js_real(p, path);
		mo_buf_printf(&memory, "%s%s %s", memory.len ? ", " : "", memory_names[i].name,
			      gb > 0 && gb < 0.05 ? "<0.1" : text_real(gb, 1));
	}
	mo_buf_str(&memory, " GB");
	for (size_t i = 0; i < ELEMENTSOF(time_names); i++) {
		_cleanup_(mo_freep) char *path = mo_printf("step_time_s.%s", time_names[i].key);
		double s = js_real(p, path);
		if (s > 0)
			mo_buf_printf(&time, "%s%s %s s (%s)", time.len ? ", " : "",
				      time_names[i].name, text_real(s, s < 0.1 ? 3 : 2),
				      text_percent(step > 0 ? s / step : MO_NONE_F));
	}
	print_note(cli, "memory", memory.data);
	print_note(cli, "time", time.data ? time.data : "-");
}

/* "ep 8 instead of 16: step +10.8 % (gradients +6.4 %), takes 42.3 GB" */
static const char *neighbour(const char *note)
{
	const char *colon = strstr(note, ": step "), *instead = strstr(note, " instead of ");
	return colon && instead && instead < colon ? colon : NULL;
}

static void print_notes(const struct cli *cli, struct json_object *notes)
{
	int widest = 0;
	for (size_t i = 0; i < js_len(notes); i++) {
		const char *text = json_object_get_string(js_at(notes, i)),
			   *colon = neighbour(text);
		if (colon)
			widest = MO_MAX(widest, (int)(colon - text));
		else
			print_note(cli, "note", text);
	}
	if (!widest)
		return;
	puts("\nother choices, each changed alone:");
	for (size_t i = 0; i < js_len(notes); i++) {
		const char *text = json_object_get_string(js_at(notes, i)),
			   *colon = neighbour(text);
		if (colon) {
			_cleanup_(mo_freep) char *change =
				mo_printf("  %.*s", (int)(colon - text), text);
			print_beside(cli, widest + 4, change, colon + 2);
		}
	}
}

static void print_stages(const struct cli *cli, struct json_object *stages)
{
	static const struct column columns[] = {
		{ ">STAGE", "stage", CELL_INT },
		{ ">LAYERS", "layers", CELL_INT },
		{ ">WEIGHTS", "parameters", CELL_SI },
		{ ">GB", "total", CELL_REAL, 1 },
		{ ">PARAMS", "params", CELL_REAL, 1 },
		{ ">GRADS", "grads", CELL_REAL, 1 },
		{ ">OPTIMIZER", "optimizer", CELL_REAL, 1 },
		{ ">ACT.", "activations", CELL_REAL, 1 },
		{ ">COMM", "comm", CELL_REAL, 1 },
		{ ">RESERVE", "reserve", CELL_REAL, 1 },
	};
	if (js_len(stages) < 2)
		return;
	puts("\nmemory by pipeline stage, GB (WEIGHTS: parameters of the whole stage):");
	struct json_object *shown = json_object_new_array();
	for (size_t i = 0; i < js_len(stages); i++)
		if (js_len(stages) <= STAGES_SHOWN || i < STAGES_SHOWN - 1 ||
		    i == js_len(stages) - 1)
			json_object_array_add(shown, json_object_get(js_at(stages, i)));
	print_table(cli, columns, ELEMENTSOF(columns), shown);
	json_object_put(shown);
	if (js_len(stages) > STAGES_SHOWN)
		printf("and %zu between them: --json has all\n", js_len(stages) - STAGES_SHOWN);
}

/* ---- scaling, a run that was dumped, failures */
static void scale_step_cell(struct table *t, struct json_object *row)
{
	table_cell(t, "%s", seconds(js_real(row, "step_time_s")));
}

static void print_scaling(const struct cli *cli, struct json_object *scaling,
			  struct json_object *best)
{
	static const struct column columns[] = {
		{ ">GPUS", "gpus", CELL_INT },
		{ ">EFFICIENCY", "efficiency", CELL_PERCENT },
		{ ">STEP S", .cell = scale_step_cell },
		{ ">MFU", "mfu", CELL_PERCENT },
		{ "PLAN", "note" },
	};
	static const struct column with_days[] = {
		{ ">GPUS", "gpus", CELL_INT },
		{ ">EFFICIENCY", "efficiency", CELL_PERCENT },
		{ ">STEP S", .cell = scale_step_cell },
		{ ">MFU", "mfu", CELL_PERCENT },
		{ ">DAYS", "days", CELL_REAL, 1 },
		{ "PLAN", "note" },
	};
	bool days = false;
	if (!js_len(scaling))
		return;
	for (size_t i = 0; i < js_len(scaling); i++)
		days = days || js_real(js_at(scaling, i), "days") != MO_NONE_F;
	_cleanup_(mo_freep) char *what =
		mo_printf("the same %s sequences of %s tokens a step on other sizes; efficiency: "
			  "tokens per second and GPU against the first size that fits, without "
			  "failures and stragglers",
			  text_int(js_int(best, "batch.global")),
			  text_int(js_int(best, "batch.seq")));
	putchar('\n');
	print_note(cli, "scaling", what);
	if (days)
		print_table(cli, with_days, ELEMENTSOF(with_days), scaling);
	else
		print_table(cli, columns, ELEMENTSOF(columns), scaling);
}

static void print_pipeline(const struct cli *cli, struct json_object *run, struct json_object *best)
{
	static const struct column columns[] = {
		{ ">FORWARD S", "forward_s", CELL_REAL, 4 },
		{ ">BACKWARD S", "backward_s", CELL_REAL, 4 },
		{ ">WGRAD S", "wgrad_s", CELL_REAL, 4 },
		{ ">IDLE", "bubble", CELL_PERCENT },
		{ ">MEMORY GB", "memory_gb", CELL_REAL, 2 },
	};
	if (!run)
		return;
	printf("\nthe run's iteration %s: %s s, bubble %s (planned %s s, %s); by pipeline rank:\n",
	       text_int(js_int(run, "iteration")), text_real(js_real(run, "iter_time_s"), 4),
	       text_percent(js_real(run, "bubble")), seconds(js_real(best, "step_time_s.total")),
	       text_percent(js_real(best, "bubble")));
	print_table(cli, columns, ELEMENTSOF(columns), js_get(run, "ranks"));
	if (js_str(run, "note"))
		print_note(cli, "note", js_str(run, "note"));
}

static void print_reliability(const struct cli *cli, struct json_object *r)
{
	struct json_object *notes = js_get(r, "notes"), *restarts = js_get(r, "restarts");
	_cleanup_(mo_freep) char *what =
		mo_printf("%s a day expected; checkpoint every %s (Young: %s); ETTR %s; spare "
			  "nodes %s, one is there for %s of failures",
			  text_real(js_real(r, "failures_per_day"), 3),
			  text_seconds(js_real(r, "checkpoint_every_s")),
			  text_seconds(js_real(r, "young_s")), text_percent(js_real(r, "ettr")),
			  text_int(js_int(r, "spare_nodes")),
			  text_percent(js_real(r, "spare_target")));
	_cleanup_(mo_buf_done) struct mo_buf buys = { 0 };
	putchar('\n');
	print_note(cli, "failures", what);
	if (js_int(r, "kept_nodes") != MO_NONE) {
		_cleanup_(mo_freep) char *kept =
			mo_printf("cluster.spares keeps %s beside it, whole nodes: %s GPUs, %s of "
				  "the GPU-seconds that the job takes",
				  text_int(js_int(r, "kept_nodes")),
				  text_int(js_int(r, "kept_gpus")),
				  text_percent(js_real(r, "kept_share")));

		print_note(cli, "spares", kept);
	}
	if (js_real(r, "checkpoint_gb") != MO_NONE_F) {
		_cleanup_(mo_freep) char *size =
			mo_printf("%s each: weights and optimizer states",
				  text_bytes((int64_t)(js_real(r, "checkpoint_gb") * 1e9)));

		print_note(cli, "saves", size);
	}
	for (size_t i = 1; i < js_len(restarts); i++) {
		struct json_object *row = js_at(restarts, i);
		mo_buf_printf(&buys,
			      i == 1 ? "one in %s instead of %s gains %s GPU hours a day (ETTR %s)"
				     : "; in %s%s %s (%s)",
			      text_seconds(js_real(row, "restart_s")),
			      i == 1 ? text_seconds(js_real(js_at(restarts, 0), "restart_s")) : "",
			      text_real(js_real(row, "gpu_hours_per_day"), 1),
			      text_percent(js_real(row, "ettr")));
	}
	if (buys.data && js_real(js_at(restarts, js_len(restarts) - 1), "gpu_hours_per_day") >= 0.1)
		print_note(cli, "restarts", buys.data);
	for (size_t i = 0; i < js_len(notes); i++)
		print_note(cli, "note", json_object_get_string(js_at(notes, i)));
}

/* GPUs on which as much memory as all of these want could be, by doubling. */
static long long enough_gpus(long long gpus, struct json_object *plan)
{
	double wanted = js_real(plan, "memory_gb.total") * (double)gpus,
	       capacity = js_real(plan, "memory_gb.capacity");
	long long n = gpus;
	while (n < PLAN_GPUS_MAX && wanted > capacity * (double)n)
		n *= 2;
	return MO_MIN(n, (long long)PLAN_GPUS_MAX);
}

/* What the reader can do with it. */
static void print_next(const struct cli *cli, const char *file, const struct recipe *r,
		       struct json_object *doc)
{
	struct json_object *best = js_at(js_get(doc, "plans"), 0);
	long long gpus = js_int(doc, "hardware.gpus");
	bool fits = json_object_get_boolean(js_get(best, "fits")),
	     standard_input = mo_streq(file, "-");
	const char *name = standard_input ? "RECIPE" : file;
	_cleanup_(mo_freep) char *text = NULL;
	if (!r->parallelism.automatic && fits)
		text = mo_printf("moectl submit %s starts it; --set parallelism=auto searches for "
				 "a faster one; --scale %lld,%lld shows more GPUs; --svg plan.svg "
				 "draws it",
				 name, 2 * gpus, 4 * gpus);
	else if (!r->parallelism.automatic)
		text = mo_printf("take what the note says, or let --set parallelism=auto search "
				 "for one that fits");
	else if (!fits)
		text = mo_printf("no sharding fits on %lld GPUs: try --gpus %lld, or another --gpu",
				 gpus, enough_gpus(gpus, best));
	else
		text = mo_printf("moectl submit %s takes the first plan; to write it down: "
				 "parallelism: {tp: %s, pp: %s, vpp: %s, ep: %s, etp: %s, cp: %s, "
				 "sharding: %s, schedule: %s}, micro: %s in batch, recompute: %s",
				 name, text_int(js_int(best, "parallelism.tp")),
				 text_int(js_int(best, "parallelism.pp")),
				 text_int(js_int(best, "parallelism.vpp")),
				 text_int(js_int(best, "parallelism.ep")),
				 text_int(js_int(best, "parallelism.etp")),
				 text_int(js_int(best, "parallelism.cp")),
				 text_or(js_str(best, "parallelism.sharding")),
				 text_or(js_str(best, "schedule")),
				 text_int(js_int(best, "batch.micro")),
				 text_or(js_str(best, "recompute")));
	putchar('\n');
	print_note(cli, "next", text);
}

#define SMALL 1e7 /* parameters: in billions that is nothing */

static char *model_text(struct json_object *model)
{
	double total = (double)js_int(model, "total_params"),
	       active = (double)js_int(model, "active_params"),
	       flops = js_real(model, "flops_per_token");

	if (total < SMALL)
		return mo_printf("%s parameters, %s active per token, %s FLOP per token",
				 text_si(total), text_si(active), text_si(flops));
	return mo_printf("%s billion parameters, %s billion active per token, %s GFLOP per token",
			 text_real(total / 1e9, 2), text_real(active / 1e9, 2),
			 text_real(flops / 1e9, 1));
}

void plan_text(const struct cli *cli, const char *file, const struct recipe *r,
	       struct json_object *doc)
{
	struct json_object *plans = js_get(doc, "plans"), *best = js_at(plans, 0);
	double tokens = (double)js_int(best, "batch.global") * (double)js_int(best, "batch.seq");
	_cleanup_(mo_freep) char *model = model_text(js_get(doc, "model"));
	_cleanup_(mo_freep) char *hardware =
		mo_printf("%s x %s, %s GB each", text_int(js_int(doc, "hardware.gpus")),
			  text_or(js_str(doc, "hardware.gpu")),
			  text_real(js_real(best, "memory_gb.capacity"), 1));
	_cleanup_(mo_freep) char *batch =
		mo_printf("%s sequences of %s tokens a step: %s tokens",
			  text_int(js_int(best, "batch.global")),
			  text_int(js_int(best, "batch.seq")), text_si(tokens));
	print_note(cli, "model", model);
	print_note(cli, "hardware", hardware);
	print_note(cli, "batch", batch);
	putchar('\n');
	if (js_len(plans) > 1) {
		print_search(cli, plans);
		puts("\nthe first plan:");
	}
	print_sizes(cli, "plan", best);
	print_verdict(cli, best);
	print_parts(cli, best);
	print_notes(cli, js_get(best, "notes"));
	print_stages(cli, js_get(best, "memory_stages"));
	print_scaling(cli, js_get(doc, "scaling"), best);
	print_pipeline(cli, js_get(doc, "measured_pipeline"), best);
	print_reliability(cli, js_get(doc, "reliability"));
	print_next(cli, file, r, doc);
}
