/* Inputs of the next turn. Whoever reads from a socket makes an input, fills its core, and
 * pushes it; the turn (turn.c) steps the core, stores, and then answers. Nothing here knows who
 * that is. */
#pragma once
#include "daemon/manager.h"

/* What a successful FX_REPLY for this input looks like. */
enum answer_kind {
	ANSWER_NONE,
	ANSWER_SUBMIT,
	ANSWER_JOB,
	ANSWER_NODE,
	ANSWER_TEXT,
	ANSWER_EXEC,
	ANSWER_PREFETCH,
	ANSWER_IMAGES, /* the answers of nodes, later */
};
struct input {
	struct core_input core;
	bool of_agent;      /* its answer goes to an agent (agent_answer.h) */
	int answer;         /* enum answer_kind */
	char *answer_text;  /* ANSWER_TEXT: the document; ANSWER_EXEC: id of the command */
	char *answer_node;  /* ANSWER_NODE: its name */
	int64_t answer_id;  /* ANSWER_IMAGES: of the question (images.h) */
	size_t effects_end; /* during the turn: its effects end here */
};
/* How somebody was known: "socket", "token 1f2e3d4c from 10.0.0.7"; caller frees. */
char *caller_via(const struct http_caller *c, const char *address);
/* The caller fills core with what belongs to its type. r may be NULL: nobody waits. Sets request
 * and `by` from its caller. */
struct input *input_new(int type, struct http_request *r);
/* The same for a message of an agent. */
struct agent_message;
struct input *input_of_agent(int type, const struct agent_message *msg);
/* Takes in; arms the turn. */
void input_push(struct manager *m, struct input *in);
void input_free(struct input *in);
void inputs_done(struct manager *m); /* those that wait */
