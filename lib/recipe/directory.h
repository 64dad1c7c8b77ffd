/* Where an engine really saves that makes the directory of names in its experiment, and not of
 * the flag by which it is made to save: Primus'
 * workspace/work_group/user_name/exp_name/checkpoints. The engine file names the parts and the
 * variables that fill them (experiment.names, experiment.directory). */
#pragma once
#include "lib/model/launch.h"
#include "lib/recipe/rules_say.h"

struct experiment;
/* Where the engine's checkpoints lie when checkpoint.dir is `dir`, which may leave out what the
 * engine adds (caller frees). */
char *engine_directory(const struct engine *e, const char *dir);
/* Private to lib/recipe: checkpoint.dir as the engine's checkpoints will lie: cleaned, and with
 * the directory that the engine adds. */
void directory_settle(struct recipe *r, const struct engine *e);
/* The variables that make it so; without checkpoint.dir those that give each job names of its
 * own. Appended to the engine's layer. */
void directory_variables(const struct recipe *r, const struct engine *e, struct env_item **items,
			 size_t *n_items);
void directory_rules(struct rules *k);
/* Where the engine would save by the names of its configuration; workdir: what relative ones are
 * relative to. Caller frees. */
char *experiment_directory(const struct engine *e, const struct experiment *x, const char *workdir);
/* 0, or -EINVAL with err when that is not checkpoint.dir: the name that is in the way, and its
 * place. */
int experiment_directory_check(const struct engine *e, const struct recipe *r,
			       const struct experiment *x, struct mo_error *err);
