/* Reading a step's journal (segments notes.<first n>, docs/protocol.md), continuing it after
 * stepd's proven death, and deleting what was acknowledged. */
#pragma once
#include "lib/base/buf.h"
#include "lib/model/note.h"

struct journal {
	int dir_fd; /* borrowed */
	/* first numbers, ascending; the last one is being read */
	int64_t *segments;
	size_t n_segments;
	int fd;
	int64_t offset;        /* of the last segment: bytes read */
	struct mo_buf partial; /* an unfinished line */
	int64_t last;          /* highest note read */
};
void journal_init(struct journal *j, int dir_fd);
void journal_done(struct journal *j);
/* Calls fn for each new complete line; fn takes over the heap note. Lines that are no note are
 * skipped (counted in the result). 0 or more, or a negative errno. */
int journal_read(struct journal *j, void (*fn)(void *arg, struct note *note), void *arg);
/* Appends one note; a torn last line of the dead stepd is cut off. Only while holding the step's
 * lock. It outlives the agent; no sync is owed: a loss of power ends the step, and nobody reads
 * notes of another boot. */
int journal_append(struct journal *j, const struct note *n);
/* Deletes segments whose notes are all <= through, never the last one, nor the first: it says which
 * processes the ranks are, which a later agent has to know. */
void journal_trim(struct journal *j, int64_t through);
