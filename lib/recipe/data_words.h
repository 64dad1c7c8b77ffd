/* {data:engines/x.py} in a command of a data file: a file of ours, wherever it is installed.
 * Called by engine_file.c and health_file.c. */
#pragma once
#include <stddef.h>

struct ynode;
struct recipe_errors;

/* Makes paths of such words; at: for the place of an error. */
void data_words(char **argv, size_t n, const struct ynode *at, struct recipe_errors *errors);
