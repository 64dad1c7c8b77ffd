/* logs: the output of the ranks, from any node. The stream's records carry positions, so that
 * following goes on where it was when the controller or an agent comes back: no line is lost or
 * repeated. Without --attempt the attempts that come later are followed too, one after the
 * other. */
#include "cli/logs.h"

#include <json-c/json.h>
#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/clock.h"
#include "lib/wire/encode.h"
#include "lib/wire/parse.h"

#define AGAIN_MS 500
#define AWAY_LIMIT_US (120 * 1000000LL)
#define PARTIAL_MAX (64 * 1024) /* a line longer than this is printed in pieces */

/* A rank; offset MO_NONE: nothing has come yet. first: where its first piece began; n_lines: how
 * many came. */
struct source {
	int64_t offset, first, n_lines;
	bool end;
	struct mo_buf line;
};
struct logs {
	struct cli *cli;
	const char *id;
	/* what is asked for: MO_NONE = all ranks, every attempt from the newest on, everything */
	int64_t rank, attempt, lines;
	/* failed: some rank's log could not be read; waits: the answer said that the job has to run
	 * first */
	bool follow, failed, waits;
	int64_t current; /* attempt that is read */
	struct source *sources;
	size_t n_sources;
	struct mo_buf record; /* the piece of the stream that is no whole line yet */
	int64_t away_since;
};

static void sources_drop(struct logs *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		mo_buf_done(&l->sources[i].line);
	free(l->sources);
	l->sources = NULL;
	l->n_sources = 0;
}

static void logs_done(struct logs *l)
{
	sources_drop(l);
	mo_buf_done(&l->record);
}

static void print_line(const struct logs *l, int64_t rank, const char *line, size_t n)
{
	if (!l->cli->json) {
		printf("[%lld] %.*s\n", (long long)rank, (int)n, line);
		return;
	}
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };
	_cleanup_(mo_freep) char *text = mo_strndup(line, n);
	mo_buf_printf(&out, "{\"attempt\":%lld,\"rank\":%lld,\"line\":", (long long)l->current,
		      (long long)rank);
	wire_string(text, &out);
	mo_buf_str(&out, "}");
	print_json(out.data, out.len);
}

/* Whole lines; the rest stays in line, unless the rank has ended. */
static void print_lines(const struct logs *l, struct source *s, int64_t rank)
{
	size_t at = 0;
	while (at < s->line.len) {
		const char *begin = s->line.data + at, *nl = memchr(begin, '\n', s->line.len - at);
		size_t n = nl ? (size_t)(nl - begin) : s->line.len - at;
		if (!nl && !s->end && n < PARTIAL_MAX)
			break;
		print_line(l, rank, begin, n);
		at += n + (nl != NULL);
	}
	mo_buf_consume(&s->line, at);
}

static void on_record(struct logs *l, struct json_object *o)
{
	int64_t rank = js_int(o, "rank"), lost = js_int(o, "lost"),
		i = l->rank == MO_NONE ? rank : rank - l->rank;
	const char *text = js_str(o, "text"), *error = js_str(o, "error");
	_cleanup_(mo_buf_done) struct mo_buf shown = { 0 };
	if (i < 0 || i >= (int64_t)l->n_sources || !text)
		return;
	struct source *s = &l->sources[i];
	if (s->offset == MO_NONE)
		s->first = js_int(o, "offset") - (int64_t)strlen(text);
	for (const char *nl = text; (nl = strchr(nl, '\n')); nl++)
		s->n_lines++;
	s->offset = js_int(o, "offset");
	s->end = json_object_get_boolean(js_get(o, "end"));
	if (!l->cli->raw && !l->cli->json)
		visible_add(&shown, text, strlen(text), VISIBLE_OUTPUT);
	else
		mo_buf_str(&shown, text);
	text = shown.len ? shown.data : "";
	if (lost > 0)
		fprintf(stderr,
			"moectl: logs: %lld bytes of rank %lld are gone, its log was rotated\n",
			(long long)lost, (long long)rank);
	if (l->n_sources == 1 && !l->cli->json) {
		/* as it is: progress bars live of unfinished lines */
		fputs(text, stdout);
	} else {
		mo_buf_str(&s->line, text);
		print_lines(l, s, rank);
	}
	if (error) {
		cli_fail(CLI_FAILED, "logs of rank %lld: %s", (long long)rank, error);
		l->failed = true;
	}
}

