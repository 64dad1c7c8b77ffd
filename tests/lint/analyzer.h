/* Included first by `gcc -fanalyzer` (tests/lint/run): the one place that says what it
 * cannot see. Only uthash needs it. Jenkins's hash, inlined at each use, multiplies its states
 * until it does not finish within minutes: a simpler hash here. It loses sight of the buckets
 * behind uthash's tables and reports them as leaks: their memory comes from a function that it does
 * not know. */
#pragma once
#include <stddef.h>
#define HASH_FUNCTION HASH_FNV
#define uthash_malloc(n) lint_table_memory(n)
#define uthash_free(p, n) lint_table_memory_free(p)
void *lint_table_memory(size_t n);
void lint_table_memory_free(void *p);
