/* A seed that fails, with as much left out as it still fails without. Each step tries less of one
 * thing; where the violation is another one by then, that is as good. */
#include "tests/sim/sim.h"

/* The numbers that a plan can be made smaller by, and from where. */
static int64_t *number(struct less *l, int which)
{
	return which == 0 ? &l->fault_s : which == 1 ? &l->jobs : &l->nodes;
}

static bool smaller(uint64_t seed, struct less *l, bool (*fails)(uint64_t, const struct less *))
{
	static const int64_t most[] = { 150, 60, NODES };
	bool any = false;

	for (int k = 1; k < _KIND_N; k++) {
		struct less t = *l;

		t.off |= UINT64_C(1) << k;
		if (t.off == l->off || !fails(seed, &t))
			continue;
		*l = t;
		any = true;
	}
	for (int which = 0; which < (int)ELEMENTSOF(most); which++) {
		struct less t = *l;
		int64_t *n = number(&t, which);

		*n = (*n ? *n : most[which]) * 2 / 3;
		if (*n == 0 || !fails(seed, &t))
			continue;
		*l = t;
		any = true;
	}
	return any;
}

int shrink(uint64_t seed, struct less *l, bool (*fails)(uint64_t, const struct less *))
{
	if (!fails(seed, l)) {
		printf("sim: seed %llu does not fail\n", (unsigned long long)seed);
		return 1;
	}
	while (smaller(seed, l, fails))
		;
	printf("sim: it still fails with\n  build/sim --seed %llu", (unsigned long long)seed);
	less_print(l);
	printf("\n");
	return 0;
}
