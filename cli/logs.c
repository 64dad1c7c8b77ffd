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
#include "cli/log_lines.h"
#include "cli/options.h"
#include "cli/ranks_meant.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/wire/parse.h"

#define AGAIN_MS 500
#define RANKS_AT_ONCE 256 /* that the controller takes in one request */
#define LAST_LINES 50     /* of who failed */

struct logs {
	struct cli *cli;
	const char *id;
	/* what is asked for: no ranks = all; MO_NONE = every attempt from the newest on,
	 * everything */
	struct mo_idset ranks;
	int64_t attempt, lines;
	char *since; /* as the route takes it; NULL: from the first line on */
	/* waits: the answer said that the job has to run first */
	bool follow, waits;
	bool whole; /* all ranks are read at once */
	regex_t pattern;
	bool has_pattern;
	int64_t current; /* attempt that is read */
	struct log_lines out;
	struct mo_buf record; /* the piece of the stream that is no whole line yet */
	int64_t away_since;
};

static void logs_done(struct logs *l)
{
	mo_idset_done(&l->ranks);
	free(l->since);
	log_lines_done(&l->out);
	mo_buf_done(&l->record);
	if (l->has_pattern)
		regfree(&l->pattern);
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
			log_lines_take(&l->out, o);
		json_object_put(o);
		at = end + 1;
	}
	mo_buf_consume(&l->record, at);
	fflush(stdout);
	return ferror(stdout);
}

/* What is read now, where it is not all: "&ranks=0-7,12". */
static void add_ranks(const struct logs *l, struct mo_buf *path)
{
	_cleanup_(mo_idset_done) struct mo_idset set = { 0 };
	_cleanup_(mo_freep) char *text = NULL;

	for (size_t i = 0; i < l->out.n_sources; i++)
		mo_idset_add(&set, (size_t)l->out.sources[i].rank);
	text = mo_idset_format(&set);
	if (!l->whole) /* rank=: controllers before 0.3 know no other */
		mo_buf_printf(path, "&rank%s=%s", l->out.n_sources == 1 ? "" : "s", text);
}

static char *path_of(const struct logs *l)
{
	_cleanup_(mo_buf_done) struct mo_buf path = { 0 };
	const struct log_lines *o = &l->out;

	mo_buf_printf(&path, "/v1/jobs/%s/logs?records=1&follow=%d", l->id, l->follow);
	if (l->current > 0)
		mo_buf_printf(&path, "&attempt=%lld", (long long)l->current);
	for (size_t i = 0; i < o->n_sources && log_lines_came(o); i++) {
		mo_buf_str(&path, i == 0 ? "&from=" : ",");
		if (o->sources[i].offset != MO_NONE)
			mo_buf_printf(&path, "%lld", (long long)o->sources[i].offset);
	}
	add_ranks(l, &path);
	if (l->lines != MO_NONE)
		mo_buf_printf(&path, "&lines=%lld", (long long)l->lines);
	if (l->since) {
		_cleanup_(mo_freep) char *quoted = url_quote(l->since);

		mo_buf_printf(&path, "&since=%s", quoted);
	}
	return mo_buf_take(&path);
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
	if (now - l->away_since > FOLLOW_AWAY_US)
		return a->status && a->status < 300
			       ? cli_fail(CLI_UNREACHABLE,
					  "controller %s: ends each stream at once; see its log",
					  client_url(l->cli))
			       : client_judge(l->cli, l->id, a);
	interrupt_wait(AGAIN_MS);
	return 0;
}

/* Reads these ranks of one attempt to their end; without follow, to what is there now. */
static int read_ranks(struct logs *l)
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
		if (log_lines_ended(&l->out) || ferror(stdout)) {
			if (!l->follow)
				log_lines_sum_up(&l->out, l->lines);
			return CLI_OK;
		}
		r = away(l, &a);
		if (r || (!l->follow && a.status))
			return r;
	}
}

/* All that is asked for of an attempt, as many ranks at once as there may be. Who follows asks for
 * all of them, and hears from the controller when those are too many. */
static int read_attempt(struct logs *l, int64_t attempt, int64_t n_ranks)
{
	_cleanup_(mo_freep) int64_t *ranks = NULL;
	size_t n = 0, some = 0;
	int r = CLI_OK;

	for (int64_t i = mo_idset_next(&l->ranks, 0); i >= 0; i = mo_idset_next(&l->ranks, i + 1))
		*MO_GROW(ranks, n) = i;
	for (int64_t i = 0; i < MO_MAX(n_ranks, 1) && !mo_idset_count(&l->ranks); i++)
		*MO_GROW(ranks, n) = i;
	l->current = attempt;
	l->out.labelled = n > 1;
	for (size_t at = 0; at < n && !r && !ferror(stdout); at += some) {
		some = l->follow ? n : MO_MIN(n - at, (size_t)RANKS_AT_ONCE);
		l->whole = some == n && !mo_idset_count(&l->ranks);
		log_lines_begin(&l->out, attempt, ranks + at, some);
		r = read_ranks(l);
	}
	log_lines_show(&l->out);
	return r;
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
	*ret_over = !every;
	return read_attempt(l, next, js_int(a.doc, "ranks"));
}

