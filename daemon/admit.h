/* What a new job is refused for, or warned of, before anything is recorded; see admit.c. */
#pragma once
#include "daemon/spec.h"
#include "lib/plan/plan.h"

/* A plan with given sizes is no search: it takes a tenth of a millisecond, with notes on other
 * choices ten; calibrated by what the cluster has measured. False without a model and a GPU; ret
 * must be initialised. */
bool admit_plan_given(const struct state *s, const struct submit *spec, bool notes,
		      struct plan_doc *ret);
char *admit_plan(const struct state *s, const struct submit *spec);
/* A job that resumes from what another one saved must be like it where its engine asks for that;
 * it would fail minutes after its start. */
void admit_warn_resume(const struct state *s, struct submit *spec);
/* Its checkpoints will not fit where they are to go, or take longer than the time between them. */
void admit_warn_checkpoints(const struct state *s, struct submit *spec);
/* What the nodes cost that are kept for it (cluster.spares). */
void admit_warn_spares(const struct state *s, struct submit *spec);
void admit_warn_too_large(const struct state *s, struct submit *spec);
/* Only asked about: the plan's promise, if there is one, whether it fits or not. */
void admit_promise(const struct state *s, struct submit *spec);
/* Does its plan fit? With the plan's promise and what the planner says of it; false with
 * *ret_why (caller frees). */
bool spec_admit(const struct manager *m, struct submit *spec, char **ret_why);
