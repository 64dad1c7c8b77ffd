/* What the ranks wrote (logs.c): read for who asks, and let go in time. */
#pragma once
#include "agent/manager.h"

int logs_new(struct manager *m, struct logs **ret);
struct logs *logs_free(struct logs *l);
/* Answers by link_answer(): at once, when there is more than c->offset, or when c->wait_ms have
 * passed; an error is an answer too. offset -1: from where the last c->lines lines begin. c is
 * borrowed. */
void logs_query(struct logs *l, const struct command *c);
/* Removes the logs of all but the newest config.logs_kept jobs; never those of a step that is
 * here. What cannot be removed is logged. */
void logs_retain(struct logs *l);