static int on_data(void *arg, const char *data, size_t n)
{
	struct logs *l = arg;
	size_t at = 0;
	const char *nl;
	l->away_since = 0;
	mo_buf_add(&l->record, data, n);
	while ((nl = memchr(l->record.data + at, '\n', l->record.len - at))) {
		struct json_object *o = NULL;
		size_t end = (size_t)(nl - l->record.data);
		if (wire_parse(l->record.data + at, end - at, &o, NULL) == 0)
			on_record(l, o);
		json_object_put(o);
		at = end + 1;
	}
	mo_buf_consume(&l->record, at);
	fflush(stdout);
	return ferror(stdout);
}

static bool any_came(const struct logs *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		if (l->sources[i].offset != MO_NONE)
			return true;
	return false;
}

static char *path_of(const struct logs *l)
{
	_cleanup_(mo_buf_done) struct mo_buf path = { 0 };
	mo_buf_printf(&path, "/v1/jobs/%s/logs?records=1&follow=%d", l->id, l->follow);
	if (l->current > 0)
		mo_buf_printf(&path, "&attempt=%lld", (long long)l->current);
	for (size_t i = 0; i < l->n_sources && any_came(l); i++) {
		mo_buf_str(&path, i == 0 ? "&from=" : ",");
		if (l->sources[i].offset != MO_NONE)
			mo_buf_printf(&path, "%lld", (long long)l->sources[i].offset);
	}
	if (l->rank != MO_NONE)
		mo_buf_printf(&path, "&rank=%lld", (long long)l->rank);
	if (l->lines != MO_NONE)
		mo_buf_printf(&path, "&lines=%lld", (long long)l->lines);
	return mo_buf_take(&path);
}

/* Fewer lines than were asked for, and not because there never were more. */
static void say_cut(const struct logs *l)
{
	for (size_t i = 0; i < l->n_sources && l->lines > 0 && !l->follow; i++) {
		const struct source *s = &l->sources[i];
		if (s->offset != MO_NONE && s->first > 0 && s->n_lines < l->lines)
			fprintf(stderr,
				"moectl: logs: rank %lld: only its last %lld lines are kept; what "
				"was before them was rotated away (log_bytes of the agent)\n",
				(long long)(l->rank == MO_NONE ? (int64_t)i : l->rank),
				(long long)s->n_lines);
	}
}

static bool all_ended(const struct logs *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		if (!l->sources[i].end)
			return false;
	return true;
}

/* The controller does not answer, or broke the stream off. 0 = ask again, else the exit status. */
static int away(struct logs *l, const struct answer *a)
{
	int64_t now = mo_clock_boot_us();
	if (!l->follow || (a->status >= 300 && a->status < 500))
		return client_judge(l->cli, l->id, a);
	if (!l->away_since) {
		l->away_since = now;
		fprintf(stderr, "moectl: controller %s: no answer; trying again, no line is lost\n",
			client_url(l->cli));
	}
	if (now - l->away_since > AWAY_LIMIT_US)
		return a->status && a->status < 300
			       ? cli_fail(CLI_UNREACHABLE,
					  "controller %s: ends each stream at once; see its log",
					  client_url(l->cli))
			       : client_judge(l->cli, l->id, a);
	interrupt_wait(AGAIN_MS);
	return 0;
}

/* Reads one attempt to its end; without follow, to what is there now. */
static int read_attempt(struct logs *l)
{
	for (;;) {
		_cleanup_(answer_done) struct answer a = { 0 };
		_cleanup_(mo_freep) char *path = path_of(l);
		const struct request q = { .path = path,
					   .timeout_ms = l->follow ? -1 : 60000,
					   .on_data = on_data,
					   .arg = l };
		mo_buf_reset(&l->record);
		int r = client_send(l->cli, &q, &a);
		if (r)
			return r;
		if (all_ended(l) || ferror(stdout)) {
			say_cut(l);
			return CLI_OK;
		}
		r = away(l, &a);
		if (r || (!l->follow && a.status))
			return r;
	}
}

