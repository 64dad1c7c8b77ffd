/* agent/stepd/journal.c by itself: what stepd has of its journal, where its other names are not
 * known. */
#pragma once
#include <stdbool.h>

#include "lib/model/note.h"

struct writer;
/* NULL: another supervisor had begun. again: it wants a turn in so many us. */
struct writer *writer_new(const char *dir, void (*again)(void *arg, int64_t us), void *arg);
struct writer *writer_free(struct writer *w);
void writer_add(struct writer *w, const struct note *n);
void writer_flush(struct writer *w);
bool writer_waits(const struct writer *w);      /* for its disk */
int64_t writer_written(const struct writer *w); /* number of the last note in the file */
void writer_segment_ends(struct writer *w);
