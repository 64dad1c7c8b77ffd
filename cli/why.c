/* why: the reason of a state, with numbers and evidence. */
#include "cli/why.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

#define WHY_LINES 12 /* half a terminal; the verdict and the next step are two of them */

/* Long reasons end with what the evidence is: a verdict that says it already says it once. */
static bool in_verdict(struct json_object *w, const char *text)
{
	return strstr(text_or(js_str(w, "verdict")), text) != NULL;
}

/* Line i of a reason: its text, then its evidence. NULL: the verdict has said it. */
static const char *line_at(struct json_object *w, struct json_object *reason, size_t i)
{
	const char *line = i ? json_object_get_string(js_at(js_get(reason, "evidence"), i - 1))
			     : text_or(js_str(reason, "text"));

	return in_verdict(w, line) ? NULL : line;
}

static size_t count_lines(struct json_object *w, struct json_object *reason)
{
	size_t n = 0;

	for (size_t i = 0; i <= js_len(js_get(reason, "evidence")); i++)
		n += line_at(w, reason, i) != NULL;
	return n;
}

/* The first of its lines, at most so many. */
static void print_reason(struct json_object *w, struct json_object *reason, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i <= js_len(js_get(reason, "evidence")) && n < most; i++) {
		const char *line = line_at(w, reason, i);

		if (!line)
			continue;
		if (n++)
			printf("           %s\n", line);
		else
			printf("  because  %s  [%s]\n", line, text_or(js_str(reason, "code")));
	}
}

/* The reasons in `room` lines: a line of each as far as that goes, the rest to the first ones,
 * which weigh most. */
static void print_reasons(struct json_object *w, size_t room)
{
	struct json_object *reasons = js_get(w, "reasons");
	size_t later = 0; /* reasons behind the one that is printed */

	for (size_t i = 0; i < js_len(reasons); i++)
		later += count_lines(w, js_at(reasons, i)) > 0;
	for (size_t i = 0; i < js_len(reasons) && room; i++) {
		size_t n = count_lines(w, js_at(reasons, i));

		later -= n > 0;
		n = MO_MIN(n, MO_MAX(room - MO_MIN(room, later), (size_t)1));
		print_reason(w, js_at(reasons, i), n);
		room -= n;
	}
}

void why_print(const struct cli *cli, const char *subject, struct json_object *w, bool all)
{
	struct json_object *reasons = js_get(w, "reasons");
	const char *since = js_str(w, "since"), *next = js_str(w, "next");
	size_t n = 0, room = WHY_LINES - (next ? 2 : 1);

	for (size_t i = 0; i < js_len(reasons); i++)
		n += count_lines(w, js_at(reasons, i));
	room = all || n <= room ? n : room - 1; /* one says how many are left out */
	printf("%s  %s%s%s\n", paint(cli, "1", subject), text_or(js_str(w, "verdict")),
	       since ? "  since " : "", since ? since : "");
	print_reasons(w, room);
	if (n > room)
		printf("  and      %zu more lines of evidence: moectl why %s --all\n", n - room,
		       subject);
	if (next)
		printf("  next     %s\n", next);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	bool all = false;
	const struct opt opts[] = { { "all", 0, OPT_FLAG, &all } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, opts, ELEMENTSOF(opts), args, 1, 1);
	if (r)
		return cli_stop(r);
	if ((r = client_subject(cli, args[0], &id)))
		return r;
	_cleanup_(mo_freep) char *quoted = url_quote(args[0]);
	r = id ? client_get(cli, id, &a, "/v1/jobs/%s/why", id)
	       : client_get(cli, args[0], &a, "/v1/nodes/%s/why", quoted);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	why_print(cli, id ? id : args[0], a.doc, all);
	return CLI_OK;
}

const struct verb verb_why = {
	"why",
	"Understand",
	"why JOB|NODE [--all]",
	"why a job waits, restarted or failed, why a node is out; with evidence",
	"  --all   all evidence, where there is more than twelve lines hold\n",
	run,
	.examples = "  moectl why j-7\n"
		    "  moectl why j-7 --all\n"
		    "  moectl why node-3\n",
};