static void attempt_begin(struct logs *l, int64_t attempt, int64_t n_ranks)
{
	sources_drop(l);
	l->current = attempt;
	l->n_sources = l->rank == MO_NONE ? (size_t)MO_MAX(n_ranks, 1) : 1;
	l->sources = mo_alloc_array(l->n_sources, sizeof(*l->sources));
	for (size_t i = 0; i < l->n_sources; i++)
		l->sources[i].offset = MO_NONE;
}

/* Looks at the job, and reads the attempt that comes next when there is one. *ret_over: nothing
 * more will come. */
static int read_next(struct logs *l, bool *ret_over)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *path = mo_printf("/v1/jobs/%s", l->id);
	const struct request q = { .path = path, .timeout_ms = 5000 };
	int r = client_send(l->cli, &q, &a);
	if (r)
		return r;
	if (!js_str(a.doc, "state") || a.status >= 300)
		return l->current == MO_NONE ? client_judge(l->cli, l->id, &a) : away(l, &a);
	const char *state = js_str(a.doc, "state");
	bool final = mo_streq(state, "completed") || mo_streq(state, "failed") ||
		     mo_streq(state, "cancelled"),
	     every = l->follow && l->attempt == MO_NONE;
	int64_t newest = js_int(a.doc, "attempt"), next = l->current != MO_NONE   ? l->current + 1
							  : l->attempt != MO_NONE ? l->attempt
										  : newest;
	if (every && (newest < next || (newest == 0 && !final))) {
		if (!l->waits && (mo_streq(state, "queued") || mo_streq(state, "paused"))) {
			fprintf(stderr,
				"moectl: logs: %s is %s: waiting for it to run; Ctrl-C ends this\n",
				l->id, state);
			l->waits = true;
		}
		*ret_over = final;
		if (!final)
			interrupt_wait(AGAIN_MS);
		return CLI_OK;
	}
	if (l->current != MO_NONE)
		fprintf(stderr, "moectl: logs: %s goes on with attempt %lld\n", l->id,
			(long long)next);
	l->waits = false;
	attempt_begin(l, next, js_int(a.doc, "ranks"));
	*ret_over = !every;
	return read_attempt(l);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(logs_done) struct logs l = { .cli = cli,
					       .rank = MO_NONE,
					       .attempt = MO_NONE,
					       .lines = MO_NONE,
					       .current = MO_NONE };
	const struct opt opts[] = {
		{ "rank", 'r', OPT_INT, &l.rank, 0, INT32_MAX },
		{ "attempt", 'a', OPT_INT, &l.attempt, 1, INT32_MAX },
		{ "follow", 'f', OPT_FLAG, &l.follow },
		{ "lines", 'n', OPT_INT, &l.lines, 0, 1000000 },
	};
	_cleanup_(mo_freep) char *id = NULL;
	bool over = false;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if ((r = client_job(cli, args[0], &id)))
		return r;
	l.id = id;
	while (!r && !over && !ferror(stdout))
		r = read_next(&l, &over);
	return r ? r : l.failed ? CLI_FAILED : CLI_OK;
}

const struct verb verb_logs = {
	"logs",
	"Look",
	"logs JOB [--rank R] [--attempt A] [-f] [-n LINES]",
	"output of the ranks, from any node",
	"  --rank R       one rank (default: all, each line led by its rank)\n  --attempt A    "
	"attempt (default: the current or last one; with -f those that follow it too)\n"
	"  -f             follow until the job ends; survives a controller restart without losing "
	"or repeating a line\n  -n LINES       the last LINES lines of each rank\n",
	run,
	.examples = "  moectl logs j-7 -f\n"
		    "  moectl logs j-7 --rank 12 -n 50\n"
		    "  moectl logs j-7 --attempt 1 -n 5     how each rank ended\n",
};
