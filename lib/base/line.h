/* A line as a program printed it, and what of it is text. */
#pragma once
#include <stddef.h>

/* ANSI sequences (colours, titles, character sets) vanish; carriage returns of progress bars,
 * newlines and NUL become blanks. out holds n bytes, is not terminated, and may be s itself.
 * Returns the length written. */
size_t mo_line_plain(const char *s, size_t n, char *out);
/* The same of a string. To be freed. */
char *mo_line_plain_dup(const char *s);
