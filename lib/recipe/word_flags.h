/* The words of a command as flags; see word_flags.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

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
