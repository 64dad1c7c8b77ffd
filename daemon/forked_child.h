/* What a forked child does before and around its work (forked.h): it takes itself out of the
 * controller, lowers its priority, limits itself, and answers through a pipe with "STATUS\n" and
 * then the body until the pipe ends. */
#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include "daemon/forked.h"

#define FORKED_STATUS_BYTES 4 /* digits and newline */

/* 0: no limit. */
struct forked_limits {
	rlim_t cpu_s;
	rlim_t memory; /* bytes that it adds to those of the controller */
};
/* After fork(), in the child of parent: does the work, with fd for its answer. Never returns. */
void forked_child(const struct manager *m, const struct forked_work *w,
		  const struct forked_limits *limits, pid_t parent, int fd);
/* ---- by the work: the status first, then the body. 0 or a negative errno of the pipe ---- */
int forked_status(int fd, int status);
int forked_problem(int fd, int status, const char *detail); /* status and problem+json */
