/* classify: what kind of failure is in this log? Offline: the same rules and code as the controller's. */
#include <errno.h>
#include <string.h>

#include "cli/output.h"
#include "cli/visible.h"
#include "daemon/core/classify.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/base/parse.h"
#include "lib/recipe/failures_file.h"
#include "lib/wire/json.h"

#define LOG_MAX ((size_t)4 << 30)

static int read_log(const char *path, struct mo_buf *b)
{
	int r = mo_read_file(path, LOG_MAX, b);
	return r < 0 ? cli_fail(CLI_USAGE, "classify: %s: %s; give a readable log file", path, strerror(-r)) : 0;
}

/* "1", "exit:1" or "signal:9". */
static int read_exit(const struct cli *cli, const char *word, struct classify_input *in)
{
	const char *number = mo_starts_with(word, "exit:") ? word + 5 : mo_starts_with(word, "signal:") ? word + 7 : word;
	bool is_signal = mo_starts_with(word, "signal:");
	if (mo_parse_i64(number, is_signal ? 1 : 0, is_signal ? 64 : 255, is_signal ? &in->signal : &in->code) < 0)
		return cli_misuse(cli, "--exit %s is neither an exit code (0 to 255) nor signal:N (1 to 64)", word);
	return 0;
}

static void rules_done(struct failure_rules *r) { mo_desc_done(&failure_rules_desc, r); }
static void verdict_done(struct failure_verdict *v) { mo_desc_done(&failure_verdict_desc, v); }

static int decide(const struct classify_input *in, struct failure_verdict *ret)
{
	_cleanup_(rules_done) struct failure_rules rules;
	_cleanup_(mo_error_done) struct mo_error err = { 0 };
	_cleanup_(classifier_freep) struct classifier *c = NULL;
	mo_desc_init(&failure_rules_desc, &rules);
	int r = failures_load(&rules, &err);
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
	putchar('\n');
	for (size_t i = 0; i < v->n_evidence; i++) {
		_cleanup_(mo_freep) char *line = cli->raw ? mo_strdup(v->evidence[i].text) : visible(v->evidence[i].text);
		printf("  %s%s%s  %s\n", v->evidence[i].source, v->evidence[i].line == MO_NONE ? "" : ":", v->evidence[i].line == MO_NONE ? "" : text_int(v->evidence[i].line), line);
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *log = NULL, *kernel = NULL, *status = NULL;
	const struct opt opts[] = { { "log", 0, OPT_STR, &log }, { "kernel", 0, OPT_STR, &kernel }, { "exit", 0, OPT_STR, &status } };
	_cleanup_(mo_buf_done) struct mo_buf log_text = { 0 }, kernel_text = { 0 }, json = { 0 };
	_cleanup_(verdict_done) struct failure_verdict v;
	struct classify_input in = { .code = MO_NONE, .signal = MO_NONE };
	mo_desc_init(&failure_verdict_desc, &v);
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), NULL, 0, 0);
	if (r)
		return cli_stop(r);
	if (!log && !kernel && !status)
		return cli_misuse(cli, "nothing to look at; give --log, --kernel or --exit");
	if ((log && (r = read_log(log, &log_text))) || (kernel && (r = read_log(kernel, &kernel_text))) || (status && (r = read_exit(cli, status, &in))))
		return r;
	in.log = log_text.data;
	in.n_log = log_text.len;
	in.kernel = kernel_text.data;
	in.n_kernel = kernel_text.len;
	if ((r = decide(&in, &v)))
		return r;
	wire_encode(&failure_verdict_desc, &v, &json);
	if (cli->json)
		print_json(json.data, json.len);
	else
		print_verdict(cli, &v);
	return CLI_OK;
}

const struct verb verb_classify = {
	"classify", "Understand", "classify [--log FILE] [--kernel FILE] [--exit CODE|signal:N]", "what kind of failure is in this log, with the lines that say so",
	"  --log FILE      output of the program (all ranks or one)\n  --kernel FILE   kernel log of the node (dmesg)\n  --exit X        exit code, or signal:N\n"
	"Classes: user_error transient suspect node_fault hang numerical storage collateral preempted ok. Needs no cluster.\n", run,
};
