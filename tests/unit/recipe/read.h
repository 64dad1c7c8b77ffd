/* Helpers of the recipe tests. */
#pragma once
#include "tests/unit/unit.h"

#include "lib/recipe/recipe_file.h"

/* recipe_parse of a text with sets "a.b=c" separated by '\n' (NULL = none); fills everything, free
 * by parsed_done. */
struct parsed {
	int result;
	struct recipe recipe;
	struct engine engine;
	char **warnings;
	size_t n_warnings;
	struct recipe_errors errors;
};
void parsed_done(struct parsed *p);
struct parsed parse(const char *text, const char *sets);
struct parsed parse_n(const char *text, size_t n, const char *sets);
/* All errors as "L:C text [hint]\n". */
char *errors_text(const struct recipe_errors *e);
/* A minimal valid recipe with more lines behind it. The lines start on line 5. */
char *recipe_with(const char *lines);
/* It was taken. */
void must(const struct parsed *p);
/* The words with blanks between, which frees them. */
char *joined(char **words, size_t n);
/* The command line of a rank. */
char *argv_of(const struct parsed *p);
