/* Work for a view that must not wait: a child process that does it as a verb would, blocking, and
 * whose output comes through a pipe. */
#pragma once
#include <sys/types.h>
#include "cli/cli.h"
#include "lib/base/buf.h"

/* Zeroed: there is none. */
struct errand {
	pid_t pid;
	int fd;             /* to be polled while pid is set */
	struct mo_buf text; /* what it printed, errors too */
};

/* work: prints, and returns an exit status. Nothing may be buffered in stdout. -errno. */
int errand_start(struct errand *e, int (*work)(struct cli *cli, void *arg), struct cli *cli,
		 void *arg);
/* Takes what it printed. True when it is over: then *ret is its exit status, and text all of it. */
bool errand_read(struct errand *e, int *ret);
/* Ends it, however far it is; also for one that is over. */
void errand_done(struct errand *e);