/* How long ago is how long before that time: nobody asks for the last minutes after a failure. */
static void since_before(struct logs *l, const char *time)
{
	int64_t us, at;
	char text[32];

	if (!l->since || mo_parse_duration_us(l->since, &us) < 0 || !time ||
	    mo_time_parse(time, &at) < 0)
		return;
	mo_str_set(&l->since, mo_time_format(at - us, text));
	l->out.since = l->since;
}

/* The rank that failed first in the newest incident, and the attempt that it ended. */
static int find_failed(struct logs *l)
{
	_cleanup_(answer_done) struct answer a = { 0 };
	int r = client_get(l->cli, l->id, &a, "/v1/jobs/%s/report", l->id);
	struct json_object *incidents = js_get(a.doc, "incidents"),
			   *last = js_at(incidents, js_len(incidents) - 1);

	if (r)
		return r;
	if (!js_len(incidents))
		return cli_fail(CLI_NOT_FOUND, "logs: %s: no attempt of it has failed", l->id);
	if (js_int(last, "first_rank") == MO_NONE)
		return cli_fail(CLI_NOT_FOUND,
				"logs: %s: no rank is known to have failed first; `moectl why %s` "
				"says what happened",
				l->id, l->id);
	mo_idset_add(&l->ranks, (size_t)js_int(last, "first_rank"));
	l->attempt = js_int(last, "attempt");
	since_before(l, js_str(last, "time"));
	if (l->lines == MO_NONE && !l->since)
		l->lines = LAST_LINES;
	fprintf(stderr, "moectl: logs: rank %lld, which failed first in attempt %lld\n",
		(long long)js_int(last, "first_rank"), (long long)l->attempt);
	return CLI_OK;
}

static int set_pattern(struct logs *l, const char *pattern)
{
	char why[128];
	int r = regcomp(&l->pattern, pattern, REG_EXTENDED | REG_NOSUB);

	if (r) {
		regerror(r, &l->pattern, why, sizeof(why));
		return cli_misuse(l->cli, "--grep %.80s is no regular expression: %s", pattern,
				  why);
	}
	l->has_pattern = true;
	l->out.grep = &l->pattern;
	return CLI_OK;
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL }, *rank = NULL, *pattern = NULL, *since = NULL;
	_cleanup_(logs_done) struct logs l = { .cli = cli,
					       .attempt = MO_NONE,
					       .lines = MO_NONE,
					       .current = MO_NONE,
					       .out = { .cli = cli } };
	bool failed = false, plain = false, over = false;
	const struct opt opts[] = {
		{ "rank", 'r', OPT_STR, &rank },
		{ "attempt", 'a', OPT_INT, &l.attempt, 1, INT32_MAX },
		{ "follow", 'f', OPT_FLAG, &l.follow },
		{ "lines", 'n', OPT_INT, &l.lines, 0, 1000000 },
		{ "since", 's', OPT_STR, &since },
		{ "grep", 'g', OPT_STR, &pattern },
		{ "failed", 0, OPT_FLAG, &failed },
		{ "plain", 0, OPT_FLAG, &plain },
	};
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);

	if (r)
		return cli_stop(r);
	if (failed && (rank || l.attempt != MO_NONE || l.follow))
		return cli_misuse(cli, "--failed says which rank and attempt: remove --rank, "
				       "--attempt and -f");
	if ((pattern && (r = set_pattern(&l, pattern))) || (r = client_job(cli, args[0], &id)))
		return r;
	l.id = id;
	l.since = mo_strdup(since);
	l.out.since = l.since;
	l.out.folded = !plain && !l.follow;
	if ((rank && (r = ranks_meant(cli, id, rank, &l.ranks))) ||
	    (failed && (r = find_failed(&l))))
		return r;
	while (!r && !over && !ferror(stdout))
		r = read_next(&l, &over);
	return r ? r : l.out.failed ? CLI_FAILED : CLI_OK;
}

const struct verb verb_logs = {
	"logs",
	"Look",
	"logs JOB [--rank RANKS] [--attempt A] [--failed] [--since TIME] [--grep PATTERN] "
	"[--plain] "
	"[-f] [-n LINES]",
	"output of the ranks, from any node",
	"  -r, --rank RANKS     these only: 3, or 0-7,12, or by their place: pp=3,tp=0\n"
	"  -a, --attempt A      attempt (default: the current or last one; with -f those that "
	"follow "
	"it too)\n"
	"  --failed             the rank that failed first, in the attempt that it ended, its last "
	"lines\n"
	"  -s, --since TIME     what was written in the last 10m, 2h ... (with --failed: before "
	"the failure), or from a time on: 2026-11-21T08:30:00Z; to ten seconds\n"
	"  -g, --grep PATTERN   lines that match the extended regular expression\n"
	"  --plain              each rank's lines for themselves; else an equal line of several "
	"ranks is shown once, with their number\n"
	"  -f, --follow         follow until the job ends, plain; survives a controller restart "
	"without losing or repeating a line\n"
	"  -n, --lines LINES    the last LINES lines of each rank\n"
	"At most 256 ranks can be followed at once.\n",
	run,
	.examples = "  moectl logs j-7 -f\n"
		    "  moectl logs j-7 --failed\n"
		    "  moectl logs j-7 --since 10m --grep 'NCCL (WARN|ERROR)'\n"
		    "  moectl logs j-7 --failed --since 2m   its last two minutes\n"
		    "  moectl logs j-7 --rank pp=3,tp=0 -n 50\n"
		    "  moectl logs j-7 --attempt 1 -n 5     how each rank ended\n",
};
