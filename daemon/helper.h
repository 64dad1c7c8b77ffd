/* Plan searches: short-lived helper processes with limits, never in the loop. Two run at once,
 * one of each user, one of viewers; others wait for up to 10 s. */
#pragma once
#include "daemon/core/rules/searches.h"
#include "daemon/manager.h"

struct helpers;
void helpers_new(struct manager *m);
struct helpers *helpers_free(struct helpers *h);
/* Called once: status 200 with the Plan document in text, or an HTTP status with the reason in
 * text. */
typedef void (*helper_fn)(void *arg, int status, const char *text);
/* options: further words of the command line, NULL-terminated; anchors: a document of anchors.h,
 * NULL = none. */
struct helper_input {
	const char *user;
	enum search_kind kind;
	const char *recipe;
	size_t n;
	char *const *options;
	const char *anchors;
};
/* What is answered with 429, and with 500 (and why). */
#define HELPER_BUSY \
	"two plan searches are running, or one of yours, or of viewers, and others wait: try " \
	"again in a moment, or run moectl plan on your machine"
#define HELPER_NOT_STARTED "the plan search could not be started: %s"
/* A search of this user would run, or wait: callers can say that it does not before they read a
 * recipe. */
bool helper_room(const struct manager *m, const char *user, enum search_kind kind);
/* Plans the recipe text, at once or when others are done. 0 with *ret_id, -EBUSY when too many
 * wait, or another errno. */
int helper_plan(struct manager *m, const struct helper_input *input, helper_fn fn, void *arg,
		uint64_t *ret_id);
/* The caller no longer wants the answer: fn is not called. */
void helper_cancel(struct manager *m, uint64_t id);
