/* The controller's end of the agent protocol: held syncs, welcomes, acknowledgements, and
 * questions to agents (logs). */
#pragma once
#include "daemon/agent_questions.h"
#include "daemon/manager.h"

struct links;
struct agent_message;
void links_new(struct manager *m);
struct links *links_free(struct links *l);
/* The core took a sync of this instance: it is held until a command is due for the node or the
 * beat has passed. */
void link_hold(struct manager *m, int64_t request, const char *node, const char *instance);
/* A command became due for the node: its held sync is answered. */
void link_wake(struct manager *m, const char *node);
/* The core took its hello. It may have started anew: what it was asked goes out again with its
 * next sync. One that knows the question ignores it. */
struct agent_welcome;
void link_welcome(struct manager *m, int64_t request, const char *node,
		  struct agent_welcome *welcome);
/* Answers an urgent request: acknowledgements without commands. */
void link_ack(struct manager *m, int64_t request, const char *node);
/* Messages as they come in (agent_message.h): an input is queued, or the sender refused. type:
 * IN_SYNC, IN_URGENT. */
void link_on_hello(struct manager *m, const struct agent_message *msg);
void link_on_sync(struct manager *m, const struct agent_message *msg, int type);
/* An answer to a question; whether somebody had asked it. */
bool link_on_answer(struct manager *m, const struct agent_message *msg);
/* Asks the node for a piece of a rank's log: job, attempt, rank, offset, lines, wait_ms and
 * since_ms of c are copied. The command goes out with its held sync, or with the next one. fn gets
 * the answer, or NULL with why when none came in time. Returns the question's id. */
int64_t link_query(struct manager *m, const char *node, const struct command *c, link_answer_fn fn,
		   void *arg);
/* The same for what stepd recorded of its ranks' environments; answered or given up within
 * LINK_ENV_TIMEOUT_US. arg is taken and freed by free() after fn, or without it when moed ends. */
#define LINK_ENV_TIMEOUT_US (2 * 1000000LL)
void link_query_env(struct manager *m, const char *node, int64_t job, int64_t attempt,
		    link_answer_fn fn, void *arg);
/* The same for a command beside a rank: what c says of it is copied. arg stays the caller's. */
void link_query_exec(struct manager *m, const char *node, const struct command *c,
		     int64_t timeout_ms, link_answer_fn fn, void *arg);
/* The same for what of an image fits a node: dir, user and allow_root of c are copied. arg is taken
 * as by link_query_env(). */
void link_query_image(struct manager *m, const char *node, const struct command *c,
		      link_answer_fn fn, void *arg);
void link_query_cancel(struct manager *m, int64_t id);
