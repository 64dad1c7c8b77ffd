/* A set of small non-negative integers such as numbers of CPUs or ranks, "0-7,12". Plain value:
 * init with {0}, done frees. Max id 131071. */
#pragma once
#include "lib/base/util.h"

struct mo_idset {
	uint64_t *words;
	size_t n_words;
};

void mo_idset_done(struct mo_idset *s);
/* "" is the empty set; -EINVAL, -ERANGE */
int mo_idset_parse(const char *text, struct mo_idset *ret);
char *mo_idset_format(const struct mo_idset *s); /* caller frees; "" when empty */
void mo_idset_add(struct mo_idset *s, size_t id);
bool mo_idset_has(const struct mo_idset *s, size_t id);
size_t mo_idset_count(const struct mo_idset *s);
/* smallest id >= from, -1 none: for (id = next(s, 0); id >= 0; id = next(s, id + 1)) */
int64_t mo_idset_next(const struct mo_idset *s, int64_t from);
void mo_idset_copy(struct mo_idset *dst, const struct mo_idset *src);
void mo_idset_and(struct mo_idset *dst, const struct mo_idset *b);
void mo_idset_or(struct mo_idset *dst, const struct mo_idset *b);
void mo_idset_andnot(struct mo_idset *dst, const struct mo_idset *b);
bool mo_idset_equal(const struct mo_idset *a, const struct mo_idset *b);
