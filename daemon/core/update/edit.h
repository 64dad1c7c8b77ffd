/* The finders of the state for those who change it: what job_find() and its like return is
 * const, and only the sources of update include this (tests/lint/ladder), so the compiler proves
 * that rules and views change nothing that they find. */
#pragma once
#include "daemon/core/state/checkpoint.h"
#include "daemon/core/state/record.h"
#include "daemon/core/state/state.h"
#include "daemon/core/state/token.h"

static inline struct job *job_edit(struct state *s, int64_t id)
{
	return (struct job *)job_find(s, id);
}

static inline struct node *node_edit(struct state *s, const char *name)
{
	return (struct node *)node_find(s, name);
}

static inline struct step *step_edit(struct job *j, int64_t attempt, const char *node)
{
	return (struct step *)step_find(j, attempt, node);
}

static inline struct checkpoint *checkpoint_edit(struct job *j, int64_t iteration)
{
	return (struct checkpoint *)checkpoint_find(j, iteration);
}

static inline struct token *token_edit(struct state *s, const char *id)
{
	return (struct token *)token_find(s, id);
}

/* The job, and the step, that a record is of; NULL: it is not there. */
static inline struct job *record_job(struct state *s, const struct record *r)
{
	return job_edit(s, r->job);
}

static inline struct step *record_step(struct state *s, const struct record *r)
{
	struct job *j = record_job(s, r);

	return j ? step_edit(j, r->attempt, r->node) : NULL;
}
