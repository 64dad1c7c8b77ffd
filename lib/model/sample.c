/* One iteration's metrics: keys and order are those of the REST interface's Sample. */
#include "lib/model/sample.h"

const char *const phase_names[_PHASE_N] = { "init", "load", "train", "save", "eval" };

static const struct mo_field sample_fields[] = {
	MO_D(sample, iteration, MO_INT, "iteration", .most = MO_FIT_ITERATION),
	MO_D(sample, time, MO_TIME, "when it ended"),
	MO_D(sample, loss, MO_REAL, "loss"),
	MO_D(sample, grad_norm, MO_REAL, "norm of the gradient"),
	MO_D(sample, lr, MO_REAL, "learning rate"),
	MO_D(sample, step_ms, MO_REAL, "milliseconds that the iteration took",
	     .most = 1000000000000),
	MO_D(sample, tokens, MO_INT, "tokens of the iteration, whole job", .most = MO_FIT_INT),
	MO_D(sample, tokens_per_s_per_gpu, MO_REAL, "tokens a second of one GPU",
	     .most = 1000000000000),
	MO_D(sample, tflops_per_gpu, MO_REAL, "10^12 operations of the model a second of one GPU",
	     .most = 1000000000),
	MO_D(sample, mfu, MO_REAL, "share of the GPUs' peak, 0 to 1", .most = 1000),
	MO_D(sample, mem_gb, MO_REAL, "memory of a GPU in use, 10^9 bytes", .most = 1000000000),
	MO_D(sample, skipped, MO_INT, "skipped iterations, as the engine counts them",
	     .most = MO_FIT_INT),
	MO_D(sample, nan, MO_INT, "iterations with NaN, as the engine counts them",
	     .most = MO_FIT_INT),
	MO_D(sample, consumed_samples, MO_INT,
	     "samples of data that were consumed up to its end, as the engine counts them",
	     .most = MO_FIT_INT, .omit = true),
	MO_D(sample, batch_samples, MO_INT, "samples of data that it took itself",
	     .most = MO_FIT_INT, .omit = true),
	MO_D_ENUM(sample, phase, phase_names, "what the engine did"),
	MO_D(sample, attempt, MO_INT, "attempt that ran it"),
};
const struct mo_desc sample_desc = MO_DESC(sample, sample_fields);

static void merge_int(int64_t *a, int64_t b)
{
	if (*a == MO_NONE)
		*a = b;
}

static void merge_real(double *a, double b)
{
	if (*a == MO_NONE_F)
		*a = b;
}

void sample_merge(struct sample *a, const struct sample *b)
{
	merge_int(&a->iteration, b->iteration);
	merge_int(&a->time, b->time);
	merge_real(&a->loss, b->loss);
	merge_real(&a->grad_norm, b->grad_norm);
	merge_real(&a->lr, b->lr);
	merge_real(&a->step_ms, b->step_ms);
	merge_int(&a->tokens, b->tokens);
	merge_real(&a->tokens_per_s_per_gpu, b->tokens_per_s_per_gpu);
	merge_real(&a->tflops_per_gpu, b->tflops_per_gpu);
	merge_real(&a->mfu, b->mfu);
	merge_real(&a->mem_gb, b->mem_gb);
	merge_int(&a->skipped, b->skipped);
	merge_int(&a->nan, b->nan);
	merge_int(&a->consumed_samples, b->consumed_samples);
	merge_int(&a->batch_samples, b->batch_samples);
	if (a->phase == PHASE_NONE)
		a->phase = b->phase;
	merge_int(&a->attempt, b->attempt);
}
