/* See log_lines.h. */
#include "cli/log_lines.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/value.h"
#include "cli/visible.h"
#include "lib/base/idset.h"
#include "lib/wire/encode.h"

#define PARTIAL_MAX (64 * 1024) /* a line longer than this is printed in pieces */

static void forget_sources(struct log_lines *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		mo_buf_done(&l->sources[i].line);
	free(l->sources);
	l->sources = NULL;
	l->n_sources = 0;
}

void log_lines_done(struct log_lines *l)
{
	forget_sources(l);
	log_fold_done(&l->fold);
}

void log_lines_begin(struct log_lines *l, int64_t attempt, const int64_t *ranks, size_t n)
{
	forget_sources(l);
	l->attempt = attempt;
	l->n_sources = n;
	l->sources = mo_alloc_array(n, sizeof(*l->sources));
	for (size_t i = 0; i < n; i++)
		l->sources[i] = (struct log_source){ .rank = ranks[i], .offset = MO_NONE };
}

static bool wanted(const struct log_lines *l, const char *line)
{
	return !l->grep || regexec(l->grep, line, 0, NULL, 0) == 0;
}

static void print_line(struct log_lines *l, int64_t rank, const char *begin, size_t n)
{
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };
	_cleanup_(mo_freep) char *line = mo_strndup(begin, n);

	if (!wanted(l, line))
		return;
	if (!l->cli->json && l->labelled && l->folded) {
		log_fold_add(&l->fold, rank, line, &out);
		fputs(out.len ? out.data : "", stdout);
		return;
	}
	if (!l->cli->json && l->labelled)
		printf("[%lld] ", (long long)rank);
	if (!l->cli->json) {
		puts(line);
		return;
	}
	mo_buf_printf(&out, "{\"attempt\":%lld,\"rank\":%lld,\"line\":", (long long)l->attempt,
		      (long long)rank);
	wire_string(line, &out);
	mo_buf_str(&out, "}");
	print_json(out.data, out.len);
}

/* Whole lines; the rest stays in line, unless the rank has ended. */
static void print_lines(struct log_lines *l, struct log_source *s)
{
	size_t at = 0;

	while (at < s->line.len) {
		const char *begin = s->line.data + at, *nl = memchr(begin, '\n', s->line.len - at);
		size_t n = nl ? (size_t)(nl - begin) : s->line.len - at;

		if (!nl && !s->end && n < PARTIAL_MAX)
			break;
		print_line(l, s->rank, begin, n);
		at += n + (nl != NULL);
	}
	mo_buf_consume(&s->line, at);
}

static int by_rank(const void *key, const void *item)
{
	int64_t rank = *(const int64_t *)key, other = ((const struct log_source *)item)->rank;

	return (rank > other) - (rank < other);
}

void log_lines_take(struct log_lines *l, struct json_object *o)
{
	int64_t rank = js_int(o, "rank"), lost = js_int(o, "lost");
	struct log_source *s = l->n_sources ? bsearch(&rank, l->sources, l->n_sources,
						      sizeof(*l->sources), by_rank)
					    : NULL;
	const char *text = js_str(o, "text"), *error = js_str(o, "error");
	_cleanup_(mo_buf_done) struct mo_buf shown = { 0 };

	if (!s || !text)
		return;
	if (s->offset == MO_NONE)
		s->first = js_int(o, "offset") - (int64_t)strlen(text);
	for (const char *nl = text; (nl = strchr(nl, '\n')); nl++)
		s->n_lines++;
	s->offset = js_int(o, "offset");
	s->said = s->said || *text;
	s->end = json_object_get_boolean(js_get(o, "end"));
	if (!l->cli->raw && !l->cli->json)
		visible_add(&shown, text, strlen(text), VISIBLE_OUTPUT);
	else
		mo_buf_str(&shown, text);
	text = shown.len ? shown.data : "";
	if (lost > 0)
		fprintf(stderr,
			"moectl: logs: %lld bytes of rank %lld are gone, its log was rotated\n",
			(long long)lost, (long long)rank);
	if (!l->labelled && !l->cli->json && !l->grep) {
		/* as it is: progress bars live of unfinished lines */
		fputs(text, stdout);
	} else {
		mo_buf_str(&s->line, text);
		print_lines(l, s);
	}
	if (error) {
		cli_fail(CLI_FAILED, "logs of rank %lld: %s", (long long)rank, error);
		l->failed = s->unread = true;
	}
}

void log_lines_show(struct log_lines *l)
{
	_cleanup_(mo_buf_done) struct mo_buf out = { 0 };

	log_fold_take(&l->fold, &out);
	fputs(out.len ? out.data : "", stdout);
}

bool log_lines_came(const struct log_lines *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		if (l->sources[i].offset != MO_NONE)
			return true;
	return false;
}

bool log_lines_ended(const struct log_lines *l)
{
	for (size_t i = 0; i < l->n_sources; i++)
		if (!l->sources[i].end)
			return false;
	return true;
}

/* since: "": at all */
static void say_nothing(const struct log_lines *l, const struct mo_idset *ranks, const char *since)
{
	_cleanup_(mo_freep) char *list = mo_idset_format(ranks);
	size_t n = mo_idset_count(ranks);

	if (n)
		fprintf(stderr,
			"moectl: logs: rank%s %s: nothing was written in attempt %lld%s%s\n",
			n == 1 ? "" : "s", list, (long long)l->attempt, *since ? " since " : "",
			since);
}

void log_lines_sum_up(const struct log_lines *l, int64_t asked)
{
	_cleanup_(mo_idset_done) struct mo_idset silent = { 0 }, quiet = { 0 };

	for (size_t i = 0; i < l->n_sources; i++) {
		const struct log_source *s = &l->sources[i];

		/* fewer lines than were asked for, and not because there never were more */
		if (!l->since && s->offset != MO_NONE && s->first > 0 && s->n_lines < asked)
			fprintf(stderr,
				"moectl: logs: rank %lld: only its last %lld lines are kept; what "
				"was before them was rotated away (log_bytes of the agent)\n",
				(long long)s->rank, (long long)s->n_lines);
		if (s->offset == 0 && asked != 0 && !s->unread)
			mo_idset_add(&silent, (size_t)s->rank);
		else if (l->since && s->offset > 0 && asked != 0 && !s->unread && !s->said)
			mo_idset_add(&quiet, (size_t)s->rank);
	}
	say_nothing(l, &silent, "");
	say_nothing(l, &quiet, l->since ? l->since : "");
}
