/* What a seed's run is made of: which kinds of faults happen, and how often, from quiet to hostile;
 * and what is left out of it, so that a violation shows with less beside it (shrink.c). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
	KIND_NONE, /* what follows, and what people do: as often as it comes */
	KIND_RANKS,
	KIND_SUPERVISORS,
	KIND_AGENTS,
	KIND_NODES,
	KIND_SHUTDOWNS,
	KIND_NETWORK,
	KIND_CONTROLLER,
	KIND_CLOCKS,
	KIND_DISKS,
	KIND_BACKUPS,
	KIND_LAUNCHES,
	KIND_CHECKPOINTS,
	KIND_LOSSES,
	KIND_HEALTH,
	KIND_GPUS,
	KIND_TOKENS,
	_KIND_N
};
/* Zero: nothing is left out. off: a bit of each kind; others: no more than so many. */
struct less {
	uint64_t off;
	int64_t jobs, nodes, fault_s;
};
/* rate: how many times as often as usual, by kind; pace: of all that breaks at random instants */
struct plan {
	double rate[_KIND_N], pace;
	int64_t jobs, nodes, fault_us;
};
void plan_draw(uint64_t seed, const struct less *less, struct plan *ret);
int plan_kind(int fault);
/* An option of the command line that leaves something out (--off KIND,..., --jobs N, --nodes N,
 * --fault-time SECONDS) is added; false: it is none, or its value is wrong. */
bool less_option(struct less *l, const char *name, const char *value);
void less_print(const struct less *l); /* as such options */

/* shrink.c: what is left out while the seed still fails, and the command that shows it. fails: in
 * a process of its own. 0; 1: the seed does not fail. */
int shrink(uint64_t seed, struct less *l, bool (*fails)(uint64_t seed, const struct less *l));
