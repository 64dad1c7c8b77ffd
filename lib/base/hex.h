/* Bytes as hex digits, in small letters. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* ret: room for 2 * n + 1. */
void mo_hex(const unsigned char *data, size_t n, char *ret);
/* Exactly n bytes; false: s is something else, and ret may be half written. */
bool mo_unhex(const char *s, unsigned char *ret, size_t n);
