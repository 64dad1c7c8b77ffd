/* Verification of a checkpoint after its save, by helpers on the job's nodes. */
#pragma once
#include "daemon/core/state/state.h"

/* the newest that waits for it, unless one is under way */
void verify_begin(struct job *j);
void verify_end(struct job *j);
/* the next part from `part` on that this node is to do; -1 = none */
int64_t verify_next(const struct state *s, const struct job *j, const char *node, int64_t part);
/* that is to do this part now; NULL = none, or done */
const char *verify_node(const struct state *s, const struct job *j, int64_t part);
/* the order's id, by which its answer is known */
int64_t verify_id(const struct job *j, int64_t part);
void verify_command(const struct job *j, int64_t part, struct command *ret);
bool verify_awaits(const struct job *j, const struct scan_result *r);
void verify_result(struct job *j, const struct scan_result *r, int64_t time);
