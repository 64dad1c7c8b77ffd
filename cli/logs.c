/* logs: the output of the ranks, from any node. Text as it is; with --json one {"line":...} per line. */
#include <string.h>

#include "cli/client.h"
#include "cli/value.h"
#include "lib/wire/json.h"

struct sink { const struct cli *cli; struct mo_buf line; };

static void sink_done(struct sink *s) { mo_buf_done(&s->line); }

static void print_json_line(struct sink *s)
{
	struct mo_buf out = { 0 };
	mo_buf_str(&out, "{\"line\":");
	wire_string(s->line.data ? s->line.data : "", &out);
	mo_buf_str(&out, "}");
	puts(out.data);
	mo_buf_done(&out);
	mo_buf_reset(&s->line);
	if (s->line.data)
		s->line.data[0] = 0;
}

static int on_text(void *arg, const char *data, size_t n)
{
	struct sink *s = arg;
	if (!s->cli->json)
		fwrite(data, 1, n, stdout);
	for (size_t i = 0; s->cli->json && i < n;) {
		const char *nl = memchr(data + i, '\n', n - i);
		size_t piece = nl ? (size_t)(nl - data) - i : n - i;
		mo_buf_add(&s->line, data + i, piece);
		if (nl)
			print_json_line(s);
		i += piece + (nl != NULL);
	}
	fflush(stdout);
	return ferror(stdout);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool follow = false;
	int64_t rank = MO_NONE, attempt = MO_NONE, lines = MO_NONE;
	const struct opt opts[] = {
		{ "rank", 'r', OPT_INT, &rank, 0, INT32_MAX }, { "attempt", 'a', OPT_INT, &attempt, 1, INT32_MAX }, { "follow", 'f', OPT_FLAG, &follow },
		{ "lines", 'n', OPT_INT, &lines, 0, 1000000 },
	};
	_cleanup_(mo_freep) char *id = NULL;
	_cleanup_(mo_buf_done) struct mo_buf path = { 0 };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(sink_done) struct sink sink = { .cli = cli };
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if ((r = client_job(cli, args[0], &id)))
		return r;
	mo_buf_printf(&path, "/v1/jobs/%s/logs?follow=%d", id, follow);
	if (rank != MO_NONE)
		mo_buf_printf(&path, "&rank=%lld", (long long)rank);
	if (attempt != MO_NONE)
		mo_buf_printf(&path, "&attempt=%lld", (long long)attempt);
	if (lines != MO_NONE)
		mo_buf_printf(&path, "&lines=%lld", (long long)lines);
	const struct request q = { .path = path.data, .timeout_ms = follow ? -1 : 60000, .on_data = on_text, .arg = &sink };
	r = client_send(cli, &q, &a);
	if (sink.line.len)
		print_json_line(&sink);
	return r ? r : client_judge(cli, id, &a);
}

const struct verb verb_logs = {
	"logs", "Look", "logs JOB [--rank R] [--attempt A] [-f] [-n LINES]", "output of the ranks, from any node",
	"  --rank R       one rank (default: all, each line led by its rank)\n  --attempt A    attempt (default: the current or last one)\n"
	"  -f             follow until the rank ends\n  -n LINES       the last LINES lines of each rank\n", run,
};
