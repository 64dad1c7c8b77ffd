/* classify: what kind of failure is in this log?
 * Offline: the same rules and code as the controller's. */
#include "cli/classify.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "agent/core/text/lines.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/recipe.h"
#include "cli/recipe_check.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "daemon/core/rules/classify.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/failures_file.h"
#include "lib/wire/encode.h"

#define LOG_MAX ((size_t)4 << 30)

static int read_log(const char *path, struct mo_buf *b)
{
	int r = mo_read_file(path, LOG_MAX, b);

	if (r < 0)
		return cli_fail(CLI_USAGE, "classify: %s: %s; give a readable log file", path,
				strerror(-r));
	return 0;
}

/* "1", "exit:1" or "signal:9". */
static int read_exit(const struct cli *cli, const char *word, struct classify_input *in)
{
	bool is_signal = mo_starts_with(word, "signal:"), is_exit = mo_starts_with(word, "exit:");
	const char *number = is_signal || is_exit ? strchr(word, ':') + 1 : word;
	if (mo_parse_i64(number, is_signal ? 1 : 0, is_signal ? 64 : 255,
			 is_signal ? &in->signal : &in->code) < 0)
		return cli_misuse(cli,
				  "--exit %s is neither an exit code (0 to 255) nor signal:N (1 to "
				  "64)",
				  word);
	return 0;
}

MO_DEFINE_DONE(failure_rules)
MO_DEFINE_DONE(failure_verdict)

static int decide(const struct classify_input *in, struct failure_verdict *ret)
{
	_cleanup_(failure_rules_done) struct failure_rules rules;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(classifier_freep) struct classifier *c = NULL;
	mo_desc_init(&failure_rules_desc, &rules);
	int r = failures_load(false, &rules, &err);
	if (r >= 0)
		r = classifier_new(&rules, &c, &err);
	if (r < 0)
		return cli_fail_error(CLI_FAILED, "classify", &err, r);
	classify(c, in, ret);
	return CLI_OK;
}

static void print_verdict(const struct cli *cli, const struct failure_verdict *v)
{
	printf("%s", paint(cli, v->class == FAIL_OK ? "32" : "33", failure_class_names[v->class]));
	if (v->first_rank != MO_NONE)
		printf("  first rank %lld", (long long)v->first_rank);
	printf("%s%s\n", v->why ? "  " : "", v->why ? v->why : "");
	for (size_t i = 0; i < v->n_evidence; i++) {
		_cleanup_(mo_freep) char *line =
			cli->raw ? mo_strdup(v->evidence[i].text) : visible(v->evidence[i].text);
		printf("  %s%s%s  %s\n", v->evidence[i].source,
		       v->evidence[i].line == MO_NONE ? "" : ":",
		       v->evidence[i].line == MO_NONE ? "" : text_int(v->evidence[i].line), line);
	}
}

/* ---- what the rules for printed lines make of it ---- */

struct heard {
	struct lines *lines;
	int64_t line, steps;
	/* of each rule: lines that said something, the first of those, the first given up */
	int64_t *matched, *first, *gave_up_at;
	int64_t samples;
	struct sample last;
};

static void on_fact(void *arg, const struct line_fact *f)
{
	struct heard *h = arg;
	if (h->matched[f->rule]++ == 0)
		h->first[f->rule] = h->line;
	if (f->kind != LINE_SAMPLE)
		return;
	h->samples++;
	h->last = f->sample;
}

static void hear(struct heard *h, size_t n_rules, const char *text, size_t n)
{
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = p;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		lines_feed(h->lines, p, (size_t)(stop - p), 1, on_fact, h);
		for (size_t i = 0; i < n_rules; i++)
			if (h->gave_up_at[i] == MO_NONE && lines_gave_up_of(h->lines, i) > 0)
				h->gave_up_at[i] = h->line;
		h->line += stop < end && *stop == '\n';
		p = stop + 1;
	}
}

static struct json_object *number(int64_t v)
{
	return v == MO_NONE ? NULL : json_object_new_int64(v);
}

static struct json_object *heard_doc(const struct heard *h, const struct engine *e)
{
	struct json_object *doc = json_object_new_object(), *rules = json_object_new_array();
	for (size_t i = 0; i < e->n_rules; i++) {
		struct json_object *o = json_object_new_object();
		const struct line_rule *r = &e->rules[i];
		json_object_object_add(o, "rule", json_object_new_int64((int64_t)i + 1));
		json_object_object_add(o, "kind", json_object_new_string(line_kind_names[r->kind]));
		json_object_object_add(o, "pattern",
				       json_object_new_string(r->begin ? r->begin : r->pattern));
		json_object_object_add(o, "matched", json_object_new_int64(h->matched[i]));
		json_object_object_add(o, "first", number(h->matched[i] ? h->first[i] : MO_NONE));
		json_object_object_add(o, "gave_up",
				       json_object_new_int64(lines_gave_up_of(h->lines, i)));
		json_object_object_add(o, "gave_up_at", number(h->gave_up_at[i]));
		json_object_array_add(rules, o);
	}
	json_object_object_add(doc, "rules", rules);
	json_object_object_add(doc, "samples", json_object_new_int64(h->samples));
	json_object_object_add(doc, "last",
			       h->samples ? wire_to_json(&sample_desc, &h->last) : NULL);
	return doc;
}

/* metrics.lines of the recipe and the lines of its engine, tried on the log; NULL with *ret_status
 * when the recipe is none. */
