/* What of an agent's message the core is given: what a record will hold, or arithmetic is done
 * with. Pure. */
#pragma once
#include "lib/model/message.h"

/* Why a hello is refused: its place and what is wrong there; NULL = it is taken. Caller frees. An
 * agent says such a thing of itself by mistake only. */
char *intake_hello(const struct agent_hello *hello);
/* The same of a sync or urgent message; refused are only steps that cannot be. Ranks and their
 * files have a say in the rest, and it is repeated until it was taken: what cannot be kept becomes
 * unknown, texts are cut, and *ret_unfit (caller frees) names the first such place, NULL = none. */
char *intake_sync(struct agent_sync *sync, char **ret_unfit);
/* As much of it as one turn takes in, so that the largest message keeps nobody waiting. Notes
 * and scans beyond are dropped from their end: they are sent again until they are acknowledged. */
void intake_portion(struct agent_sync *sync);
