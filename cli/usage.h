/* What the usage of a verb says of its words: "token create --role ROLE [--ttl T] | list". */
#pragma once
#include <stddef.h>
#include "cli/cli.h"

/* The first words of its ways, "create, list"; of a verb with one way its first word. Caller
 * frees. */
char *usage_ways(const struct verb *v);
/* The n-th word, from 0, that a person writes there and that is no option nor the value of one:
 * "JOB|NODE". way: the first word of that way, itself word 0; NULL: the verb has one, or the first
 * is meant. NULL: there is none. Caller frees. */
char *usage_word(const struct verb *v, const char *way, size_t n);
/* What stands behind this option, wherever it is named first: "ROLE". NULL: nothing. Caller
 * frees. */
char *usage_value(const struct verb *v, const char *option);
/* What a help says behind "  --option" or "  -o", borrowed, up to the line's end; NULL: no line is
 * its. letter: 0 = none. */
const char *usage_about(const char *help, const char *option, char letter, size_t *ret_n);
