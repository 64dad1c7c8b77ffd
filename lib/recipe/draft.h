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
/* The engine whose command the program is, by its template: its kind (borrowed from `kinds`)
 * and how many words of the program are its own, the entry among them at *ret_entry (-1 =
 * none). NULL: none of them; then it is kind torch, or command for a module. */
const char *draft_kind(const struct launch_line *l, char *const *kinds, size_t n_kinds,
		       size_t *ret_used, int *ret_entry);
/* The words of engine.args that a recipe says otherwise. */
void draft_values(struct draft *d, const struct engine *e);
const char *draft_value(const struct draft *d, const char *path); /* NULL = not said */
void draft_set(struct draft *d, const char *path, const char *value);
#define draft_lose(d, ...) mo_strs_printf(&(d)->lost, &(d)->n_lost, __VA_ARGS__)
/* The recipe as YAML behind the comments (lines without "# "). Caller frees. */
char *draft_text(const struct draft *d, char *const *comments, size_t n_comments);

/* The words of a command as flags: --a b c, --a=b, k=v (bare: engines of bool_words take that
 * too). */
struct word_flag {
	char *name; /* without dashes and value; NULL = words before the first flag */
	char **values;
	size_t n;
	size_t from, to; /* words [from, to) */
};
struct word_flags {
	struct word_flag *items;
	size_t n;
};
void word_flags_read(char *const *words, size_t n, struct word_flags *ret);
void word_flags_done(struct word_flags *f);
/* The last flag of exactly that name: to Primus --micro-batch-size is another key than
 * --micro_batch_size. NULL = none. */
const struct word_flag *word_flags_find(const struct word_flags *f, const char *name);
/* "--name value value", caller frees. */
char *word_flag_text(const struct word_flag *f);
bool word_flag_same(const struct word_flag *a, const struct word_flag *b);
