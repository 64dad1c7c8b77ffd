/* What every verb of moectl shares: exit statuses, the verb table, option parsing and error
 * lines. stdout carries data only (with --json the REST document of the route and nothing else);
 * messages and progress go to stderr. */
#pragma once
#include <stdio.h>
#include "lib/base/error.h"
#include "lib/base/util.h"

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
struct cli {
	const struct verb *verb;
	bool json;
	bool raw;  /* control characters of texts stay as they are */
	bool live; /* stdout is a terminal that understands cursor movement */
	bool colour;
	int width, height;      /* of the terminal; 0 = not a terminal, nothing is cut */
	char *url, *token_file; /* --url, --token-file; owned */
	struct client *client;  /* made at the first call; owned */
};

/* argv: what follows the verb; returns the exit status */
typedef int (*verb_fn)(struct cli *cli, int argc, char **argv);
struct verb {
	const char *name, *group; /* group: heading in the overview */
	const char *usage;        /* "submit RECIPE [--set key=value]..." */
	const char *summary;      /* one line of the overview */
	const char *help;         /* options and examples, shown by `moectl help VERB` */
	verb_fn run;
};

enum opt_kind { OPT_FLAG, OPT_STR, OPT_INT, OPT_STRS };
struct strs {
	const char **items;
	size_t n;
};
struct opt {
	const char *name; /* without dashes */
	char letter;      /* 0 = none */
	enum opt_kind kind;
	void *to;         /* bool *, const char **, int64_t *, struct strs * */
	int64_t min, max; /* OPT_INT */
};
/* Reads options (the common --json, --url, --token-file, --help too) and positional arguments,
 * of which there must be min..max; missing ones stay NULL. Returns 0, or an exit status after
 * the error line was printed; CLI_HELP: the help was shown, the verb returns 0. */
#define CLI_HELP (-1)
int cli_options(struct cli *cli, int argc, char **argv, const struct opt *opts, size_t n_opts,
		const char **args, size_t min, size_t max);
/* For verbs: `int r = cli_options(...); if (r) return cli_stop(r);` */
static inline int cli_stop(int r)
{
	return r == CLI_HELP ? CLI_OK : r;
}
void cli_verb_help(const struct verb *v, FILE *to);

/* Prints "moectl: text" on stderr and returns code. */
int cli_fail(int code, const char *fmt, ...) _printf_(2, 3);
/* The same for an error value: "moectl: what: text; hint". */
int cli_fail_error(int code, const char *what, const struct mo_error *err, int errno_code);
/* "moectl: VERB: text; usage: ..." with CLI_USAGE. */
int cli_misuse(const struct cli *cli, const char *fmt, ...) _printf_(2, 3);
/* A word that is none of these: they are listed, and the nearest is asked for. */
int cli_misuse_word(const struct cli *cli, const char *word, const char *const *words, size_t n);