static struct json_object *try_lines(struct cli *cli, const char *recipe, const struct mo_buf *log,
				     int *ret_status)
{
	_cleanup_(recipe_input_done) struct recipe_input in;
	_cleanup_(lines_freep) struct lines *lines = NULL;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	struct json_object *doc = NULL;
	recipe_input_init(&in);
	if ((*ret_status = recipe_input_read(&in, recipe)) ||
	    (*ret_status = recipe_input_check(cli, &in)))
		return NULL;
	size_t n = in.engine.n_rules;
	int r = lines_new(in.engine.rules, n, &lines, &err);
	if (r < 0) {
		*ret_status = cli_fail_error(CLI_USAGE, recipe, &err, r);
		return NULL;
	}
	lines_steps(lines, in.recipe.steps);
	struct heard h = { .lines = lines,
			   .line = 1,
			   .matched = mo_alloc_array(n + 1, sizeof(int64_t)),
			   .first = mo_alloc_array(n + 1, sizeof(int64_t)),
			   .gave_up_at = mo_alloc_array(n + 1, sizeof(int64_t)) };
	for (size_t i = 0; i < n; i++)
		h.gave_up_at[i] = MO_NONE;
	hear(&h, n, log->data ? log->data : "", log->len);
	doc = heard_doc(&h, &in.engine);
	free(h.matched);
	free(h.first);
	free(h.gave_up_at);
	return doc;
}

static void print_lines(struct json_object *doc)
{
	struct json_object *rules = js_get(doc, "rules"), *last = js_get(doc, "last");
	printf("%s samples", text_int(js_int(doc, "samples")));
	if (last) {
		printf("; the last: iteration %s, loss %s", text_int(js_int(last, "iteration")),
		       text_real(js_real(last, "loss"), 4));
		printf(", step %s ms, MFU %s\n", text_real(js_real(last, "step_ms"), 2),
		       text_percent(js_real(last, "mfu")));
	} else {
		puts("");
	}
	for (size_t i = 0; i < js_len(rules); i++) {
		struct json_object *o = js_at(rules, i);
		if (js_int(o, "matched") > 0)
			printf("  rule %s (%s): %s times, first on line %s: %s\n",
			       text_int(js_int(o, "rule")), js_str(o, "kind"),
			       text_int(js_int(o, "matched")), text_int(js_int(o, "first")),
			       js_str(o, "pattern"));
		if (js_int(o, "gave_up") > 0)
			printf("  rule %s backtracked too much on %s lines, first on line %s: %s\n",
			       text_int(js_int(o, "rule")), text_int(js_int(o, "gave_up")),
			       text_int(js_int(o, "gave_up_at")), js_str(o, "pattern"));
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *log = NULL, *kernel = NULL, *status = NULL, *recipe = NULL;
	struct json_object *lines = NULL;
	const struct opt opts[] = { { "recipe", 0, OPT_STR, &recipe },
				    { "log", 0, OPT_STR, &log },
				    { "kernel", 0, OPT_STR, &kernel },
				    { "exit", 0, OPT_STR, &status } };
	_cleanup_(mo_buf_done) struct mo_buf log_text = { 0 }, kernel_text = { 0 };
	_cleanup_(failure_verdict_done) struct failure_verdict v;
	struct classify_input in = { .code = MO_NONE, .signal = MO_NONE };
	mo_desc_init(&failure_verdict_desc, &v);
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), NULL, 0, 0);
	if (r)
		return cli_stop(r);
	if (!log && !kernel && !status)
		return cli_misuse(cli, "nothing to look at; give --log, --kernel or --exit");
	if (recipe && !log)
		return cli_misuse(cli,
				  "--recipe is for --log: its rules for lines are tried on that");
	if ((log && (r = read_log(log, &log_text))) ||
	    (kernel && (r = read_log(kernel, &kernel_text))) ||
	    (status && (r = read_exit(cli, status, &in))))
		return r;
	if (recipe && !(lines = try_lines(cli, recipe, &log_text, &r)))
		return r;
	in.log = log_text.data;
	in.n_log = log_text.len;
	in.kernel = kernel_text.data;
	in.n_kernel = kernel_text.len;
	r = decide(&in, &v);
	if (r == CLI_OK && cli->json) {
		struct json_object *doc = wire_to_json(&failure_verdict_desc, &v);
		if (lines)
			json_object_object_add(doc, "lines", json_object_get(lines));
		print_json_doc(doc);
		json_object_put(doc);
	} else if (r == CLI_OK) {
		print_verdict(cli, &v);
		if (lines)
			print_lines(lines);
	}
	json_object_put(lines);
	return r;
}

const struct verb verb_classify = {
	"classify",
	"Understand",
	"classify [--log FILE [--recipe RECIPE]] [--kernel FILE] [--exit CODE|signal:N]",
	"what kind of failure is in this log, with the lines that say so",
	"  --log FILE        output of the program (all ranks or one)\n"
	"  --recipe RECIPE   try its metrics.lines and the lines of its engine on the log: what "
	"each "
	"rule reads\n"
	"  --kernel FILE     kernel log of the node (dmesg)\n"
	"  --exit X          exit code, or signal:N\n"
	"Classes: user_error transient suspect node_fault hang numerical storage collateral "
	"preempted ok. Needs no cluster.\n",
	run,
	.examples = "  moectl logs j-7 >run.log; moectl classify --log run.log\n"
		    "  moectl classify --log train.log --kernel dmesg.txt --exit signal:11\n",
};
