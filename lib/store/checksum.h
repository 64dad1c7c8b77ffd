/* Of each text that is stored, so that damage inside of files is found and reported, never
 * replayed. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Finds flipped bits and cut texts (each step is a bijection, so one changed word always shows);
 * not meant against an attacker, who owns the directory anyway. */
int64_t store_checksum(const char *text, size_t n);
