/* What ranks print and tell (output.c): pipes, logs, notify sockets, last lines. */
#pragma once
#include "agent/stepd/stepd.h"

/* Notify socket and pipes of a rank; the child's ends of the pipes are the caller's to close. */
int output_open(struct stepd *s, struct rank *r, int *ret_out, int *ret_err, struct mo_error *err);
int output_open_pipes(struct stepd *s, struct rank *r, int *ret_out, int *ret_err,
		      struct mo_error *err);
/* Before anything is read from the pipes. */
int output_open_log(struct stepd *s, struct rank *r, struct mo_error *err);
void output_close(struct stepd *s, struct rank *r);
void on_stream(struct stepd *s, struct source *source, uint32_t events);
void on_notify(struct stepd *s, struct source *source, uint32_t events);
void output_tick(struct stepd *s); /* reads batched streams */
/* What is in the pipes now; never waits for whoever holds them open. */
void output_drain(struct stepd *s, struct rank *r);
/* The exception that ended it, for its last lines. */
void output_error(struct rank *r, const char *text);
void output_tail(struct rank *r, struct note *n);
bool output_batched(const struct stepd *s);
