/* watch: progress of one job until it ends. Polls the Job document; a controller that is away
 * (restart, failover) is waited for, the job runs on meanwhile. On a terminal one line is
 * redrawn in place; elsewhere a line appears per change of state or of the reason why it waits,
 * and per twentieth of the way. */
#include "cli/watch.h"

#include <string.h>

#include "cli/client_job.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"
#include "lib/base/clock.h"

#define POLL_MS 250
#define AWAY_LIMIT_US (120 * 1000000LL) /* without any answer for so long: unreachable */
/* not a terminal: a line at least this often while iterations advance */
#define QUIET_LIMIT_US (30 * 1000000LL)

struct view {
	char *state, *reason;
	int64_t iteration, attempt, shown_iteration, shown_at, away_since;
	bool line_open, late;
};

static void view_done(struct view *v)
{
	free(v->state);
	free(v->reason);
}

static void show(const struct cli *cli, struct view *v, struct json_object *job)
{
	_cleanup_(mo_freep) char *line =
		progress_line(cli, job, cli->live ? MO_MAX(cli->width - 1, 20) : 0);
	if (cli->live) {
		fputs("\r\033[K", stdout);
		print_clipped(line, MO_MAX(cli->width - 1, 20));
		v->line_open = true;
	} else {
		puts(line);
	}
	fflush(stdout);
}

static void end_line(struct view *v)
{
	if (v->line_open)
		putchar('\n');
	v->line_open = false;
}

/* That it has not saved where it should: a line of its own, once each time that it becomes so. */
static void tell_late(struct view *v, struct json_object *job)
{
	const char *late = js_str(job, "checkpoint_late");

	if (late && !v->late) {
		end_line(v);
		printf("%s  %s\n", text_or(js_str(job, "id")), late);
		fflush(stdout);
	}
	v->late = late != NULL;
}

/* Its reason without ", 16 are free" at the end: that changes whenever another job does, and is no
 * events of this one. Caller frees. */
static char *lasting_reason(struct json_object *job)
{
	const char *reason = js_str(job, "reason"), *end = reason ? strrchr(reason, ',') : NULL;
	size_t n = reason ? strlen(reason) : 0;

	return end && n > 5 && !strcmp(reason + n - 5, " free")
		       ? mo_strndup(reason, (size_t)(end - reason))
		       : mo_strdup(reason);
}

/* What a line says beside the numbers. A running job's reason is that of its last failure. */
static bool words_changed(const struct view *v, struct json_object *job, const char *state)
{
	_cleanup_(mo_freep) char *reason = lasting_reason(job);

	if (!mo_streq(state, v->state))
		return true;
	return !mo_streq(state, "running") && !mo_streq(reason, v->reason);
}

/* True when a line should be printed on something that is not a terminal. */
static bool worth_a_line(const struct view *v, struct json_object *job, bool words, int64_t now)
{
	int64_t i = js_int(job, "iteration"), steps = js_int(job, "steps");
	int64_t stride = steps != MO_NONE && steps >= 20 ? steps / 20 : 1;
	if (words || v->shown_iteration == MO_NONE)
		return true;
	if (i == MO_NONE || i == v->shown_iteration)
		return false;
	return i < v->shown_iteration || i / stride != v->shown_iteration / stride ||
	       now - v->shown_at > QUIET_LIMIT_US;
}

static void report_change(struct cli *cli, struct view *v, const struct answer *a)
{
	int64_t now = mo_clock_boot_us(), iteration = js_int(a->doc, "iteration"),
		attempt = js_int(a->doc, "attempt");
	const char *state = js_str(a->doc, "state");
	bool state_changed = !mo_streq(state, v->state), words = words_changed(v, a->doc, state);
	bool changed = words || iteration != v->iteration || attempt != v->attempt;
	if (cli->json) {
		if (changed)
			print_answer(a);
		fflush(stdout);
	} else if (cli->live) {
		if (state_changed && v->state)
			end_line(v);
		show(cli, v, a->doc);
	} else if (changed && worth_a_line(v, a->doc, words, now)) {
		show(cli, v, a->doc);
		v->shown_iteration = iteration;
		v->shown_at = now;
	}
	if (!cli->json)
		tell_late(v, a->doc);
	mo_str_set(&v->state, state);
	free(v->reason);
	v->reason = lasting_reason(a->doc);
	v->iteration = iteration;
	v->attempt = attempt;
}

static int verdict(const char *state)
{
	if (!strcmp(state, "completed"))
		return CLI_OK;
	if (!strcmp(state, "failed"))
		return CLI_JOB_FAILED;
	return !strcmp(state, "cancelled") ? CLI_JOB_CANCELLED : -1;
}

/* 0 = asked again later, else the exit status. */
static int away(struct cli *cli, struct view *v, const struct answer *a)
{
	int64_t now = mo_clock_boot_us();
	if (!v->away_since) {
		v->away_since = now;
		end_line(v);
		fprintf(stderr, "moectl: controller %s: no answer; the job runs on, trying again\n",
			client_url(cli));
	}
	return now - v->away_since > AWAY_LIMIT_US ? client_judge(cli, NULL, a) : 0;
}

int watch_job(struct cli *cli, const char *id)
{
	_cleanup_(view_done) struct view v = { .iteration = MO_NONE,
					       .attempt = MO_NONE,
					       .shown_iteration = MO_NONE };
	_cleanup_(mo_freep) char *quoted = url_quote(id), *path = mo_printf("/v1/jobs/%s", quoted);
	const struct request q = { .path = path, .timeout_ms = 5000 };
	bool seen = false;
	interrupt_catch();
	for (;;) {
		_cleanup_(answer_done) struct answer a = { 0 };
		int r = client_send(cli, &q, &a);
		if (r)
			return r;
		if ((a.status == 0 || a.status >= 500) && seen) {
			if ((r = away(cli, &v, &a)))
				return r;
		} else if ((r = client_judge(cli, id, &a))) {
			return r;
		} else if (!js_str(a.doc, "state")) {
			return cli_fail(CLI_FAILED,
					"%s: the controller's answer has no state; is something "
					"else listening at %s?",
					id, client_url(cli));
		} else {
			seen = true;
			v.away_since = 0;
			report_change(cli, &v, &a);
			r = verdict(v.state);
			if (r >= 0) {
				end_line(&v);
				return r;
			}
		}
		if (interrupt_wait(POLL_MS)) {
			end_line(&v);
			fprintf(stderr,
				"moectl: watch: stopped watching, %s runs on; `moectl watch %s` "
				"shows it again, `moectl cancel %s` ends it\n",
				id, id, id);
			return 130;
		}
	}
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
	if (r)
		return cli_stop(r);
	r = client_job(cli, args[0], &id);
	return r ? r : watch_job(cli, id);
}

const struct verb verb_watch = {
	"watch",
	"Look",
	"watch JOB",
	"follow a job until it ends",
	"Exit status: 0 completed, 10 failed, 11 cancelled. Ctrl-C leaves the job alone.\n",
	run,
	.examples = "  moectl watch j-7; echo $?\n",
};
