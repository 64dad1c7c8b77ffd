/* fabric read FILE: what `moectl plan --alltoall` and `--reduce` take from what rccl-tests printed,
 * and whether its values were right. Offline. */
#include "cli/fabric.h"

#include <stdio.h>
#include <string.h>

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

static int run(struct cli *cli, int argc, char **argv)
{
	static const char *const verbs[] = { "read" };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	const char *args[2] = { NULL };
	struct curve c;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 2, 2);

	if (r)
		return cli_stop(r);
	if (!mo_streq(args[0], "read"))
		return cli_misuse_word(cli, args[0], verbs, ELEMENTSOF(verbs));
	r = mo_read_file(args[1], OUTPUT_MAX, &text);
	if (r < 0)
		return cli_fail(CLI_USAGE, "fabric: %s: %s; give the output of rccl-tests", args[1],
				strerror(-r));
	mo_buf_str(&text, "");
	if (!curve_parse(text.data, &c))
		return cli_fail(CLI_FAILED,
				"fabric: %s: no row of rccl-tests in it; give its output as it is",
				args[1]);
	print_curve(cli, &c);
	if (c.wrong > 0)
		return cli_fail(CLI_FAILED,
				"fabric: %s: %lld values were wrong at %.0f bytes: the fabric "
				"changes data, do not train on it",
				args[1], (long long)c.wrong, c.wrong_bytes);
	return CLI_OK;
}

const struct verb verb_fabric = {
	"fabric",
	"Prepare",
	"fabric read FILE",
	"what rccl-tests measured, as plans take it",
	"Sizes and bus bandwidth as `moectl plan --alltoall FILE` and `--reduce FILE` read them. "
	"Exit status 1 when there is no row, or when a value came out wrong.\n"
	"Examples:\n"
	"  all_reduce_perf -b 1M -e 1G -f 2 >reduce.txt; moectl fabric read reduce.txt\n",
	run,
};
