/* Lines that several ranks wrote, shown once: "[0-126] NCCL WARN ... (x 127 ranks)". Ranks come
 * one after the other, each with its lines in order; what is shown keeps the order of each rank.
 * Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "lib/base/buf.h"

struct fold_line;
/* Init with {0}. */
struct log_fold {
	struct fold_line *first, *last; /* in the order in which they are shown */
	/* of the rank that is read: its newest line that stands among those (NULL: none), and
	 * those behind it whose place is not known yet */
	struct fold_line *at, *held, *held_last;
	size_t n_held, bytes;
	int64_t rank;
};
void log_fold_done(struct log_fold *f);
/* A line without its newline, copied. What would be too much to keep is appended first, as by
 * log_fold_take(). */
void log_fold_add(struct log_fold *f, int64_t rank, const char *line, struct mo_buf *to);
/* Appends what is there as text, a line each, and forgets it. */
void log_fold_take(struct log_fold *f, struct mo_buf *to);
