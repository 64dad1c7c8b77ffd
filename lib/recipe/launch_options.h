/* Options of launchers, read by the tables of launch_tables.h. Private to lib/recipe. */
#pragma once
#include "lib/recipe/launch_line.h"

#define LAUNCH_ALL (-2) /* processes of a node: as many as it has GPUs */

struct launcher;
/* Options of a launcher up to its first other word, or "--"; *at is behind them. */
void launch_options(struct launch_line *l, const struct launcher *p, char *const *words, size_t n,
		    size_t *at, bool *module);
void launch_lose(struct launch_line *l, const char *what, const char *value, const char *why);
void launch_env(struct launch_line *l, const char *name, size_t n, const char *value);
size_t launch_assigned(const char *word); /* X in X=1; 0 = no assignment */
bool launch_among(const char *names, const char *word, size_t n);
