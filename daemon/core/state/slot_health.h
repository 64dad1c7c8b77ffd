/* What the checks of a node say about one of its GPU slots, for drawings, ranks and `why`. It
 * decides nothing: no rank is ended on a check's word. Pure. */
#pragma once
#include "daemon/core/state/health.h"

struct slot_health {
	const struct check_result *finding; /* the worst about its GPU that is not OK */
	/* missing: gpu.count, when it says so too; else NULL */
	const struct check_result *count;
	bool missing; /* the GPU is no longer there */
	int64_t since;
};
/* false: nothing is said against it. */
bool slot_health(const struct node *n, int64_t slot, struct slot_health *ret);
/* "missing since 2026-11-21T12:03:04Z (gpu.count, gpu.read)", "gpu.ras_ue crit since
 * 2026-11-21T12:03:04Z"; caller frees. */
char *slot_health_words(const struct slot_health *h);
/* NULL: it has none of that number */
const struct gpu_slot *node_slot(const struct node *n, int64_t slot);
/* Rank that uses the k-th GPU of a place. */
int64_t place_rank(const struct place *p, size_t k);
/* What matters about the GPUs of a rank that has not ended; caller frees, NULL = nothing. */
char *rank_slot_note(const struct state *s, const struct job *j, const struct rank *k);
/* Something that a person should know about a rank that runs on the slot: missing, unreadable,
 * or critical. */
bool slot_matters(const struct slot_health *h);
