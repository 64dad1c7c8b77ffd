/* A container runtime of the site's, of whose store images are used in place, or which starts a
 * container of them: the commands that are put to it. A plain value, read from
 * config/runtimes/NAME.yaml by lib/recipe. */
#pragma once
#include "lib/base/desc.h"

/* What replaces the words in braces. NULL: it is not known yet. */
struct runtime_words {
	const char *image; /* as the recipe names it */
	const char *id;    /* the runtime's own name of it */
	const char *step;  /* of the spool entry */
	const char *dir;   /* of the step, on the node */
	const char *hold;  /* moe-hold there: the container's only process */
};

/* Each the words of one command. */
struct runtime {
	char *name;
	char **image, **keep, **kept, **release;
	size_t n_image, n_keep, n_kept, n_release;
	char **start; /* a container of the image; none: it starts none */
	size_t n_start;
};
extern const struct mo_desc runtime_desc;
MO_DEFINE_DONE(runtime)

/* The first thing that is wrong with a word of a command; NULL: nothing. Caller frees. known: of
 * which words values will be there. */
char *runtime_word_problem(const char *word, const struct runtime_words *known);
/* The command with its words replaced, and a NULL behind them; mo_strs_clear() of n + 1 frees it.
 * All that it names is known. */
char **runtime_command(char *const *words, size_t n, const struct runtime_words *known);

/* The runtime that is to have the image in its store, with the name there in *ret_name, within
 * image; NULL: the image is of another kind. */
const char *runtime_of_image(const char *image, const char **ret_name);
/* All that there are; up to a NULL. */
extern const char *const runtime_names[];
/* Appends the names of a list as agent.yaml has it, between commas; NULL: none. */
void runtime_list(const char *list, char ***ret, size_t *n_ret);
/* Whether text can be the name of an image in a store: it is no option, and nothing but letters,
 * digits and . _ / : @ - */
bool runtime_image_valid(const char *text);
