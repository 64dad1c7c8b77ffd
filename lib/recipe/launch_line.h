/* What somebody types to start a training today, read as a launch: `torchrun ..`, `primus-cli
 * ..`, `srun torchrun ..`, or a shell script that ends in one of them, with its `#SBATCH`
 * lines. Pure. What the launcher's words ask for is kept where moectl has it (GPUs, variables,
 * directory), and every other word of a launcher is in `lost` with the reason: nothing
 * disappears. The words of the program itself are kept as they are. */
#pragma once
#include "lib/model/recipe.h"
#include "lib/base/error.h"

struct launch_line {
	char **program;
	size_t n_program; /* SCRIPT WORD.. or -m MODULE WORD.. */
	char *python; /* an absolute path that the line names; NULL = none */
	char *launcher; /* torchrun, primus-cli, deepspeed, python; borrowed from the code */
	struct kv *env;
	size_t n_env; /* variables that are set for it, the last value of each */
	int64_t nodes, per_node; /* MO_NONE = not said */
	char *dir; /* `cd DIR` before it; NULL = none */
	char *name; /* --job-name of sbatch; NULL = none */
	char *time_limit; /* of sbatch as a recipe's duration; NULL = none */
	char **lost;
	size_t n_lost; /* "WORDS: why" */
};
void launch_line_done(struct launch_line *l);
/* Words as a program gets them. -EINVAL with err: no launch is in them. */
int launch_line_words(char *const *words, size_t n, struct launch_line *ret, struct mo_error *err);
/* The text of a shell: the first command that is a launch counts, with what was exported, where
 * it was `cd`ed to and what variables held by then. A word whose variable nobody set stays as
 * it is and is in `lost`. */
int launch_line_script(const char *text, struct launch_line *ret, struct mo_error *err);
