/* agent/stepd/entry.c and journal.c by themselves: what stepd reads of its spool entry and has of
 * its journal, where its other names are not known. */
#pragma once
#include <stdbool.h>

#include "lib/model/launch.h"
#include "lib/model/note.h"

struct writer;
/* NULL: another supervisor lives, or had begun, or nothing says what to run. again: it wants a
 * turn in so many us. */
struct writer *writer_new(const char *dir, void (*again)(void *arg, int64_t us), void *arg);
struct writer *writer_free(struct writer *w);
const struct launch *writer_launch(const struct writer *w); /* as it read it */
void writer_add(struct writer *w, const struct note *n);
void writer_flush(struct writer *w);
bool writer_waits(const struct writer *w);      /* for its disk */
int64_t writer_written(const struct writer *w); /* number of the last note in the file */
void writer_segment_ends(struct writer *w);
