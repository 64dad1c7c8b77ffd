/* Helpers that read devices (moe-discover, moe-probe) and hang in the kernel, where not even
 * SIGKILL ends them: in which file one hangs, and those that an agent left behind that is no
 * more. /proc is only read. Called by discovery. */
#pragma once
#include <sys/types.h>
#include <systemd/sd-event.h>
#include "lib/base/error.h"
#include "lib/loop/ready.h"

/* The file that a process waits for in a system call, as the kernel sees it; caller frees. NULL:
 * it does not wait, or its state may not be read. */
char *stuck_file(pid_t pid);

/* A helper whose agent is gone; its end is waited for. */
struct orphan {
	pid_t pid;
	char *at;            /* moe-discover: the file of --at */
	char *file;          /* for who asked: what it hangs in */
	char *area, *object; /* moe-probe: what it reads; object NULL: of the host */
	struct mo_ready *gone;
	int fd;
	void (*ended)(void *arg, struct orphan *o);
	void *arg;
};
struct orphans {
	struct orphan **items;
	size_t n;
};
/* All of this user that look at the same machine (root: --root, NULL the machine itself) and
 * whose parent is neither agent nor moectl, and which SIGKILL did not end. ended: called when
 * one is gone; it drops it. */
int orphans_find(sd_event *loop, const char *root, void (*ended)(void *arg, struct orphan *o),
		 void *arg, struct orphans *ret);
void orphans_drop(struct orphans *all, struct orphan *o);
void orphans_done(struct orphans *o);
