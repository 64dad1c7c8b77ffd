/* A short-lived child with a deadline: its standard output is collected and given back when it
 * ended. For what may hang: discovery, checkpoint scans, stepd's starter. */
#pragma once
#include <systemd/sd-event.h>
#include "lib/base/error.h"

struct helper;
/* status: wait status of the child; out: its standard output, valid during the call; problem:
 * NULL, or a sentence saying why there is no result (deadline, exit status and the last line of
 * its standard error, too much output). The helper frees itself after the call. */
typedef void (*helper_fn)(void *arg, int status, const char *out, size_t n, const char *problem);
/* path and argv[0..] (NULL-terminated). Its environment is child_environment(). */
int helper_start(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		 size_t max_out, helper_fn fn, void *arg, struct helper **ret);
/* The same with a process group of its own: killing it kills what it started. */
int helper_start_group(sd_event *loop, const char *path, char *const *argv, int64_t deadline_us,
		       size_t max_out, helper_fn fn, void *arg, struct helper **ret);
/* Within fn, when the deadline was the problem: the child was killed, but one that is stuck in
 * the kernel lives on. fn is called when it is gone. */
void helper_on_end(struct helper *h, void (*fn)(void *arg), void *arg);
bool helper_is_late(const struct helper *h);
pid_t helper_pid(const struct helper *h);
/* Of everything the agent starts: nothing of its own leaks. */
char *const *child_environment(void);
/* Kills the child without calling fn. NULL allowed. */
struct helper *helper_free(struct helper *h);
/* Its standard output so far, which stays the helper's. */
const char *helper_output(const struct helper *h, size_t *ret_n);
