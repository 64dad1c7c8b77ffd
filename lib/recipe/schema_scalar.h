/* One value of a document, of a kind that the caller names; see schema_scalar.c. */
#pragma once
#include "lib/recipe/yaml.h"

struct reader;

void value_wrong(struct reader *r, const char *what, const struct ynode *v, const char *hint,
		 const char *expected);
/* What the text says, quoted or not. */
bool value_whole_text(const char *text, int64_t *ret);
/* "got 'x'", "got a mapping": for messages (caller frees). */
char *value_shown(const struct ynode *v);
/* One value; each adds an error naming `what` and returns false when it is not of the kind. */
bool value_text(struct reader *r, const char *what, const struct ynode *v, char **ret);
/* Is the scalar a whole number, written without quotes? 100.0 and 1e3 are: that is how programs
 * write whole numbers. */
bool value_whole(const struct ynode *v, int64_t *ret);
bool value_int(struct reader *r, const char *what, const struct ynode *v, int64_t min, int64_t max,
	       int64_t *ret);
bool value_bool(struct reader *r, const char *what, const struct ynode *v, bool *ret);
void value_list(struct reader *r, const char *what, const struct ynode *v, char ***ret,
		size_t *n_ret);
