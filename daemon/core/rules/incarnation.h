/* What waits, and what a person decides, after a new incarnation (state/incarnation.h says what
 * that is). */
#pragma once
#include "daemon/core/state/incarnation.h"
#include "daemon/core/state/state.h"

struct turn;

/* times down_us: for nodes that joined after the backup */
#define RESTORED_WAIT_DOWNS 3

/* Why the job must not get an attempt now; NULL = it may. Caller frees. *ret_until: when that ends
 * by itself, else untouched. */
char *incarnation_holds(const struct state *s, const struct job *j, int64_t now,
			int64_t *ret_until);
/* The unknown steps of the job, "j-7.a3 on n1, n2"; NULL none; caller frees. */
char *unknown_steps_text(const struct state *s, int64_t job);
/* Those that a node holds, "j-7.a3, j-9.a1"; NULL: none, or none is named. Caller frees. */
char *strange_text(const struct node *n);
/* The node's agent obeyed this epoch, which is above ours. */
void incarnation_obeyed(struct turn *t, const char *node, int64_t epoch);
void incarnation_resolve(struct turn *t);
