/* What container runtimes of the site's keep for steps whose images are in their stores
 * (moe-runtime). It is given up when no process of the step is left, by a process beside the agent:
 * a runtime may hang. What fails is tried some minutes long. */
#pragma once
#include "agent/helper.h"

struct manager;
struct step_dir;
struct runtimes;
int runtimes_new(struct manager *m, struct runtimes **ret);
struct runtimes *runtimes_free(struct runtimes *r);
/* agent.yaml names it: images of its store are used here. */
bool runtimes_allowed(const struct runtimes *r, const char *name);
/* moe-runtime says which image that name is there; a negative errno: it cannot be started. */
int runtimes_digest(struct runtimes *r, const char *name, const char *image, helper_fn fn,
		    void *arg, struct helper **ret);
/* No process of the step is left; also of one that has its image from elsewhere. */
void runtimes_release(struct runtimes *r, const struct step_dir *d);
/* Once, when the steps of an agent before this one are known: what is kept for others of this node
 * is given up. */
void runtimes_sweep(struct runtimes *r);
