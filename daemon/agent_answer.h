/* What goes back to an agent: the seam on the way out. Here it leaves by HTTP; who links another
 * file with these three functions has agents that are reached otherwise. The way in is
 * agent_message(). */
#pragma once
#include "daemon/manager.h"

/* The answer to a message, once: a document of JSON, or a refusal (4xx) with one sentence that says
 * what to do and, unless after_s is MO_NONE, when to try
 * again. Nothing happens when its sender has left, or has an answer. */
void agent_answer(struct manager *m, int64_t request, int status, const struct mo_buf *json);
void agent_refuse(struct manager *m, int64_t request, int status, int64_t after_s, const char *fmt,
		  ...) _printf_(5, 6);
/* The id of the token that the message came with, while its sender waits for the answer; NULL: he
 * does not any more. Borrowed, until he has it. */
const char *agent_waits(struct manager *m, int64_t request);
