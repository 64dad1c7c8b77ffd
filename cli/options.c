/* Options of a verb: a table of names and targets. Anything unknown is an error that names the
 * nearest option. */
#include "cli/options.h"

#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>

#include "cli/usage.h"
#include "cli/visible.h"
#include "lib/base/buf.h"
#include "lib/base/parse.h"

/* What went wrong may be said in words of others: a file's content, a daemon's last line. */
static _printf_(1, 0) void print_safely(const char *fmt, va_list ap)
{
	_cleanup_(mo_freep) char *text = mo_vprintf(fmt, ap);
	_cleanup_(mo_freep) char *shown = visible(text);

	fprintf(stderr, "moectl: %s\n", shown);
}

int cli_fail(int code, const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	va_start(ap, fmt);
	print_safely(fmt, ap);
	va_end(ap);
	return code;
}

int cli_fail_error(int code, const char *what, const struct mo_error *err, int errno_code)
{
	const char *hint = err && err->hint ? err->hint : NULL;
	return cli_fail(code, "%s: %s%s%s", what, mo_error_text(err, errno_code), hint ? "; " : "",
			hint ? hint : "");
}

/* A longer usage would bury what is wrong. */
#define USAGE_SHOWN 72

int cli_misuse(const struct cli *cli, const char *fmt, ...)
{
	const struct verb *v = cli->verb;
	va_list ap;
	fflush(stdout);
	fprintf(stderr, "moectl: %s: ", v->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	if (strlen(v->usage) <= USAGE_SHOWN)
		fprintf(stderr, "; usage: moectl %s\n", v->usage);
	else
		fprintf(stderr, "; `moectl help %s` shows the usage\n", v->name);
	return CLI_USAGE;
}

int cli_misuse_word(const struct cli *cli, const char *word, const char *const *words, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf list = { 0 };
	const char *near = mo_near_miss(word, words, n);

	for (size_t i = 0; i < n; i++)
		mo_buf_printf(&list, "%s%s", i ? ", " : "", words[i]);
	return cli_misuse(cli, "%s is none of %s%s%s%s", word, list.data,
			  near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

/* The n-th word behind the verb, from 0, was not given. */
static int missing(const struct cli *cli, size_t n)
{
	_cleanup_(mo_freep) char *ways = usage_ways(cli->verb);
	const char *word = cli->verb->usage;

	if (strchr(ways, ','))
		return cli_misuse(cli, "it needs one of %s", ways);
	for (size_t i = 0; i <= n && *word; i++) {
		word += strcspn(word, " ");
		word += strspn(word, " ");
	}
	return cli_misuse(cli, "%.*s is missing", (int)strcspn(word, " "), word);
}

const char cli_common_help[] =
	"  --json             print the REST document (one object per line for streams)\n"
	"  --raw              control characters of texts as they are, not as \\x1b: they may "
	"steer "
	"the terminal\n"
	"  --url URL          controller: http(s)://host:port or unix:/path (else MOE_URL, "
	"~/.config/moe/config.yaml, unix:/run/moe/moed.sock, the local cluster)\n"
	"  --token-file FILE  bearer token (else MOE_TOKEN, MOE_TOKEN_FILE, the configuration "
	"file)\n";

void cli_verb_help(const struct verb *v, FILE *to)
{
	fprintf(to, "usage: moectl %s\n\n%s\n", v->usage, v->summary);
	if (v->help)
		fprintf(to, "\n%s", v->help);
	fprintf(to, "\nExamples:\n%s", v->examples);
	fprintf(to, "\nCommon options:\n%s", cli_common_help);
}

static const struct opt *find(const struct opt *opts, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(opts[i].name) == len && !strncmp(opts[i].name, name, len))
			return &opts[i];
	return NULL;
}

static int unknown(const struct cli *cli, const struct opt *opts, size_t n,
		   const struct opt *common, size_t n_common, const char *word)
{
	_cleanup_(mo_freep) const char **names = mo_alloc_array(n + n_common, sizeof(*names));
	_cleanup_(mo_freep) char *name = mo_strndup(word + 2, strcspn(word + 2, "="));
	for (size_t i = 0; i < n; i++)
		names[i] = opts[i].name;
	for (size_t i = 0; i < n_common; i++)
		names[n + i] = common[i].name;
	const char *near = mo_near_miss(name, names, n + n_common);
	if (near)
		return cli_misuse(cli, "unknown option --%s (did you mean --%s?)", name, near);
	return cli_misuse(cli, "unknown option %s", word);
}

/* word: the option as it was typed. */
static int store(const struct cli *cli, const struct opt *o, const char *word, const char *value)
{
	int64_t number = 0;
	switch (o->kind) {
	case OPT_FLAG: *(bool *)o->to = true; return 0;
	case OPT_STR: *(const char **)o->to = value; return 0;
	case OPT_INT:
		if (mo_parse_i64(value, o->min, o->max, &number) < 0)
			return cli_misuse(cli, "%.*s %s is not a number from %lld to %lld",
					  word[1] == '-' ? (int)strcspn(word, "=") : 2, word, value,
					  (long long)o->min, (long long)o->max);
		*(int64_t *)o->to = number;
		return 0;
	case OPT_STRS: {
		struct strs *list = o->to;
		*MO_GROW(list->items, list->n) = value;
		return 0;
	}
	}
	return 0;
}

static void tell(struct opts_told *told, const struct opt *opts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*MO_GROW(told->items, told->n) =
			(struct opt_told){ opts[i].name, opts[i].letter, opts[i].kind != OPT_FLAG };
}

int cli_options(struct cli *cli, int argc, char **argv, const struct opt *opts, size_t n_opts,
		const char **args, size_t min, size_t max)
{
	bool help = false, words_only = false;
	const char *url = NULL, *token_file = NULL;
	const struct opt common[] = {
		{ "json", 0, OPT_FLAG, &cli->json }, { "help", 'h', OPT_FLAG, &help },
		{ "url", 0, OPT_STR, &url },         { "token-file", 0, OPT_STR, &token_file },
		{ "raw", 0, OPT_FLAG, &cli->raw },
	};
	size_t n = 0;
	if (cli->told) {
		tell(cli->told, opts, n_opts);
		tell(cli->told, common, ELEMENTSOF(common));
		return CLI_HELP;
	}
	for (int i = 0; i < argc; i++) {
		const char *word = argv[i];
		const struct opt *o = NULL;
		const char *value = NULL;
		if (words_only || word[0] != '-' || !word[1]) {
			if (n == max)
				return cli_misuse(cli, "unexpected argument %s", word);
			args[n++] = word;
			continue;
		}
		if (!strcmp(word, "--")) {
			words_only = true;
			continue;
		}
		if (word[1] == '-') {
			size_t len = strcspn(word + 2, "=");
			o = find(opts, n_opts, word + 2, len);
			if (!o)
				o = find(common, ELEMENTSOF(common), word + 2, len);
			if (!o)
				return unknown(cli, opts, n_opts, common, ELEMENTSOF(common), word);
			value = word[2 + len] == '=' ? word + 3 + len : NULL;
		} else {
			for (size_t k = 0; k < n_opts && !o; k++)
				o = opts[k].letter && opts[k].letter == word[1] ? &opts[k] : NULL;
			if (!o && word[1] == 'h')
				o = &common[1];
			if (!o || (o->kind == OPT_FLAG && word[2]))
				return cli_misuse(cli, "unknown option %s", word);
			value = word[2] ? word + 2 : NULL;
		}
		if (o->kind == OPT_FLAG && value)
			return cli_misuse(cli, "option --%s takes no value", o->name);
		if (o->kind != OPT_FLAG && !value) {
			if (i + 1 == argc)
				return cli_misuse(cli, "option %s needs a value", word);
			value = argv[++i];
		}
		int r = store(cli, o, word, value);
		if (r)
			return r;
	}
	if (help) {
		cli_verb_help(cli->verb, stdout);
		return CLI_HELP;
	}
	if (url)
		mo_str_set(&cli->url, url);
	if (token_file)
		mo_str_set(&cli->token_file, token_file);
	return n < min ? missing(cli, n) : 0;
}
