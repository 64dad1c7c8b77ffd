/* What is shown of a failure: the record of the incident with its evidence, and the words of
 * reasons that come from the ranks' output. Called by policy.c, which has decided by then;
 * nothing here decides. */
#pragma once
#include "daemon/core/rules/blame.h"

struct turn;

/* REC_INCIDENT: action is what follows, in one word. The job is found anew behind it. */
void incident_emit(struct turn *t, const struct job *j, const struct blame *b, const char *cause,
		   const char *class, const char *action);
/* What the GPUs and cards did, as evidence; before the rest of the ranks is killed. */
void incident_readings(const struct turn *t, const struct job *j, char ***texts, size_t *n_texts);
/* "; it said: " and the line that tells why the rank ended, or an empty text. Caller frees. */
char *incident_said(const struct blame *b);
/* What an exit before the first iteration means. */
const char *incident_exit_meaning(const struct rank *k);
