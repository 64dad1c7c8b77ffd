/* Options of verbs, and the lines that say what was wrong. */
#pragma once
#include <stdio.h>
#include "cli/cli.h"
#include "lib/base/error.h"
#include "lib/base/util.h"

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
/* Options of a verb, those that all have too: what completes a line asks for them (cli.told). */
struct opts_told {
	struct opt_told {
		const char *name; /* without dashes, a literal */
		char letter;      /* 0 = none */
		bool valued;
	} * items;
	size_t n;
};
/* Reads options (the common --json, --url, --token-file, --help too) and positional arguments,
 * of which there must be min..max; missing ones stay NULL. Returns 0, or an exit status after
 * the error line was printed; CLI_HELP: the help was shown, or the options were told (cli.told),
 * and the verb returns 0. It calls this first: nothing is done before. */
#define CLI_HELP (-1)
int cli_options(struct cli *cli, int argc, char **argv, const struct opt *opts, size_t n_opts,
		const char **args, size_t min, size_t max);
/* For verbs: `int r = cli_options(...); if (r) return cli_stop(r);` */
static inline int cli_stop(int r)
{
	return r == CLI_HELP ? CLI_OK : r;
}
void cli_verb_help(const struct verb *v, FILE *to);
extern const char cli_common_help[]; /* lines of the options that all verbs have */

/* Prints "moectl: text" on stderr and returns code. */
int cli_fail(int code, const char *fmt, ...) _printf_(2, 3);
/* The same for an error value: "moectl: what: text; hint". */
int cli_fail_error(int code, const char *what, const struct mo_error *err, int errno_code);
/* "moectl: VERB: text; usage: ...", or where a long one is shown, with CLI_USAGE. */
int cli_misuse(const struct cli *cli, const char *fmt, ...) _printf_(2, 3);
/* A word that is none of these: they are listed, and the nearest is asked for. */
int cli_misuse_word(const struct cli *cli, const char *word, const char *const *words, size_t n);
