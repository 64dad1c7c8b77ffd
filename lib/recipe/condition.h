/* A value against what an engine file asks of it. Called by everything that reads rows of an
 * engine file; knows no recipe and no engine, so that rows, flags and rules can all stand above
 * it. Private to lib/recipe. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* b has n_b characters; a may end in "=..." */
bool flag_same(const char *a, const char *b, size_t n_b);
/* "a|b", ">N", "<N", "%N" (a multiple of it), "given" (asks for something; features.h), "!a|b"
 * (a value, and none of these) against a value. NULL = unknown: nothing holds but "missing".
 * true and false in all spellings that engines take (True, 1, yes, on; no, off, 0); numbers also
 * as 0x40, 6_4, 6.4e1. */
bool condition_holds(const char *want, const char *value);
/* It compares numbers, and the value is neither one nor a word for nothing. */
bool condition_unreadable(const char *want, const char *value);
/* A number as Python and YAML read it: 64, 64.0, 6.4e1, 6_4, 0x40, 0o100, 0b1000000. False: it
 * is none. */
bool condition_number(const char *text, double *ret);
