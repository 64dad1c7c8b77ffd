/* See ranks_heat.h. */
#include "cli/ranks_heat.h"

#include <limits.h>

#include "cli/client.h"
#include "cli/heat.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/text.h"
#include "cli/value.h"
#include "cli/visible.h"

#define PIPE_WIDTH 80 /* where there is no terminal: for tickets */

/* All pages as one document. */
static int ask(struct cli *cli, const char *job, const char *metric, struct answer *ret)
{
	_cleanup_(mo_freep) char *name = url_quote(metric);
	int r = client_get(cli, job, ret, "/v1/jobs/%s/matrix?metric=%s", job, name);

	for (int64_t next; !r && (next = js_int(ret->doc, "next")) != MO_NONE;) {
		_cleanup_(answer_done) struct answer page = { 0 };

		r = client_get(cli, job, &page, "/v1/jobs/%s/matrix?metric=%s&after=%lld", job,
			       name, (long long)next);
		if (!r && (!heat_join(ret->doc, page.doc) || js_int(ret->doc, "next") == next))
			return cli_fail(CLI_FAILED,
					"%s: its ranks changed while they were asked; ask again",
					job);
	}
	if (!r)
		heat_pick_worst(ret->doc);
	return r;
}

static void print_worst(const struct cli *cli, struct json_object *doc)
{
	static const struct column words[] = {
		{ ">RANK", "rank", CELL_INT },
		{ "NODE", "node" },
		{ ">GPU", "gpu", CELL_INT },
		{ "IS", "word" },
		{ "TP PP EP CP DP", .cell = ranks_coords_cell },
	};
	static const struct column numbers[] = {
		{ ">RANK", "rank", CELL_INT },
		{ "NODE", "node" },
		{ ">GPU", "gpu", CELL_INT },
		{ ">VALUE", "value", CELL_REAL, 1 },
		{ ">STAGE", "median", CELL_REAL, 1 },
		{ ">DEVIATIONS", "score", CELL_REAL, 1 },
		{ "TP PP EP CP DP", .cell = ranks_coords_cell },
	};
	struct json_object *worst = js_get(doc, "worst");

	if (!js_len(worst))
		return;
	putchar('\n');
	if (js_str(doc, "letters"))
		print_table(cli, words, ELEMENTSOF(words), worst);
	else
		print_table(cli, numbers, ELEMENTSOF(numbers), worst);
}

int ranks_heat(struct cli *cli, const char *job, const char *metric)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_buf_done) struct mo_buf text = { 0 };
	_cleanup_(mo_freep) char *title = NULL;
	int r = ask(cli, job, metric ? metric : "doing", &a), width = cli->width;
	const char *unit = js_str(a.doc, "unit");

	if (r)
		return r;
	if (cli->json) {
		print_json_doc(a.doc);
		return CLI_OK;
	}
	if (js_int(a.doc, "ranks") <= 0) {
		printf("%s has no ranks yet; `moectl why %s` says what it waits for\n", job, job);
		return CLI_OK;
	}
	title = mo_printf("%s  %s%s%s of %s ranks  attempt %s  iteration %s", job,
			  text_or(js_str(a.doc, "metric")), unit ? " in " : "", unit ? unit : "",
			  text_int(js_int(a.doc, "ranks")), text_int(js_int(a.doc, "attempt")),
			  text_int(js_int(a.doc, "iteration")));
	print_clipped(title, width ? width : INT_MAX);
	putchar('\n');
	heat_map(a.doc, width ? width : PIPE_WIDTH, cli->colour, &text);
	heat_legend(a.doc, width ? width : PIPE_WIDTH, &text);
	fputs(text.data ? text.data : "", stdout);
	print_worst(cli, a.doc);
	return CLI_OK;
}
