/* What submits have in common: the engine's description and the profiles of the environment are
 * three quarters of a submit's text and the same for most jobs; variables are not, as engines have
 * one that names where the job saves. Each distinct set is stored once, as
 * a line "parts N JSON" before the text that uses it first, and referred to by its number. Texts
 * must be stored in the order they were made. Called by journal.c and journal_replay.c. */
#pragma once
#include "daemon/core/state/state.h"
#include "lib/base/buf.h"
#include "lib/base/error.h"

/* distinct sets that a new text refers to; a submit with yet another one is stored whole */
#define PARTS_MAX 256

struct parts_set;
struct parts_table {
	struct parts_set **items; /* last used first */
	size_t n;
	int64_t last_id; /* no number up to it is given again */
};
void parts_table_done(struct parts_table *t);
/* Forgets all but the n last used: they are not referred to again. */
void parts_forget(struct parts_table *t, size_t n);
/* Number of the submit's parts in t; a new one is added and its line appended to b. MO_NONE: the
 * table is full. */
int64_t parts_refer(struct parts_table *t, const struct submit *s, struct mo_buf *b);
/* The submit without its parts, which parts_refer() has numbered: a shallow copy; owns nothing but
 * `own` itself, which the caller frees. */
struct submit parts_stripped(const struct submit *s, int64_t parts);
/* Gives a submit that was read what it refers to. -EINVAL with err: that is not there. */
int parts_fill(const struct parts_table *t, struct submit *s, struct mo_error *err);
/* Reads the lines "parts N JSON" at the beginning; *text and *n then are the rest. A negative errno
 * with err. */
int parts_read(struct parts_table *t, const char **text, size_t *n, struct mo_error *err);
/* The text behind its parts, which are not read. */
const char *parts_behind(const char *text, size_t *n);
/* Appends the line of that set; false: there is none. */
bool parts_write(const struct parts_table *t, int64_t id, struct mo_buf *b);
