/* What a condition of a shell is, without running it. Private to lib/recipe. */
#pragma once
#include "lib/recipe/shell.h"

/* Three values: what a condition is. */
enum shell_truth { SHELL_FALSE, SHELL_TRUE, SHELL_EITHER };
/* getopts SPEC NAME of a script's own words: sets NAME, OPTARG, OPTIND. False when they are
 * over; words that nobody knows are none. */
enum shell_truth shell_getopts(struct shell *s, const char *spec, const char *name);
enum shell_truth shell_and(enum shell_truth a, enum shell_truth b);
enum shell_truth shell_or(enum shell_truth a, enum shell_truth b);
enum shell_truth shell_not(enum shell_truth a);
/* Words behind [, [[ or test, without the closing one. */
enum shell_truth shell_test(char *const *words, size_t n);
/* false: something in it is no number that is known. */
bool shell_number(struct shell *s, const char *text, int64_t *ret);
