/* Reads a pickle (protocols 0 to 5) without executing anything: its instructions are walked,
 * which tells whether it is whole, and its texts and numbers are handed out in their order.
 * Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* true and false are the numbers 1 and 0 */
enum pickle_kind { PICKLE_TEXT, PICKLE_INT, PICKLE_OTHER };
struct pickle_item {
	enum pickle_kind kind;
	/* PICKLE_TEXT: bytes within the pickle, not ended by a zero */
	const char *text;
	size_t n;
	int64_t number; /* PICKLE_INT */
	/* PICKLE_TEXT: where it was written first; the same for each repetition of one text by
	 * reference. PICKLE_OTHER: where it stands (a list or mapping: where it begins); one that
	 * is repeated by reference: where it was noted for that, which is right behind it */
	size_t at;
	bool again; /* it is repeated by reference */
	/* in how many lists and mappings it stands, if these were written as one piece, as PyTorch
	 * does */
	size_t depth;
};
typedef void pickle_fn(void *arg, const struct pickle_item *item);
/* NULL: one whole pickle ends with the last byte. Else why not (static text). fn may be NULL,
 * and is called up to where the damage is. */
const char *pickle_walk(const void *data, size_t n, pickle_fn *fn, void *arg);
/* The numbers that stand behind these names ("tensor_model_parallel_size", 2), each where it
 * comes first; true and false are 1 and 0, what is not there is -1. False: it is no whole
 * pickle. */
bool pickle_numbers(const void *data, size_t n, char *const *names, size_t n_names, int64_t *ret);
/* The number that stands behind the last of these words (between blanks) once all before it were
 * seen in their order: "checkpoint_version iteration" finds the save's iteration and not the one
 * of its arguments. -1: there is none, or it is no whole pickle. */
int64_t pickle_number_behind(const void *data, size_t n, const char *words);
/* The sum of the numbers that stand behind this word up to the next text, where it comes first
 * with any; -1: there are none, or it is no whole pickle. */
int64_t pickle_sum_behind(const void *data, size_t n, const char *word);
