/* What PyTorch's flight recorder says of one rank: the last collectives that it was to take part
 * in, by process group, and which of them are not over. The agent reads it from a dump
 * (agent/core/text/recorder.h) of a job that may hang; the controller compares ranks
 * (daemon/core/rules/hang_recorder.h). */
#pragma once
#include "lib/base/desc.h"

/* In a directory of the step: the rank's number follows, and of the pipe RECORDER_PIPE_END. */
#define RECORDER_DIR "recorder"
#define RECORDER_PIPE "rank"
#define RECORDER_PIPE_END ".pipe"
#define RECORDER_DUMP "dump"

#define RECORDER_WAITS_MAX 16    /* of one rank */
#define RECORDER_GROUPS_MAX 4096 /* bytes of their list */

/* An operation that the rank has enqueued and that is not over: of a group the first collective, or
 * any that sends to or receives from one rank. */
struct recorder_wait {
	char *group, *desc; /* its name, and what the engine calls it */
	char *members;      /* global ranks as a list, "0-7,16"; NULL: not known */
	char *op;           /* "all_reduce", "recv 0<-1" (numbers within the group); NULL: lost */
	char *sizes;        /* of its first tensor; NULL: it has none */
	char *at;           /* the line of the program that asked for it; NULL */
	int64_t seq, age_ms;
	bool p2p, started; /* started: on the GPU; said only with TORCH_NCCL_ENABLE_TIMING */
};
struct rank_recorder {
	int64_t rank;
	char *silent; /* it was asked and there is no dump: why; then the rest is unknown */
	/* "NAME=NUMBER ...": of each group the last collective that it has enqueued, 0: none */
	char *enqueued;
	struct recorder_wait *waits;
	size_t n_waits;
};
/* What moe-recorder answers: the ranks that have a recorder. */
struct recorder_answer {
	struct rank_recorder *ranks;
	size_t n_ranks;
};
extern const struct mo_desc recorder_wait_desc, rank_recorder_desc, recorder_answer_desc;
