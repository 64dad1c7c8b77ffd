/* The bytes that a rank writes, cut into lines as they come. Pure: what is a line and what may go
 * into a log file now; nothing is read and nothing written. A line is seen once, whole, at most
 * MO_LINE_MAX bytes of it; what the log gets are the same bytes in the same order, never half a
 * line of one stream in the middle of another's. */
#pragma once
#include "lib/base/buf.h"

/* One stream. All zero: it begins. */
struct split {
	struct mo_buf line; /* an unfinished one */
	bool skipping;      /* the line was longer: its rest goes into the log, nobody reads it */
	int64_t too_long;   /* such lines */
};
/* A state of a progress bar is text up to a carriage return that no newline follows: it is read
 * like a line, but is none that the last words of a rank should be. */
enum split_kind { SPLIT_LINE, SPLIT_BAR };
/* line: without its end, and without the carriage return before it */
typedef void (*split_fn)(void *arg, enum split_kind kind, const char *line, size_t n);
/* whole: what may be logged now is appended. n > 0. */
void split_bytes(struct split *s, const char *data, size_t n, struct mo_buf *whole, split_fn fn,
		 void *arg);
/* The stream ended: what is left is a line, and is ended in the log. */
void split_end(struct split *s, struct mo_buf *whole, split_fn fn, void *arg);
