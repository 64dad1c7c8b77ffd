/* An engine's flag rows against a recipe. Private to lib/recipe; the words themselves: engine_argv() in recipe_file.h. */
#pragma once
#include "lib/recipe/recipe_file.h"

#define FLAG_ROW_OPS "=~> " /* what may stand behind the path of a row */
/* A row of engine.flags looked at with a recipe: its path, '=', '~' or '>' or 0 with the operand, the recipe's value (NULL unknown), whether it adds words, and whether
 * the engine is told about the value (also where an `unless` leaves the telling to another row). */
struct flag_row { char *path; char op; char *operand; char *value; bool applies, carried; };
struct flag_row flag_row(const struct recipe *r, const struct kv *flag);
void flag_row_done(struct flag_row *row);
/* Would the engine's program take this flag for itself? One that begins so is the same to it. */
bool engine_takes_itself(const struct engine *e, const char *flag);
/* The experiment's key behind ` if `, and what it must be (caller frees); NULL: the row has no such condition. */
char *flag_row_if(const char *key, const char **ret_want);
/* The words that the row adds to the command (appends); none when it does not apply. */
void flag_row_words(const struct recipe *r, const struct kv *flag, const struct flag_row *row, char ***ret, size_t *n_ret);
