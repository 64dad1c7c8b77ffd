/* A recipe under way: made from a launch (launch_line.h) by the engine's own data read
 * backwards. A flag that some row of the engine file makes from a value of the recipe becomes
 * that value; what moectl decides itself (`owned`) is in `lost`; every other word stays as it
 * is, in engine.args. */
#pragma once
#include "lib/model/engine.h"
#include "lib/model/recipe.h"
#include "lib/recipe/launch_line.h"

struct draft {
	char *kind, *name, *workdir, *entry, *python, *gpu, *time_limit;
	char **args;
	size_t n_args; /* of engine.args; of engine.argv for kind command */
	char *loads;   /* the flag that loads from where it saves, which checkpoint.dir says too */
	struct kv *values;
	size_t n_values; /* path of the recipe -> its value as YAML */
	struct kv *said;
	size_t n_said; /* path of the recipe -> the words of the original that say it */
	struct kv *env;
	size_t n_env;
	int64_t gpus;
	char **lost;
	size_t n_lost;
};
void draft_init(struct draft *d);
void draft_done(struct draft *d);
/* The words of engine.args that a recipe says otherwise. */
void draft_values(struct draft *d, const struct engine *e);
const char *draft_value(const struct draft *d, const char *path); /* NULL = not said */
void draft_set(struct draft *d, const char *path, const char *value);
#define draft_lose(d, ...) mo_strs_printf(&(d)->lost, &(d)->n_lost, __VA_ARGS__)
