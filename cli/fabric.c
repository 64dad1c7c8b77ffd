/* fabric read FILE: what `moectl plan --alltoall` and `--reduce` take from what rccl-tests printed,
 * and whether its values were right, offline. `fabric check` is fabric_check.c. */
#include "cli/fabric.h"

#include <stdio.h>
#include <string.h>

#include "cli/fabric_check.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/visible.h"
#include "lib/base/buf.h"
#include "lib/base/fd.h"
#include "lib/plan/curve.h"

#define OUTPUT_MAX ((size_t)1 << 20)

static void print_curve(const struct cli *cli, const struct curve *c)
{
	static const struct column columns[] = { { ">BYTES", "bytes", CELL_BYTES },
						 { ">GB/S", "gbs", CELL_REAL, 2 } };
	struct json_object *doc = json_object_new_object(), *rows = json_object_new_array();

	for (size_t i = 0; i < c->n; i++) {
		struct json_object *row = json_object_new_object();

		json_object_object_add(row, "bytes",
				       json_object_new_int64((int64_t)c->points[i].bytes));
		json_object_object_add(row, "gbs", json_object_new_double(c->points[i].gbs));
		json_object_array_add(rows, row);
	}
	json_object_object_add(doc, "curve", rows);
	json_object_object_add(doc, "wrong", json_object_new_int64(c->wrong));
	if (cli->json)
		print_json_doc(doc);
	else
		print_table(cli, columns, ELEMENTSOF(columns), rows);
	json_object_put(doc);
}

static int read_output(struct cli *cli, int argc, char **argv)
{
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	const char *args[1] = { NULL };
	struct curve c;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 0, 1);

	if (r)
		return cli_stop(r);
	if (!args[0])
		return cli_misuse(cli, "read: it needs FILE, the output of rccl-tests");
	r = mo_read_file(args[0], OUTPUT_MAX, &text);
	if (r < 0)
		return cli_fail(CLI_USAGE, "fabric: %s: %s; give the output of rccl-tests", args[0],
				strerror(-r));
	mo_buf_str(&text, "");
	if (!curve_parse(text.data, &c))
		return cli_fail(CLI_FAILED,
				"fabric: %s: no row of rccl-tests in it; give its output as it is",
				args[0]);
	print_curve(cli, &c);
	if (c.wrong > 0)
		return cli_fail(CLI_FAILED,
				"fabric: %s: %lld values were wrong at %.0f bytes: the fabric "
				"changes data, do not train on it",
				args[0], (long long)c.wrong, c.wrong_bytes);
	return CLI_OK;
}

/* Which of the two is said by the first word, as only one of them takes options of its own. */
static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "read", "check" };
	const char *args[1] = { NULL };
	bool named = argc && argv[0][0] != '-';
	int r;

	if (named && mo_streq(argv[0], "check"))
		return fabric_check(cli, argc - 1, argv + 1);
	if (named && mo_streq(argv[0], "read"))
		return read_output(cli, argc - 1, argv + 1);
	r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	return r ? cli_stop(r) : cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
}

const struct verb verb_fabric = {
	"fabric",
	"Prepare",
	"fabric check RECIPE [--nodes A,B|--job JOB] [--set key=value]... [--expect GB/S] "
	"[--drain] [-o FILE] | read FILE",
	"find the node or link that makes collectives slow; what rccl-tests measured, for plans",
	"  check            run RECIPE, a program that prints what rccl-tests print, over all "
	"nodes, "
	"then over pairs until the odd node or link is found\n"
	"  --nodes A,B      these nodes (default: cluster.nodes of the recipe); all must be free: "
	"a "
	"check stops nobody\n"
	"  --job JOB        the nodes on which JOB ran last; `moectl why JOB` has the verdict "
	"then\n"
	"  --set key=value  replaces a value of the recipe, as for submit; time_limit (300s) is "
	"how "
	"long one measurement may take\n"
	"  --expect GB/S    what all nodes together should reach: when they do, pairs are left "
	"out\n"
	"  --drain          drain nodes that are odd, with the measurements as the reason\n"
	"  -o, --out FILE   what all nodes together measured, for `moectl plan --reduce FILE` or "
	"`--alltoall FILE`\n"
	"  read             sizes and bus bandwidth as plans read them from FILE\n"
	"Exit status 1 when something stands out or nothing could be measured; of read when there "
	"is "
	"no row, or a value came out wrong.\n",
	run,
	.examples =
		"  moectl fabric check fabric.yaml --job j-7\n"
		"  moectl fabric check fabric.yaml --nodes gpu-01,gpu-02,gpu-03,gpu-04 -o "
		"reduce.txt\n"
		"  all_reduce_perf -b 1M -e 1G -f 2 >reduce.txt; moectl fabric read reduce.txt\n",
};
