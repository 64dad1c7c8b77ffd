/* The launch that is found in a script. Private to lib/recipe. */
#pragma once
#include "lib/recipe/launch_run.h"

/* The words as a line that may be shown. Caller frees. */
char *run_joined(char *const *words, size_t n);
void run_name(struct shell_words *w, const char *text); /* once */
/* Reads the command as a launch; `behind` is the text that follows it. False: it is none. */
bool run_launch(struct run *r, const struct shell_command *c, const char *behind);
/* What its output is sent to, up to the end of the line. */
void run_output(struct launch_line *l, const struct shell_command *c, const char *behind);
/* The best launch is whole: says what it loses. text: the script, which shows what of its
 * variables matters. */
void run_finish(struct run *r, const char *text);
