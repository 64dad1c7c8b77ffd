/* Commands beside ranks that the controller knows: those that run, and for a while what came of
 * those that are over. In memory only: the event is what is kept. */
#pragma once
#include "daemon/manager.h"
#include "lib/model/exec.h"

/* As it is shown. */
struct exec {
	char *id;
	int64_t job, attempt, rank;
	char *node, *user;
	char **command;
	size_t n_command;
	struct exec_result *result; /* NULL: it runs */
	/* not shown */
	struct manager *manager;
	int64_t timeout_ms, ended_at;
};
extern const struct mo_desc exec_desc;

void execs_new(struct manager *m);
struct execs *execs_free(struct execs *x);
/* One that is to run, with an id; the caller fills in the rest before the core decides about it.
 * NULL: as many run as may (*ret_of_job: of this job). */
struct exec *execs_add(struct manager *m, int64_t job, bool *ret_of_job);
/* NULL: there is none, or it is long over. */
const struct exec *execs_find(const struct manager *m, const char *id);
/* The core has decided: the node is asked, or it is forgotten. */
void execs_decided(struct manager *m, const char *id, bool ok);
