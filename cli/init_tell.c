/* What init writes and says: the recipe with what is different at its head, the same on stderr,
 * or both as JSON. Lines that have one reason are one. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/init.h"
#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/wire/json.h"

static char *summary(const struct init *i)
{
	return mo_printf("%zu %s compared with the original: %zu the same, %zu different; %zu not "
			 "carried over",
			 i->n_compared,
			 i->of_keys ? "keys of the configuration"
				    : "flags and words of the command",
			 i->n_same, i->n_differ, i->draft.n_lost);
}

/* What the recipe's command has on top is one line, with the key that each comes from. */
static void add_different(const struct init *i, char ***lines, size_t *n)
{
	static const char own[] = " (" INIT_ENGINES_WORD ")";
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	for (size_t k = 0; k < i->n_differ; k++) {
		const char *text = i->differ[k], *end = strstr(text, INIT_ADDED);

		if (!end) {
			mo_strs_printf(lines, n, "different: %s", text);
			continue;
		}
		const char *from = end + strlen(INIT_ADDED);

		mo_buf_printf(&b, "%s%.*s%s", b.len ? ", " : "", (int)(end - text), text,
			      mo_streq(from, own) ? "" : from);
	}
	if (b.len)
		mo_strs_printf(lines, n, "different: %s%s", b.data, INIT_ADDED);
}

/* "WORDS: WHY" of several with one reason is one line: "WORDS; WORDS: WHY". */
static void add_lost(const struct init *i, char ***lines, size_t *n)
{
	char *const *items = i->draft.lost;
	size_t of = i->draft.n_lost;
	_cleanup_(mo_freep) bool *done = mo_alloc_array(of + 1, sizeof(*done));

	for (size_t k = 0; k < of; k++) {
		const char *why = strstr(items[k], ": ");
		_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

		for (size_t m = k; why && m < of; m++) {
			const char *end = strstr(items[m], ": ");

			if (done[m] || !mo_streq(end, why))
				continue;
			mo_buf_printf(&b, "%s%.*s", b.len ? "; " : "", (int)(end - items[m]),
				      items[m]);
			done[m] = true;
		}
		if (b.len || !why)
			mo_strs_printf(lines, n, "not carried over: %s%s",
				       b.len ? b.data : items[k], why ? why : "");
	}
}

/* What is told, in the recipe and on stderr. */
static void all_lines(const struct init *i, char ***lines, size_t *n)
{
	add_different(i, lines, n);
	add_lost(i, lines, n);
	for (size_t k = 0; k < i->n_notes; k++)
		mo_strs_printf(lines, n, "note: %s", i->notes[k]);
}

static char *whole_text(const struct init *i)
{
	_cleanup_(mo_freep) char *sum = summary(i);
	char **lines = NULL;
	size_t n = 0;

	mo_strs_printf(&lines, &n, "Made by `moectl init` from %s. Read it before you submit it.",
		       i->label);
	mo_strs_printf(&lines, &n, "%s.", sum);
	all_lines(i, &lines, &n);
	char *text = draft_text(&i->draft, lines, n);
	mo_strs_clear(&lines, &n);
	return text;
}

/* With the recipe itself on the terminal, its comments say it already. */
static void tell(const struct init *i)
{
	_cleanup_(mo_freep) char *sum = summary(i);
	char **lines = NULL;
	size_t n = 0;

	/* a whole line before each of these hides them */
	const char *who = i->is_line ? "init" : i->label;

	fprintf(stderr, "%s: %s\n", who, sum);
	if (i->out || !isatty(STDOUT_FILENO))
		all_lines(i, &lines, &n);
	for (size_t k = 0; k < n; k++) {
		_cleanup_(mo_freep) char *text = visible(lines[k]);

		fprintf(stderr, "%s: %s\n", who, text);
	}
	mo_strs_clear(&lines, &n);
}

static void list_json(const char *key, char *const *items, size_t n, struct mo_buf *b)
{
	mo_buf_printf(b, ",\"%s\":[", key);
	for (size_t k = 0; k < n; k++) {
		mo_buf_str(b, k ? "," : "");
		wire_string(items[k], b);
	}
	mo_buf_str(b, "]");
}

static void print_init(const struct init *i, const char *text)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_str(&b, "{\"recipe\":");
	wire_string(text, &b);
	mo_buf_str(&b, ",\"out\":");
	wire_string(i->out ? i->out : "", &b);
	mo_buf_printf(&b, ",\"compared\":%zu,\"same\":%zu", i->n_compared, i->n_same);
	list_json("different", i->differ, i->n_differ, &b);
	list_json("lost", i->draft.lost, i->draft.n_lost, &b);
	list_json("notes", i->notes, i->n_notes, &b);
	mo_buf_str(&b, "}");
	puts(b.data);
}

int init_put(const struct init *i, const struct cli *cli)
{
	_cleanup_(mo_freep) char *text = whole_text(i);
	_cleanup_(mo_closep) int fd = -1;
	int r = 0;

	if (i->out && i->force)
		r = mo_write_file(i->out, text, strlen(text), 0644, false);
	else if (i->out && (fd = open(i->out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
		r = -errno;
	else if (i->out)
		r = mo_write_all(fd, text, strlen(text));
	if (r == -EEXIST)
		return cli_fail(CLI_USAGE,
				"init: %s: it is there already, and nothing was changed; --force "
				"overwrites it",
				i->out);
	if (r < 0)
		return cli_fail(CLI_FAILED, "init: %s: %s; choose another --out", i->out,
				strerror(-r));
	tell(i);
	if (cli->json)
		print_init(i, text);
	else if (i->out)
		fprintf(stderr, "%s: written; next: moectl %s %s\n", i->out,
			i->of_keys ? "plan" : "submit --dry-run", i->out); /* no model, no plan */
	else
		fputs(text, stdout);
	return CLI_OK;
}
