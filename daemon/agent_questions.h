/* Questions to agents that were not answered yet: each goes out with a sync of its node, once to
 * each hello, and ends with an answer, with its time, or cancelled. Called by agent_link.c. */
#pragma once
#include <systemd/sd-event.h>

#include "lib/model/message.h"

/* The answer, or NULL with why when none came in time. */
typedef void (*link_answer_fn)(void *arg, const struct query_answer *answer, const char *why);

struct questions;
struct questions *questions_new(sd_event *loop);
struct questions *questions_free(struct questions *l); /* calls nobody */
/* A question with its id (query) and node; the caller fills in the rest. Borrowed until the next
 * turn of the loop. owns_arg: arg is freed with it, after fn. */
struct command *question_new(struct questions *l, int64_t epoch, const char *node,
			     int64_t timeout_us, link_answer_fn fn, void *arg, bool owns_arg);
/* fn is not called. */
void question_cancel(struct questions *l, int64_t id);
/* Whether its node was asked that. fn is called when the question is gone, so that it may ask
 * again. */
bool question_answered(struct questions *l, const struct query_answer *answer);
/* Is there one of the node that was not sent? */
bool questions_wait(const struct questions *l, const char *node);
/* Appends those to what the core says is due. */
void questions_send(struct questions *l, const char *node, int64_t epoch, struct sync_reply *reply);
/* The agent may have started anew: what it was asked goes out again. */
void questions_again(struct questions *l, const char *node);
