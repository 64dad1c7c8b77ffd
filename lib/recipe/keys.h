/* The table of all recipe keys, and values of a recipe by path ("checkpoint.every"). Private to
 * lib/recipe.
 *
 * recipe_file.c reads a document by the table (schema.h); rules, flags of engines and `--set` ask
 * for single values. A key is one row: what it may be, what it is by default and where it goes.
 * What follows from several keys is a rule (rules.h), never here. */
#pragma once
#include "lib/model/recipe.h"
#include "lib/recipe/schema.h"

enum recipe_base { BASE_RECIPE, BASE_MODEL, BASE_MOE, BASE_MLA, BASE_CONTAINER };

#define GLOBAL_BATCH_MAX (1 << 30) /* sequences of a step, however the recipe says it */

/* A reader over the recipe's table; recipe may be NULL while only a model is read. */
struct reader recipe_reader(struct recipe *recipe, struct recipe_errors *errors);
/* Reads an inline model mapping ("model." keys) into a new model (caller frees by
 * recipe_model_desc). */
struct recipe_model *model_read(const struct ynode *map, struct recipe_errors *errors);
/* Value of a recipe path ("parallelism.tp", "model.moe.experts") as text, NULL when unknown
 * (caller frees). Derived paths: "parallelism.dp" (resolved), "derived.moe_layers" (layers
 * without the dense ones), "derived.ffn" (width of a dense layer, of an expert when there is
 * none), "derived.local_batch" (sequences of a data-parallel rank in a step),
 * "derived.micro_batches", "derived.micro_tokens", "derived.global_tokens". */
char *recipe_value(const struct recipe *r, const char *path);
/* text with each {path} of a known recipe path replaced by its value; other braces stay (caller
 * frees). *ret_missing: first known path without a value (borrowed from the table), untouched
 * when all have one; may be NULL. */
char *recipe_expand(const struct recipe *r, const char *text, const char **ret_missing);
bool recipe_path_known(const char *path);
const char *recipe_path_near(const char *path); /* the key most like it; NULL = none is */
extern const char *const signal_words[];        /* TERM ... SIGUSR2, NULL-terminated */
extern const int64_t signal_values[];
/* stop.signal: what a rank cannot catch is no signal to stop by. */
#define SIGNAL_REFUSED "9|19|KILL|STOP|SIGKILL|SIGSTOP"
#define SIGNAL_INSTEAD \
	"ranks cannot catch it, so they could not save a checkpoint; take TERM, INT, HUP, QUIT, " \
	"USR1, USR2 or the number of another signal; what is left after stop.grace is killed " \
	"anyway"
/* of a word of the command with its {path}s filled in; a program takes twice as much */
#define WORD_BYTES_MAX (64 * 1024)
/* of all of them together: each job keeps them, each node gets them */
#define COMMAND_BYTES_MAX (512 * 1024)
#define LINE_RULES_MAX 32                 /* of a recipe */
extern const char *const engine_kinds[8]; /* the kinds of the interface, NULL-terminated */
