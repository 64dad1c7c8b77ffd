/* The text of a file in quarantine: lines "# text" for the reader; "job TEXT", the job; "N TEXT",
 * stored record N. Lines with one and the same first word belong together: "parts" and then the
 * JSON that refers to them. */
#pragma once
#include "lib/base/buf.h"
#include "lib/base/error.h"

#define QUARANTINE_JOB "job"
/* so that one of which the end is missing is not taken for all of it */
#define QUARANTINE_ENDS_SO "# The last line of this file is '# end'.\n"
#define QUARANTINE_END "# end\n"

/* Adds each line of text with word in front. */
void quarantine_lines(struct mo_buf *b, const char *word, const char *text);
/* Calls fn for each run of lines with the same first word, until it returns less than 0. */
int quarantine_each(const char *text,
		    int (*fn)(void *arg, const char *word, const char *text, struct mo_error *err),
		    void *arg, struct mo_error *err);
/* One of an earlier version does not say how it ends. Editors differ in the last newline. */
bool quarantine_is_cut(const struct mo_buf *text);
