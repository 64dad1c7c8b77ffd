/* Where the ranks of an attempt stood when it was ended because nothing moved: they are asked to
 * end by SIGABRT, at which Python prints its calls (PYTHONFAULTHANDLER, config/env/base.yaml), and
 * their last lines have them. Pure; called by blame.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct job;
struct rank;

/* "all_reduce (c10d.py:2806), called by step (train.py:12)": the innermost call, and the first
 * one outside of Python's own and installed packages. NULL: its last lines have none. Caller
 * frees. */
char *stands_in(const struct rank *k);
/* A line per place, those of the fewest ranks first, appended; nothing where no rank has said. */
void stands_evidence(const struct job *j, char ***texts, size_t *n);
