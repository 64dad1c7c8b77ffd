/* What stands behind a $ (shell.h). Private to shell.c and shell_expand.c. */
#pragma once
#include "lib/recipe/shell.h"

/* One word under way: text, and whether there is a word at all ("" is one). */
struct shell_word {
	struct shell *shell;
	struct shell_command *command;
	struct mo_buf b;
	bool any;
	bool nothing;   /* "$@" of no words: none comes of it */
	char quote;     /* that is open, 0 = none */
	char redirects; /* the word is the target of >, < or << (h) */
};
void shell_word_end(struct shell_word *u);
/* p: at the $ or `. Returns what is behind it. */
const char *shell_expand(struct shell_word *u, const char *p);
void shell_expand_home(struct shell_word *u);
/* Words up to a ')' or the end, no operators among them. */
const char *shell_read_list(struct shell *s, const char *p, struct shell_command *ret);
