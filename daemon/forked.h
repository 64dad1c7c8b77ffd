/* Work that takes longer than the loop may wait, done by a forked child. It has the state (and
 * the caller's memory) as it was at that moment, with limits on its CPU time and on the memory
 * it adds; it answers through a pipe and is killed when nobody wants the answer any more. What
 * decides stays the pure code: the child only calls it. */
#pragma once
#include "daemon/manager.h"

enum forked_kind { FORKED_BACKUP, FORKED_DRY_RUN, FORKED_RECIPE, FORKED_CONFIG, _FORKED_KIND_N };
struct forks;
void forks_new(struct manager *m);
struct forks *forks_free(struct forks *f);

/* Runs in the child, answers by fd (forked_child.h); returns 0, or a negative errno when what it
 * wrote is not whole. */
typedef int (*forked_run)(const struct manager *m, const void *arg, int fd);
/* Called once: status 200 with what the child wrote behind it, or another with problem+json. */
typedef void (*forked_done)(void *arg, int status, const char *body, size_t n);
struct forked_work {
	enum forked_kind kind;
	const char *user; /* of the kinds of which each user has one, */
	bool viewer;      /* and viewers not all */
	forked_run run;
	const void *arg;  /* of run */
	forked_done done; /* NULL: the answer of request is streamed as it comes */
	void *done_arg;
	uint64_t request; /* with content_type, when streamed */
	const char *content_type;
};
/* For r, which is held then: false after 429 (no more of this kind, or of this user, are done
 * now) or 503. arg and what it points to are needed no longer. */
bool forked_begin(struct manager *m, struct http_request *r, const struct forked_work *w,
		  uint64_t *ret_id);
/* For nobody who waits at a connection, with done. -EBUSY: no more of this kind now; or another
 * errno. */
int forked_alone(struct manager *m, const struct forked_work *w, uint64_t *ret_id);
/* Answers r with the child's answer, streamed; false after 429 or 503. */
bool forked_answer(struct manager *m, struct http_request *r, const struct forked_work *w);
/* The caller no longer wants the answer: done is not called. */
void forked_cancel(struct manager *m, uint64_t id);
