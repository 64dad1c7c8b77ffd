/* Output of ranks as it comes in pieces, made into lines. */
#pragma once
#include <json-c/json.h>
#include <regex.h>

#include "cli/cli.h"
#include "cli/log_fold.h"
#include "lib/base/buf.h"

/* A rank; offset MO_NONE: nothing has come yet. first: where its first piece began; n_lines: how
 * many came. */
struct log_source {
	int64_t rank, offset, first, n_lines;
	bool end, unread, said; /* unread: its log could not be read; said: some text of it came */
	struct mo_buf line;
};
struct log_lines {
	const struct cli *cli;
	const regex_t *grep; /* borrowed; NULL: all lines are shown */
	const char *since;   /* what was asked for; NULL: everything. Borrowed */
	bool labelled;       /* each line names its rank; else the text is shown as it comes */
	bool folded;         /* labelled ones that are equal are one: shown by log_lines_show() */
	bool failed;         /* some rank's log could not be read */
	struct log_fold fold;
	int64_t attempt;
	struct log_source *sources; /* by rank, ascending */
	size_t n_sources;
};
void log_lines_done(struct log_lines *l);
/* Forgets those before. ranks: n of them, ascending. */
void log_lines_begin(struct log_lines *l, int64_t attempt, const int64_t *ranks, size_t n);
/* One record of the stream, {rank, offset, text, ...}: prints the lines that it completes. */
void log_lines_take(struct log_lines *l, struct json_object *record);
/* Folded lines of all ranks so far. */
void log_lines_show(struct log_lines *l);
bool log_lines_came(const struct log_lines *l);  /* anything of any rank */
bool log_lines_ended(const struct log_lines *l); /* nothing more will come of any */
/* asked: lines of each rank, MO_NONE all. Says of which ranks fewer are kept, and which have
 * written nothing. */
void log_lines_sum_up(const struct log_lines *l, int64_t asked);
