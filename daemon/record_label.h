/* What a stored record, or a job of a snapshot, says of itself, whatever else is wrong with it:
 * whose it is, when it cannot be read. Called by journal.c and journal_replay.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct label_parts {
	int64_t parts;
};
struct record_label {
	char *type; /* NULL: it does not say; as are MO_NONE below */
	int64_t version, job, id;
	struct label_parts *submit, *spec;
};
void record_label_init(struct record_label *l); /* nothing is said */
void record_label_done(struct record_label *l);
/* text: behind its parts. */
void record_label_of(const char *text, size_t n, struct record_label *ret);
/* The number of the parts that it refers to; MO_NONE: none. */
int64_t record_label_parts(const struct record_label *l);
