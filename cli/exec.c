/* exec JOB [RANK] -- COMMAND...: runs a command beside a rank, and is to whoever called it what the
 * command was: its output, its errors, its exit status. */
#include "cli/exec.h"

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/client_job.h"
#include "cli/options.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/clock.h"
#include "lib/base/parse.h"
#include "lib/model/exec.h"
#include "lib/model/limits.h"

#define LOOK_FIRST_MS 50
#define LOOK_MAX_MS 1000
#define CLI_LATE 124 /* as timeout(1) */
#define CLI_SIGNAL 128

static int ask(struct cli *cli, const char *id, int64_t rank, int64_t timeout, int argc,
	       char **argv, struct answer *ret)
{
	struct json_object *body = json_object_new_object(), *words = json_object_new_array();

	for (int i = 0; i < argc; i++)
		json_object_array_add(words, json_object_new_string(argv[i]));
	json_object_object_add(body, "rank", json_object_new_int64(rank));
	json_object_object_add(body, "command", words);
	if (timeout != MO_NONE)
		json_object_object_add(body, "timeout_s", json_object_new_int64(timeout));
	int r = client_call(cli, "POST", id, json_object_to_json_string(body), ret,
			    "/v1/jobs/%s/exec", id);
	json_object_put(body);
	return r;
}

/* Until it is over; a holds its document then. */
static int await(struct cli *cli, const char *id, struct answer *a)
{
	for (int ms = LOOK_FIRST_MS; !js_get(a->doc, "result"); ms = MO_MIN(2 * ms, LOOK_MAX_MS)) {
		_cleanup_(mo_freep) char *exec = mo_strdup(js_str(a->doc, "id"));

		mo_clock_rest_ms(ms);
		answer_done(a);
		*a = (struct answer){ 0 };
		int r = client_get(cli, id, a, "/v1/jobs/%s/exec/%s", id, exec ? exec : "");
		if (r)
			return r;
	}
	return CLI_OK;
}

static void pass_on(struct json_object *result, const char *key, const char *cut, FILE *to)
{
	const char *text = js_str(result, key);

	if (text)
		fputs(text, to);
	if (json_object_get_boolean(js_get(result, cut)))
		fprintf(stderr,
			"moectl: exec: it wrote more to its standard %s than is kept: the "
			"first %d bytes are shown\n",
			to == stdout ? "output" : "error", EXEC_OUT_MAX);
}

static int end_as(const char *id, struct json_object *result)
{
	const char *error = js_str(result, "error");
	int64_t signal = js_int(result, "signal"), code = js_int(result, "code");

	if (error)
		return cli_fail(CLI_FAILED, "exec %s: %s", id, error);
	pass_on(result, "out", "out_cut", stdout);
	pass_on(result, "err", "err_cut", stderr);
	if (json_object_get_boolean(js_get(result, "late")))
		return cli_fail(CLI_LATE,
				"exec %s: it did not end in time and was killed; --timeout gives "
				"it "
				"longer",
				id);
	return signal != MO_NONE ? CLI_SIGNAL + (int)signal : (int)MO_MAX(code, 0);
}

static int run(struct cli *cli, int argc, char **argv)
{
	const char *args[2] = { NULL };
	int64_t timeout = MO_NONE, rank = 0;
	const struct opt opts[] = { { "timeout", 0, OPT_INT, &timeout, 1,
				      EXEC_DEADLINE_MAX_MS / 1000 } };
	_cleanup_(answer_done) struct answer a = { 0 };
	_cleanup_(mo_freep) char *id = NULL;
	int own = 0;

	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	int r = cli_options(cli, own, argv, opts, ELEMENTSOF(opts), args, 1, 2);
	if (r)
		return cli_stop(r);
	if (own + 1 >= argc)
		return cli_misuse(cli, "the command is missing: name it behind --");
	if (args[1] && mo_parse_i64(args[1], 0, MO_RANKS_MAX, &rank) < 0)
		return cli_misuse(cli, "%s is not the number of a rank", args[1]);
	if ((r = client_job_to_act_on(cli, args[0], &id)) ||
	    (r = ask(cli, id, rank, timeout, argc - own - 1, argv + own + 1, &a)) ||
	    (r = await(cli, id, &a)))
		return r;
	if (cli->json)
		return print_answer(&a);
	return end_as(id, js_get(a.doc, "result"));
}

const struct verb verb_exec = {
	"exec",
	"Act",
	"exec JOB [RANK] [--timeout SECONDS] -- COMMAND...",
	"run a command beside a running rank, on its node and in its image",
	"  --timeout SECONDS   kill it after so long (60; at most 600)\n"
	"Without RANK beside rank 0. It runs as the job's user, with the rank's environment and "
	"directory, and ends with the ranks of its node at the latest; what it leaves "
	"running is killed. It reads no input; 256 KiB of its output are shown.\n"
	"For the job's owner and admins. The exit status is the command's, 124 when it was killed "
	"in the end, 128 and the signal when a signal ended it.\n",
	run,
	.examples = "  moectl exec j-7 3 -- py-spy dump --pid 4711     (pids: `moectl ranks j-7`)\n"
		    "  moectl exec j-7 -- rocm-smi\n",
};
