/* moectl: the command line of the cluster. A table of verbs; each lives in a file of its own. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/backup.h"
#include "cli/checkpoints.h"
#include "cli/classify.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/complete.h"
#include "cli/control.h"
#include "cli/debug.h"
#include "cli/doctor.h"
#include "cli/events.h"
#include "cli/exec.h"
#include "cli/explain.h"
#include "cli/image.h"
#include "cli/fabric.h"
#include "cli/init.h"
#include "cli/list.h"
#include "cli/local.h"
#include "cli/logs.h"
#include "cli/metrics.h"
#include "cli/nodes.h"
#include "cli/nodes_act.h"
#include "cli/options.h"
#include "cli/plan.h"
#include "cli/ranks.h"
#include "cli/report.h"
#include "cli/resolve.h"
#include "cli/status.h"
#include "cli/submit.h"
#include "cli/token.h"
#include "cli/top.h"
#include "cli/validate.h"
#include "cli/watch.h"
#include "cli/webhooks.h"
#include "cli/why.h"
#include "lib/base/parse.h"

static const struct verb *const verbs[] = {
	&verb_init,   &verb_submit,   &verb_validate, &verb_plan,        &verb_fabric,
	&verb_list,   &verb_status,   &verb_watch,    &verb_top,         &verb_logs,
	&verb_events, &verb_metrics,  &verb_ranks,    &verb_checkpoints, &verb_report,
	&verb_cancel, &verb_pause,    &verb_resume,   &verb_restart,     &verb_exec,
	&verb_nodes,  &verb_node,     &verb_drain,    &verb_undrain,     &verb_ack,
	&verb_fence,  &verb_resolve,  &verb_why,      &verb_explain,     &verb_classify,
	&verb_token,  &verb_webhooks, &verb_backup,   &verb_doctor,      &verb_image,
	&verb_debug,  &verb_local,
};

static void cli_done(struct cli *cli)
{
	client_free(cli->client);
	free(cli->url);
	free(cli->token_file);
}

static int overview(FILE *to)
{
	const char *group = "";
	fputs("moectl " MO_VERSION ": large mixture-of-experts training on clusters of AMD GPUs\n\n"
	      "Start here (no cluster needed):\n"
	      "  moectl local up                       a cluster on this machine\n"
	      "  moectl submit recipe.yaml --watch     train and see it\n",
	      to);
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
		if (strcmp(group, verbs[i]->group))
			fprintf(to, "\n%s\n", verbs[i]->group);
		group = verbs[i]->group;
		fprintf(to, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
	}
	fputs("\n`moectl help VERB` shows usage, options and examples. A JOB is an id (j-7) or a "
	      "name: the newest job of that name.\n",
	      to);
	return CLI_OK;
}

static const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	return NULL;
}

static int unknown_verb(const char *name)
{
	static const char *const before[] = { "--json", "--url", "--token-file", "--help",
					      "--version" };
	const char *meant = mo_near_miss(name, before, ELEMENTSOF(before));
	if (name[0] == '-' && meant)
		return cli_fail(CLI_USAGE, "unknown option %s: did you mean %s?", name, meant);
	if (name[0] == '-')
		return cli_fail(CLI_USAGE,
				"%s: unknown before the verb: only --json, --url and --token-file "
				"may stand there; `moectl help VERB` shows those of a verb",
				name);
	const char *names[ELEMENTSOF(verbs)];
	for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
		names[i] = verbs[i]->name;
	const char *near = mo_near_miss(name, names, ELEMENTSOF(names));
	if (near)
		return cli_fail(CLI_USAGE,
				"unknown verb %s: did you mean %s? `moectl help` lists all", name,
				near);
	return cli_fail(CLI_USAGE,
			"unknown verb %s: there is no such command; `moectl help` lists all", name);
}

static void read_terminal(struct cli *cli)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	struct winsize size = { 0 };
	bool smart = term && strcmp(term, "dumb");
	cli->live = isatty(STDOUT_FILENO) && smart;
	cli->colour = cli->live && !(no_colour && *no_colour);
	if (!isatty(STDOUT_FILENO))
		return;
	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	cli->width = size.ws_col ? size.ws_col : 80;
	cli->height = size.ws_row ? size.ws_row : 24;
}

/* What was not written is an error, unless another one was printed already. */
static int finish(int r)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || r != CLI_OK)
		return r;
	return cli_fail(CLI_FAILED, "writing the output: %s; free space or check the reader",
			errno ? strerror(errno) : "it failed");
}

/* --json, --url and --token-file may stand before the verb too. *ret_used words are taken, 0 =
 * it is none of them. 0 or an exit status. */
static int global_option(struct cli *cli, int argc, char **argv, int *ret_used)
{
	static const char *const names[] = { "--url", "--token-file" };
	char **const to[] = { &cli->url, &cli->token_file };
	*ret_used = 0;
	if (!strcmp(argv[0], "--json")) {
		cli->json = true;
		*ret_used = 1;
		return CLI_OK;
	}
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		size_t n = strlen(names[i]);
		if (strncmp(argv[0], names[i], n) || (argv[0][n] && argv[0][n] != '='))
			continue;
		if (!argv[0][n] && argc < 2)
			return cli_fail(CLI_USAGE,
					"%s: it needs a value, and a verb behind it; `moectl help` "
					"lists the verbs",
					names[i]);
		mo_str_set(to[i], argv[0][n] ? argv[0] + n + 1 : argv[1]);
		*ret_used = argv[0][n] ? 1 : 2;
	}
	return CLI_OK;
}

int main(int argc, char **argv)
{
	_cleanup_(cli_done) struct cli cli = { 0 };
	int first = 1;
	read_terminal(&cli);
	for (int used = 1; first < argc && used; first += used) {
		int r = global_option(&cli, argc - first, argv + first, &used);
		if (r)
			return r;
	}
	if (first >= argc) {
		overview(stderr);
		return CLI_USAGE;
	}
	const char *name = argv[first];
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		printf("moectl %s\n", MO_VERSION);
		return finish(CLI_OK);
	}
	if (!strcmp(name, "complete")) { /* for shells: cli/completion */
		first += 1 + (first + 1 < argc && !strcmp(argv[first + 1], "--"));
		return complete(&cli, verbs, ELEMENTSOF(verbs), argc - first, argv + first);
	}
	bool help = !strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h");
	if (help && first + 1 == argc)
		return finish(overview(stdout));
	const struct verb *v = verb_find(help ? argv[first + 1] : name);
	if (!v)
		return unknown_verb(help ? argv[first + 1] : name);
	cli.verb = v;
	if (help) {
		cli_verb_help(v, stdout);
		return finish(CLI_OK);
	}
	return finish(v->run(&cli, argc - first - 1, argv + first + 1));
}
