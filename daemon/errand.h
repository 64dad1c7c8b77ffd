/* Another program that does one thing for the controller: in a process group of its own, with a
 * time, what it reads and what it prints in memory files. It is never waited for. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

struct errand;
struct errand_call {
	const char *program; /* absolute path */
	char *const *argv, *const *env;
	const char *input; /* its standard input; NULL: none */
	size_t n_input;    /* bytes */
	int64_t time_us;   /* then it is killed, with all that it started */
};
struct errand_end {
	bool late;   /* it was killed when its time was over */
	bool exited; /* or a signal ended it */
	int status;  /* exit status, or the signal */
	int out;     /* what it printed, from its start; the callee's until it returns */
};
/* The errand is freed already. */
typedef void (*errand_ended)(void *arg, const struct errand_end *end);
/* 0, or a negative errno: nothing was started, ended is not called. */
int errand_start(sd_event *loop, const struct errand_call *call, errand_ended ended, void *arg,
		 struct errand **ret);
/* Killed, with all that it started; ended is not called. NULL allowed. */
struct errand *errand_free(struct errand *e);
