/* JSON text -> described struct with no tree between them, for what is plainly good: as
 * wire_encode() writes. It takes a fifth of the tree's time, and nearly all that a controller reads
 * is of that kind: beats, records, and at a start the snapshot.
 *
 * It judges nothing: what it does not take (white space, \u, NaN, keys that are unknown or given
 * twice, whatever is wrong) the tree takes, or refuses with what is wrong and where. What never
 * happens: it takes what the tree refuses, or reads it as something else
 * (tests/unit/wire/test_direct.c, tests/fuzz/fuzz_json.c). */
#pragma once
#include "lib/base/desc.h"

/* Of strict input, where a description says nothing. */
#define WIRE_LIST_MAX 131072          /* elements of one list */
#define WIRE_STRING_MAX (1024 * 1024) /* bytes of one string */
/* elements of all lists together: a short text must not become gigabytes of structs */
#define WIRE_ELEMENTS_MAX 400000

/* obj is initialised; false: what is in it is worth nothing. */
bool wire_direct(const struct mo_desc *d, const char *text, size_t n, bool strict, void *obj);
/* The same, not strict, of an object that more may follow. ret_n: its bytes. */
bool wire_direct_next(const struct mo_desc *d, const char *text, size_t n, void *obj,
		      size_t *ret_n);
