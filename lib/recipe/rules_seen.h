/* What an engine's own rules refuse; see rules_seen.c. */
#pragma once
#include "lib/recipe/rules_say.h"

struct args;

void rules_check_rule(struct rules *k, const struct args *command, const struct engine_rule *rule);
/* Replicas x shards x the other sizes are the GPUs; -1 shards: as many as are left. */
void rules_data_parallel(struct rules *k, const struct args *command);
