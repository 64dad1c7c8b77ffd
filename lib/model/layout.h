/* A pipeline's explicit layout, "Et*3|(tt|)*2,m|L" as Megatron counts it: E embedding, t decoder
 * layer, m MTP layer, L loss; commas and spaces fall, (x)*n and x*n are repeated. Callers: the
 * recipe's check of features.pipeline_layout, the planner. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* each stage its letters */
struct layout {
	char **stages;
	size_t n_stages;
	int64_t decoders, mtp;
};
/* Is this value of features.pipeline_layout one? `auto` and `none` are not, nor is NULL. */
bool layout_given(const char *value);
/* False with *ret_why (caller frees). */
bool layout_parse(const char *text, struct layout *ret, char **ret_why);
void layout_done(struct layout *l);
/* The layout that spreads the layers over so many stages as evenly as can be, the larger ones
 * first; the caller frees. NULL: there are fewer layers than stages. */
char *layout_spread(int64_t layers, int64_t mtp, int64_t stages);
/* The longest layout that is unrolled, in letters. */
#define LAYOUT_LETTERS_MAX 20000
