/* What init writes and says: the recipe with what is different at its head, the same on stderr,
 * or both as JSON. Lines that have one reason are one. */
#include "cli/init_tell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/visible.h"
#include "lib/base/fd.h"
#include "lib/recipe/draft_text.h"
#include "lib/wire/encode.h"

static char *summary(const struct init *i)
{
	bool one = i->n_compared == 1;

	return mo_printf("%zu %s compared with the original: %zu the same, %zu different; %zu not "
			 "carried over",
			 i->n_compared,
			 i->of_keys ? one ? "key of the configuration" : "keys of the configuration"
			 : one      ? "flag or word of the command"
				    : "flags and words of the command",
			 i->n_same, i->n_differ, i->draft.n_lost);
}

/* What it is made from, with the line of a script. Caller frees. */
static char *place(const struct init *i)
{
	return i->is_line || !i->line.line
		       ? mo_strdup(i->label)
		       : mo_printf("%s:%lld", i->label, (long long)i->line.line);
}

#define LINE_MAX_BYTES 100

/* "WHAT: a, b, c" and what is said of all of them, on as many lines as the list needs. */
static void add_list(char ***lines, size_t *n, const char *what, const char *list,
		     const char *separator, const char *tail)
{
	_cleanup_(mo_buf_done) struct mo_buf b = { 0 };

	mo_buf_printf(&b, "%s: ", what);
	for (size_t fill = 0; *list; fill++) {
		const char *end = strstr(list, separator);
		size_t len = end ? (size_t)(end - list) + strlen(separator) : strlen(list);

		if (fill && b.len + len > LINE_MAX_BYTES) {
			size_t blanks = b.len && b.data[b.len - 1] == ' ';

			mo_strs_printf(lines, n, "%.*s", (int)(b.len - blanks), b.data);
			b.len = 0;
			fill = 0;
			mo_buf_str(&b, "  ");
		}
		mo_buf_add(&b, list, len);
		list += len;
	}
	mo_strs_printf(lines, n, "%.*s%s", (int)b.len, b.data, tail);
}

/* What the recipe's command has on top is one list, with the key that each comes from. */
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
		add_list(lines, n, "different", b.data, ", ", INIT_ADDED);
}

/* "WORDS: WHY" of several with one reason is one list: "WORDS; WORDS: WHY". */
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
		if (b.len)
			add_list(lines, n, "not carried over", b.data, "; ", why);
		else if (!why)
			mo_strs_printf(lines, n, "not carried over: %s", items[k]);
	}
}

/* What is said of it, in the recipe and on stderr. */
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

	_cleanup_(mo_freep) char *where = place(i);
	mo_strs_printf(&lines, &n, "Made by `moectl init` from %s. Read it before you submit it.",
		       where);
	mo_strs_printf(&lines, &n, "%s.", sum);
	all_lines(i, &lines, &n);
	char *text = draft_text(&i->draft, lines, n);
	mo_strs_clear(&lines, &n);
	return text;
}

/* Under one heading. With the recipe itself on the terminal, its comments say it already. */
static void tell(const struct init *i)
{
	_cleanup_(mo_freep) char *sum = summary(i);
	char **lines = NULL;
	size_t n = 0;

	_cleanup_(mo_freep) char *where = place(i);

	fprintf(stderr, "%s: %s\n", i->is_line ? "init" : where, sum);
	if (i->out || !isatty(STDOUT_FILENO))
		all_lines(i, &lines, &n);
	for (size_t k = 0; k < n; k++) {
		_cleanup_(mo_freep) char *text = visible(lines[k]);

		fprintf(stderr, "  %s\n", text);
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
	else if (i->out && (r = mo_write_all(fd, text, strlen(text))) < 0)
		(void)unlink(i->out); /* half a recipe is none */
	if (r < 0)
		return init_no_out(i->out, r);
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
