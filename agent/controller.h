/* Messages to the controller and their answers: the agent's seam to it. Here they go by HTTP; who
 * links another file with these functions has a controller that is reached otherwise. What is said,
 * and when, is link.c's. */
#pragma once
#include "agent/manager.h"

struct controller;
int controller_new(struct manager *m, struct controller **ret, struct mo_error *err);
struct controller *controller_free(struct controller *c);
/* A message (JSON) to this path, with this token (NULL none). fn gets the answer from the loop,
 * never at once: status 0 with error when none came within timeout_ms. Everything is copied. The
 * number of the message, for giving it up; 0: it could not be sent, which was logged. */
typedef void (*controller_fn)(void *arg, int status, const char *body, size_t n, const char *error);
uint64_t controller_send(struct controller *c, const char *path, const char *token,
			 const struct mo_buf *json, int64_t timeout_ms, controller_fn fn,
			 void *arg);
/* Of the answer whose fn runs: after how many seconds the controller wants the message again; 0: it
 * does not say. */
int64_t controller_retry_after_s(const struct controller *c);
/* fn is not called any more. */
void controller_cancel(struct controller *c, uint64_t id);
