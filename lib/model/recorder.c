/* See recorder.h: the keys on the wire. */
#include "lib/model/recorder.h"

#include "lib/model/limits.h"

#define NUMBER_MAX (1LL << 53)

static const struct mo_field recorder_wait_fields[] = {
	MO_D(recorder_wait, group, MO_STR, "name of the process group", .most = 128),
	MO_D(recorder_wait, desc, MO_STR, "what the engine calls it", .omit = true, .most = 128),
	MO_D(recorder_wait, members, MO_STR, "its ranks, as a list", .omit = true, .most = 1024),
	MO_D(recorder_wait, op, MO_STR, "the operation", .omit = true, .most = 128),
	MO_D(recorder_wait, sizes, MO_STR, "of its first tensor, and its type", .omit = true,
	     .most = 128),
	MO_D(recorder_wait, at, MO_STR, "line of the program that asked for it", .omit = true,
	     .most = 256),
	MO_D(recorder_wait, seq, MO_INT, "its number in the group", .most = NUMBER_MAX),
	MO_D(recorder_wait, age_ms, MO_INT, "milliseconds since it was enqueued", .omit = true,
	     .most = NUMBER_MAX),
	MO_D(recorder_wait, p2p, MO_BOOL, "between two ranks of the group", .omit = true),
	MO_D(recorder_wait, started, MO_BOOL, "it began on the GPU", .omit = true),
};
const struct mo_desc recorder_wait_desc = MO_DESC(recorder_wait, recorder_wait_fields);

static const struct mo_field rank_recorder_fields[] = {
	MO_D(rank_recorder, rank, MO_INT, "number of the rank", .most = 1LL << 40),
	MO_D(rank_recorder, silent, MO_STR, "why there is no dump", .omit = true, .most = 256),
	MO_D(rank_recorder, enqueued, MO_STR,
	     "NAME=NUMBER of each process group: its last collective that the rank enqueued",
	     .omit = true, .most = RECORDER_GROUPS_MAX),
	MO_D_VEC(rank_recorder, waits, &recorder_wait_desc, "operations that are not over",
		 .omit = true, .max = RECORDER_WAITS_MAX),
};
const struct mo_desc rank_recorder_desc = MO_DESC(rank_recorder, rank_recorder_fields);

static const struct mo_field recorder_answer_fields[] = {
	MO_D_VEC(recorder_answer, ranks, &rank_recorder_desc, "ranks that have a recorder",
		 .max = MO_GPUS_PER_NODE_MAX),
};
const struct mo_desc recorder_answer_desc = MO_DESC(recorder_answer, recorder_answer_fields);
