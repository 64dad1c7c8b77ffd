/* A shell's variables, and words with marks for what only a running shell knows; see
 * shell_vars.c. */
#pragma once
#include "lib/recipe/shell.h"

bool shell_unknown(const char *text);
/* Takes the marks out. True: there were some. */
bool shell_plain(char *text);
/* X in X=1, X+=1; 0 = no assignment. */
size_t shell_assigned(const char *word);
struct shell_var *shell_var(struct shell *s, const char *name, size_t n); /* NULL = not set */
/* Takes the words. `more`: behind those that it has. */
void shell_set(struct shell *s, const char *name, size_t n, struct shell_words *w, bool more);
void shell_set_text(struct shell *s, const char *name, size_t n, const char *text, bool more);
/* path from where it stands, NULL when nobody knows. Caller frees. */
char *shell_path(const struct shell *s, const char *path);
