/* What moe-stepd decides about a command beside its ranks (`moectl exec`). Pure. */
#pragma once
#include "agent/core/bind/env_record.h"
#include "lib/base/buf.h"
#include "lib/model/exec.h"

/* The step as it is when it is asked. */
struct exec_step {
	const char *node;
	int64_t first_rank, n_local;
	bool started, exited; /* the rank that is asked for, where there is one */
	bool ending;          /* its processes are being killed */
};
/* Why it is not started, a sentence for who asked; NULL: it is. Caller frees. */
char *exec_refusal(const struct exec_ask *ask, const struct exec_step *step);

/* "NAME=value" as the rank was given it, but what looks like a credential and what would make the
 * command speak for the rank. NULL-terminated; NULL: the record does not have the rank. Caller
 * frees all of it. */
char **exec_environment(const struct env_record *record, int64_t rank);

/* Output as it is kept: EXEC_OUT_MAX bytes, the rest is counted out. */
struct exec_output {
	struct mo_buf kept;
	bool cut;
};
void exec_output_add(struct exec_output *o, const char *data, size_t n);
/* As text: a NUL byte is shown like other bytes that are none. Caller frees. */
char *exec_output_text(const struct exec_output *o);
