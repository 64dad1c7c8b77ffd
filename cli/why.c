/* why: the reason of a state, with numbers and evidence. */
#include <string.h>

#include "cli/client.h"
#include "cli/output.h"
#include "cli/value.h"

/* Long reasons end with what the evidence is: a verdict that says it already says it once. */
static bool in_verdict(struct json_object *w, struct json_object *line)
{
	return strstr(text_or(js_str(w, "verdict")), json_object_get_string(line)) != NULL;
}

static void print_why(const struct cli *cli, const char *subject, struct json_object *w)
{
	struct json_object *reasons = js_get(w, "reasons");

	printf("%s  %s%s%s\n", paint(cli, "1", subject), text_or(js_str(w, "verdict")), js_str(w, "since") ? "  since " : "", js_str(w, "since") ? js_str(w, "since") : "");
	for (size_t i = 0; i < js_len(reasons); i++) {
		struct json_object *k = js_at(reasons, i), *evidence = js_get(k, "evidence");
		/* the verdict holds a reason that nothing is to be added to */
		if (!js_len(evidence) && js_len(reasons) == 1 && strstr(text_or(js_str(w, "verdict")), text_or(js_str(k, "text"))))
			break;
		printf("  because  %s  [%s]\n", text_or(js_str(k, "text")), text_or(js_str(k, "code")));
		for (size_t e = 0; e < js_len(evidence); e++)
			if (!in_verdict(w, js_at(evidence, e)))
				printf("           %s\n", json_object_get_string(js_at(evidence, e)));
	}
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
	r = id ? client_get(cli, id, &a, "/v1/jobs/%s/why", id) : client_get(cli, args[0], &a, "/v1/nodes/%s/why", quoted);
	if (r)
		return r;
	if (cli->json)
		return print_answer(&a);
	print_why(cli, id ? id : args[0], a.doc);
	return CLI_OK;
}

const struct verb verb_why = { "why", "Understand", "why JOB|NODE", "why a job waits, restarted or failed, why a node is out; with evidence", NULL, run };
