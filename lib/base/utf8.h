/* Text as UTF-8; see utf8.c. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes of the well-formed character at s (n bytes are there), 0 = none */
size_t mo_utf8_next(const char *s, size_t n);
/* How many of the n bytes at s come before one that a JSON string writes in another way, or that
 * is no ASCII. Fast. */
size_t mo_text_plain(const char *s, size_t n);
bool mo_utf8_valid(const char *s, size_t n);
/* Bytes of s up to `most` that end with a whole character; s is longer, and well-formed. */
size_t mo_utf8_cut(const char *s, size_t most);
/* For "%.*s": how many bytes of s, up to `most`, end with a whole character. A text that is cut
 * within one is none any more: what is stored and read again differs. */
int mo_utf8_shown(const char *s, int most);
