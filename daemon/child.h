/* A child of the controller that has the state as it was when it was forked, works on files alone
 * and tells by its exit whether it could. It has no connection, lock or database of ours, makes
 * way for the controller when processors or memory are short, and dies with it. */
#pragma once
#include <stdbool.h>
#include <systemd/sd-event.h>

struct child;
/* error: what work returned (an errno), 0: it could; killed: it did not come to its end. The child
 * is freed already. */
typedef void (*child_ended)(void *arg, int error, bool killed);
/* work in the child: 0, or a negative errno. Returns a negative errno when there is no child. */
int child_start(sd_event *loop, int (*work)(void *arg), child_ended ended, void *arg,
		struct child **ret);
void child_kill(struct child *c); /* its end is reported as every other */
/* Killed, and its end waited for, which is not reported. NULL allowed. */
struct child *child_free(struct child *c);
