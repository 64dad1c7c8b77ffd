/* What is shown of a failure: the record of the incident with its evidence, and the words of
 * reasons that come from the ranks' output. Called by policy.c, which has decided by then;
 * nothing here decides. */
#pragma once
#include "daemon/core/rules/verdict.h"

struct turn;

/* A failure of which everything is known. */
struct incident_of {
	const struct verdict *verdict;
	const char *cause;
	const char *action;      /* what follows, in one word */
	bool elsewhere;          /* the next attempts avoid its node */
	bool uncounted;          /* it is none of those that stop the job */
	int64_t in_a_row;        /* of its kind */
	const struct skip *skip; /* data that later attempts leave out; NULL: none more */
};
/* REC_INCIDENT. The job is found anew behind it. */
void incident_emit(struct turn *t, const struct job *j, const struct incident_of *of);
/* What the GPUs and cards did, as evidence; before the rest of the ranks is killed. */
void incident_readings(const struct turn *t, const struct job *j, char ***texts, size_t *n_texts);
/* "; it said: " and the line that tells why the rank ended, or an empty text. Caller frees. */
char *incident_said(const struct blame *b);
/* What an exit before the first iteration means. */
const char *incident_exit_meaning(const struct rank *k);
