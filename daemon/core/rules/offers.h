/* Which of the nodes with room a job takes: the fewest, then those with the fewest slots left over,
 * then those that failed least, then those that it knows, then by name. Called by place.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* of one node: room > 0 GPUs; lemon and strange as of its slots (state/slots.h) */
struct offer {
	size_t node, room;
	int64_t lemon;
	int strange;
};

/* How many of the n offers give the wanted GPUs: those are in front then, by node, with room = what
 * is taken of each. 0: all of them do not; they are in any order then. wanted > 0. */
size_t offers_choose(struct offer *offers, size_t n, size_t wanted);
