/* why: the reason of a state, with numbers and evidence. */
#include "cli/why.h"

#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/text.h"
#include "cli/value.h"

/* Long reasons end with what the evidence is: a verdict that says it already says it once. */
static bool in_verdict(struct json_object *w, const char *text)
{
	return strstr(text_or(js_str(w, "verdict")), text) != NULL;
}

/* Its text and evidence, without what the verdict has said. */
static void print_reason(struct json_object *w, struct json_object *reason)
{
	struct json_object *evidence = js_get(reason, "evidence");
	const char *text = text_or(js_str(reason, "text"));
	bool first = true;

	for (size_t i = 0; i <= js_len(evidence); i++) {
		const char *line = i ? json_object_get_string(js_at(evidence, i - 1)) : text;

		if (in_verdict(w, line))
			continue;
		if (first)
			printf("  because  %s  [%s]\n", line, text_or(js_str(reason, "code")));
		else
			printf("           %s\n", line);
		first = false;
	}
}

static void print_why(const struct cli *cli, const char *subject, struct json_object *w)
{
	struct json_object *reasons = js_get(w, "reasons");

	printf("%s  %s%s%s\n", paint(cli, "1", subject), text_or(js_str(w, "verdict")),
	       js_str(w, "since") ? "  since " : "", js_str(w, "since") ? js_str(w, "since") : "");
	for (size_t i = 0; i < js_len(reasons); i++)
		print_reason(w, js_at(reasons, i));
	if (js_str(w, "next"))
		printf("  next     %s\n", js_str(w, "next"));
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[1] = { NULL };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int r = cli_options(cli, argc, argv, NULL, 0, args, 1, 1);
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
	print_why(cli, id ? id : args[0], a.doc);
	return CLI_OK;
}

const struct verb verb_why = {
	"why",
	"Understand",
	"why JOB|NODE",
	"why a job waits, restarted or failed, why a node is out; with evidence",
	NULL,
	run,
	.examples = "  moectl why j-7\n"
		    "  moectl why node-3\n",
};
