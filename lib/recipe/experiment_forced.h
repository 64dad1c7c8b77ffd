/* What an engine makes of its merged configuration by itself, before it trains: rows of the
 * engine file (experiment.forced), each with the engine's own place for it. A shown
 * configuration tells it beside the merged value. Pure. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/experiment.h"

struct experiment_forced {
	char *key;
	struct config_value *value;
	const char *because; /* of the engine, borrowed */
};
/* Keys whose value is not the merged one in the end, by the rows in their order: each sees what
 * those before it made. Caller frees. */
void experiment_forced(const struct engine *e, const struct experiment *x,
		       struct experiment_forced **ret, size_t *n_ret);
void experiment_forced_free(struct experiment_forced *forced, size_t n);
