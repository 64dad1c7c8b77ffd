/* Plan searches: short-lived helper processes with limits (two at once, one of each user), never in the loop. */
#pragma once
#include "daemon/manager.h"

struct helpers;
void helpers_new(struct manager *m);
struct helpers *helpers_free(struct helpers *h);
/* Called once: status 200 with the Plan document in text, or an HTTP status with the reason in text. */
typedef void (*helper_fn)(void *arg, int status, const char *text);
/* options: further words of the command line, NULL-terminated; anchors: a document of anchors.h, NULL = none. */
struct helper_input { const char *user, *recipe; size_t n; char *const *options; const char *anchors; };
/* No search of this user is taken now: callers can say so before they read a recipe. */
bool helper_busy(const struct manager *m, const char *user);
/* Plans the recipe text. 0 with *ret_id, -EBUSY when two searches are running, or one of that user, or another errno. */
int helper_plan(struct manager *m, const struct helper_input *input, helper_fn fn, void *arg, uint64_t *ret_id);
/* The caller no longer wants the answer: fn is not called. */
void helper_cancel(struct manager *m, uint64_t id);
