/* Files that an engine's own configuration names and that must be there before it trains: a
 * configuration file, a tokenizer, data. Which keys name some, and how, is data of the engine
 * file (`inputs:`). Searched where a recipe is checked (cli/experiment_inputs.c) and on the
 * node before the ranks start (agent/config/main.c). Pure: the caller asks the disk. */
#pragma once
#include "lib/model/engine.h"
#include "lib/recipe/experiment.h"

/* "KIND [if KEY] [unless KEY]": the words of a row that may not be others. NULL: it is right;
 * else what is wrong. */
const char *config_input_wrong(const char *how);
/* Path as the configuration says it, relative to the engine's working directory unless it is
 * absolute. False only of a path that is surely not there. */
typedef bool (*config_there_fn)(void *arg, const char *path);
struct config_missing {
	const struct config_value *value; /* what names it; borrowed from the experiment */
	const char *key;                  /* borrowed from the row */
	char *path;                       /* the caller's */
};
/* Appends what is not there. The lists' paths are freed by config_missing_free(). */
void config_inputs(const struct kv *rows, size_t n_rows, const struct experiment *x,
		   config_there_fn there, void *arg, struct config_missing **ret, size_t *n_ret);
void config_missing_free(struct config_missing *items, size_t n);
