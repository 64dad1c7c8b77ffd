/* What every verb of moectl shares: exit statuses and what a verb is. stdout carries data only
 * (with --json the REST document of the route and nothing else); messages and progress go to
 * stderr. */
#pragma once
#include <stdbool.h>

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2,
	CLI_UNREACHABLE = 3,
	CLI_DENIED = 4,
	CLI_NOT_FOUND = 5,
	CLI_JOB_FAILED = 10,
	CLI_JOB_CANCELLED = 11, /* submit --watch, watch */
};

struct client;
struct opts_told;
struct cli {
	const struct verb *verb;
	bool json;
	bool raw;  /* control characters of texts stay as they are */
	bool live; /* stdout is a terminal that understands cursor movement */
	bool colour;
	int width, height;      /* of the terminal; 0 = not a terminal, nothing is cut */
	char *url, *token_file; /* --url, --token-file; owned */
	struct client *client;  /* made at the first call; owned */
	struct opts_told *told; /* a verb writes its options into it and does nothing else */
};

/* argv: what follows the verb; returns the exit status */
typedef int (*verb_fn)(struct cli *cli, int argc, char **argv);
struct verb {
	const char *name, *group; /* group: heading in the overview */
	const char *usage;        /* "submit RECIPE [--set key=value]..." */
	const char *summary;      /* one line of the overview */
	const char *help;         /* of the options, shown by `moectl help VERB` */
	verb_fn run;
	const char *examples; /* lines that can be typed so, shown behind the help */
};
