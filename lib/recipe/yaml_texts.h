/* Where a document has texts in quotes and blocks of text, in which other rules hold than between
 * them. Called by yaml.c. */
#pragma once
#include <libfyaml.h>

#include "lib/recipe/tree.h"

struct yaml_text {
	size_t from, to; /* bytes of the document */
	bool block;
};
struct yaml_texts {
	struct yaml_text *all; /* in their order; free() */
	size_t n;
};
/* A scalar's token (NULL: an empty one); a plain one is no such text. */
void yaml_texts_add(struct yaml_texts *t, struct fy_token *token);
/* libfyaml 0.7.12 takes the pairs behind an empty block of text (`a: |`) for its text: does the
 * value, read when there were before of them, begin no deeper than its key? */
bool yaml_not_of_block(const struct yaml_texts *t, size_t before, const char *text, size_t n,
		       const struct ynode *key, const struct ynode *value);
/* Line of a tab where PyYAML takes none, 0: there is no such. It may stand in quotes, in blocks
 * of text and in comments. */
int64_t yaml_stray_tab(const struct yaml_texts *t, const char *text, size_t n);
