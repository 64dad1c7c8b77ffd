/* Facts of a job that are stored and shown as they are: the state (job.c) and the document of a
 * job in REST (daemon/core/view/view.c) have the same members and the same rows from here, and
 * docs/rest.md and /openapi.json are made of these. To add one: a member, its row, the update that
 * sets it; then cli/status.c prints it. Plain values only, they are copied as they stand. */
#pragma once
#include <stdint.h>

struct job_shown {
	double loss;
	double tokens_per_s_per_gpu, tflops_per_gpu, mfu;
	int64_t checkpoint_free_bytes, checkpoints_fit;
};

/* Their rows, T being a struct that has a struct job_shown as PART. */
#define JOB_SHOWN_ROWS(T, PART) \
	MO_DP(T, PART, loss, "loss", MO_REAL, "newest loss"), \
		MO_DP(T, PART, tokens_per_s_per_gpu, "tokens_per_s_per_gpu", MO_REAL, \
		      "newest throughput, tokens a second of one GPU"), \
		MO_DP(T, PART, tflops_per_gpu, "tflops_per_gpu", MO_REAL, \
		      "newest throughput, 10^12 operations of the model a second of one GPU"), \
		MO_DP(T, PART, mfu, "mfu", MO_REAL, \
		      "share of the GPUs' peak that the model's operations use, 0 to 1"), \
		MO_DP(T, PART, checkpoint_free_bytes, "checkpoint_free_bytes", MO_INT, \
		      "what was free where its checkpoints lie when a node last looked, bytes", \
		      .omit = true), \
		MO_DP(T, PART, checkpoints_fit, "checkpoints_fit", MO_INT, \
		      "how many more of the newest one's size fit there", .omit = true)
