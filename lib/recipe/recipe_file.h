/* Recipes, engine files, model catalogue and environment profiles: YAML (JSON is YAML) through libfyaml with our own guards, into the plain values of lib/model.
 * Every error names line and column (1-based: the key when it is unknown or duplicate, else the value), what was expected, and the near-miss key as hint. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/model/env_profile.h"
#include "lib/model/gpu.h"
#include "lib/model/launch.h"
#include "lib/model/recipe.h"

struct recipe_errors {
	struct mo_error *items;
	size_t n; /* several errors, at most 20 */
	bool keep; /* the caller wants the recipe also when only rules between its keys fail: */
	bool kept; /* it is there */
};
void recipe_errors_done(struct recipe_errors *e);
/* --set a.b=c: applied to the document before it is read, so the same checks run; errors of a set value name "--set a.b", or name where
 * it is given (the option or query value that it came from), with line 0. */
struct recipe_set { char *key, *value, *name; };
/* Text -> recipe. ret must be initialised by mo_desc_init(&recipe_desc). 0, or -EINVAL with errors (and with the recipe where errors->kept). Cross-field rules (rules.h) run too; engine file, model catalogue and
 * env profiles are looked up with mo_data_file(). ret_engine may be NULL. warnings: appended strings. */
int recipe_parse(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets, struct recipe *ret, struct engine *ret_engine,
		 char ***ret_warnings, size_t *n_warnings, struct recipe_errors *errors);
/* {user} in checkpoint.dir becomes the submitter's name, so that a recipe for everybody gives each a directory of his own. 1 when it
 * was there, 0 when not; -EINVAL with err when the name (NULL: none) is none that a directory may have. */
int recipe_for_user(struct recipe *r, const char *user, struct mo_error *err);
/* The document with the sets applied, as YAML text to send to the controller (caller frees). NULL + errors on failure. */
char *recipe_apply_sets(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets, struct recipe_errors *errors);
/* The document as one line of JSON (caller frees); NULL when it is no valid YAML. */
char *recipe_json(const char *text, size_t n);
/* Why the document would not pass its checks with these sizes in it, as if a person had written them, borrowed from the trial; NULL: it passes (trial.c). recompute NULL: as the document says. r: what
 * recipe_parse() made of text and sets. */
struct recipe_sizes { int64_t tp, pp, vpp, ep, etp, cp, micro; const char *sharding, *schedule, *recompute; };
struct recipe_trial *recipe_trial_new(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets, const struct recipe *r);
const char *recipe_trial_refuses(struct recipe_trial *t, const struct recipe_sizes *s);
void recipe_trial_free(struct recipe_trial *t);
int engine_parse(const char *text, size_t n, struct engine *ret, struct recipe_errors *errors);
int engine_load(const char *kind, struct engine *ret, struct mo_error *err);
/* The file of the recipe's engine, of the version that its engine.args are for. ret->kind is the recipe's. */
int engine_load_for(const struct recipe *r, struct engine *ret, struct mo_error *err);
/* The kind by which a tree is read that has one of the files that `versions` names; NULL: this one. there: is the file in the
 * tree? Borrowed from the engine. */
const char *engine_version_of_tree(const struct engine *e, bool (*there)(void *arg, const char *file), void *arg);
/* The value that engine.args give the key of n bytes, dashes in front of theirs ignored; NULL = none. */
const char *recipe_engine_arg(const struct recipe *r, const char *name, size_t n);
/* The command of every rank without the resume/fresh words: template, flags, args. */
void engine_argv(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret);
/* The same, with the recipe path that brought each word; NULL: the engine file's own words. */
struct word_origins { char **items; size_t n; };
void word_origins_done(struct word_origins *o);
void engine_argv_origins(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret,
			 struct word_origins *o);
/* Does the text give the path, by itself or by a --set? */
bool recipe_gives(const char *text, size_t n, const struct recipe_set *sets, size_t n_sets, const char *path);
/* The words of engine.prepare, appended: the recipe's, else the engine file's; none = nothing to prepare. The word {argv} becomes
 * those of engine_argv(). Words of agent/core/text/words.h stay for the node. */
void engine_prepare(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret);
/* Values that differ from those of the recipe that saved the checkpoints to resume from, although the engine does not allow it (engine.may_change): "parallelism.tp 4 instead of 8".
 * NULL = none, or the engine file says nothing about it (caller frees). */
char *recipe_changed(const struct recipe *before, const struct recipe *now, const struct engine *e);
/* Makes engine.owned what engine.prepare must leave alone for this recipe: also every flag that a recipe value brings, without those of engine.args_unchecked. */
void engine_owned(struct engine *e, const struct recipe *r);
/* engine.heartbeat.dir with engine.args and recipe values put in (caller frees); NULL = none. */
char *engine_heartbeat_dir(const struct engine *e, const struct recipe *r);
/* Where the engine's checkpoints lie when checkpoint.dir is `dir`, which may leave out what the engine adds (caller frees). */
char *engine_directory(const struct engine *e, const char *dir);
/* Appends the words for resuming (iteration >= 0) or a fresh start (-1). */
void engine_resume_argv(const struct engine *e, const struct recipe *r, int64_t iteration, char ***argv, size_t *n_argv);
/* What engine file and recipe say themselves about the environment, each item with layer, reason and source. Appends to items. */
void env_layers(const struct recipe *r, const struct engine *e, struct env_item **items, size_t *n_items);
/* The profiles of config/env whose conditions on the recipe hold, in the order in which later ones override; which of them a node gets is env_profile_applies(). Appends. */
int env_profiles(const struct recipe *r, struct env_profile **ret, size_t *n_ret, struct mo_error *err);
/* Catalogue: config/gpus/NAME.yaml. ret must be initialised. 0, or -EINVAL with err (near miss as hint). */
int gpu_type_load(const char *name, struct gpu_type *ret, struct mo_error *err);
