/* The words of a rank's command, and an engine's flag rows against a recipe.
 *
 * An engine file says by rows (`flags`) which words stand for which value of a recipe; here they
 * are read with one recipe. Called where a submit is read (daemon/spec.c: they go with the job), by
 * the rules that hold a recipe against its engine (rules_*.c) and by `moectl explain`: the same
 * words each time.
 *
 * What never happens: a value that the recipe leaves to the engine is said to it; a word of
 * engine.args is dropped. */
#pragma once
#include "lib/base/error.h"
#include "lib/model/engine.h"
#include "lib/model/recipe.h"

/* {user} in checkpoint.dir and in an image's mounts becomes the submitter's name, so that a recipe
 * for everybody gives each a directory of his own. 1 when it was there, 0 when not; -EINVAL with
 * err when the name (NULL: none) is none that a directory may have. */
int recipe_for_user(struct recipe *r, const char *user, struct mo_error *err);
/* The interpreter: of the engine file where the recipe has none, which in an image is the first of
 * that name along the image's PATH. */
const char *recipe_python(const struct engine *e, const struct recipe *r);
/* The command of every rank without the resume/fresh words: template, flags, args. */
void engine_argv(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret);
/* The same, with the recipe path that brought each word; NULL: the engine file's own words. */
struct word_origins {
	char **items;
	size_t n;
};
void word_origins_done(struct word_origins *o);
void engine_argv_origins(const struct engine *e, const struct recipe *r, char ***ret, size_t *n_ret,
			 struct word_origins *o);
/* Appends the words for resuming (iteration >= 0) or a fresh start (-1). */
void engine_resume_argv(const struct engine *e, const struct recipe *r, int64_t iteration,
			char ***argv, size_t *n_argv);

/* Private to lib/recipe: */
#define FLAG_ROW_OPS "=~> " /* what may stand behind the path of a row */
/* A row of engine.flags read with a recipe: its path, '=', '~' or '>' or 0 with the
 * operand, the recipe's value (NULL unknown), whether it adds words, and whether the engine is
 * given the value (also where an `unless` leaves that to another row). */
struct flag_row {
	char *path;
	char op;
	char *operand;
	char *value;
	bool applies, carried;
};
struct flag_row flag_row(const struct recipe *r, const struct kv *flag);
void flag_row_done(struct flag_row *row);
/* Would the engine's program take this flag for itself? One that begins so is the same to it. */
bool engine_takes_itself(const struct engine *e, const char *flag);
/* The experiment's key behind ` if `, and what it must be (caller frees); NULL: the row has no
 * such condition. */
char *flag_row_if(const char *key, const char **ret_want);
/* The words that the row adds to the command (appends); none when it does not apply. */
void flag_row_words(const struct recipe *r, const struct kv *flag, const struct flag_row *row,
		    char ***ret, size_t *n_ret);
