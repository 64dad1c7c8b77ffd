/* Records of "key: value" pairs as engines print them, and the numbers in them. Pure; nothing is
 * copied. Called by lines.c, line_fact.c and notify.c. */
#pragma once
#include <stddef.h>
#include "lib/base/util.h"

struct text {
	const char *s;
	size_t n;
};

/* Finds the pairs of a record. With a separator: "key: value | key: value", the whole key must be
 * equal. Without: "key: value key=value", a value ends at the next blank and what stands before a
 * key belongs to nobody. Separator " ": words, of which one that is a key (in any case) is
 * followed by its value: "loss 2.5, lr: 0.1, grad_norm=3". found[i] is the value of the first
 * pair with keys[i]; s NULL = not there. */
void pairs_find(struct text record, struct text separator, const struct text *keys, size_t n_keys,
		struct text *found);

/* unit: % GB GiB MB MiB KiB TiB directly behind, or behind one blank; "" = none of them */
struct number {
	double v;
	char unit[8];
};
/* The number that the text begins with: "16601.3/17219.3" is 16601.3, "7,282" is 7282, "[1e-4,
 * 2e-4]" is 1e-4, "nan" "-inf" "9.46GiB(64.99%)". False when there is none ("N/A"). whole:
 * nothing but the number, its unit and blanks may stand there. */
bool number_read(struct text t, bool whole, struct number *ret);
