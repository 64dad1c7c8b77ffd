/* Descriptions of the plan document; names are those of the interface. */
#include "lib/plan/plan_desc.h"

#include "lib/plan/plan.h"

static const struct mo_field model_fields[] = {
	MO_D(plan_model, total_params, MO_INT, "parameters"),
	MO_D(plan_model, active_params, MO_INT, "parameters that one token uses"),
	MO_D(plan_model, flops_per_token, MO_REAL, "operations of a token, forward and backward"),
};
static const struct mo_desc model_desc = MO_DESC(plan_model, model_fields);

static const struct mo_field hardware_fields[] = {
	MO_D(plan_hardware, gpu, MO_STR, "GPU of the catalogue"),
	MO_D(plan_hardware, gpus, MO_INT, "how many"),
};
static const struct mo_desc hardware_desc = MO_DESC(plan_hardware, hardware_fields);

static const struct mo_field parallelism_fields[] = {
	MO_D(plan_parallelism, tp, MO_INT, "tensor parallel size"),
	MO_D(plan_parallelism, pp, MO_INT, "pipeline parallel size"),
	MO_D(plan_parallelism, vpp, MO_INT, "virtual pipeline stages of a GPU"),
	MO_D(plan_parallelism, ep, MO_INT, "expert parallel size"),
	MO_D(plan_parallelism, etp, MO_INT, "tensor parallel size of experts"),
	MO_D(plan_parallelism, cp, MO_INT, "context parallel size"),
	MO_D(plan_parallelism, dp, MO_INT, "data parallel size"),
	MO_D(plan_parallelism, sharding, MO_STR, "how parameters and optimizer are sharded"),
};
static const struct mo_desc parallelism_desc = MO_DESC(plan_parallelism, parallelism_fields);

static const struct mo_field batch_fields[] = {
	MO_D(plan_batch, micro, MO_INT, "sequences of a micro batch"),
	MO_D(plan_batch, global, MO_INT, "sequences of an iteration"),
	MO_D(plan_batch, seq, MO_INT, "tokens of a sequence"),
};
static const struct mo_desc batch_desc = MO_DESC(plan_batch, batch_fields);

static const struct mo_field memory_fields[] = {
	MO_D(plan_memory, total, MO_REAL, "all of it"),
	MO_D(plan_memory, params, MO_REAL, "parameters"),
	MO_D(plan_memory, grads, MO_REAL, "gradients"),
	MO_D(plan_memory, optimizer, MO_REAL, "state of the optimizer"),
	MO_D(plan_memory, activations, MO_REAL, "activations"),
	MO_D(plan_memory, comm, MO_REAL, "buffers of communication"),
	MO_D(plan_memory, reserve, MO_REAL, "what driver, runtime and allocator keep"),
	MO_D(plan_memory, capacity, MO_REAL, "what the GPU has"),
};
static const struct mo_desc memory_desc = MO_DESC(plan_memory, memory_fields);

static const struct mo_field stage_fields[] = {
	MO_D(plan_stage, stage, MO_INT, "number of the pipeline stage"),
	MO_D(plan_stage, layers, MO_INT, "layers of it"),
	MO_D(plan_stage, parameters, MO_INT, "parameters of it, of all its GPUs"),
	MO_D(plan_stage, total, MO_REAL, "memory of one of its GPUs, 10^9 bytes"),
	MO_D(plan_stage, params, MO_REAL, "of that, parameters"),
	MO_D(plan_stage, grads, MO_REAL, "of that, gradients"),
	MO_D(plan_stage, optimizer, MO_REAL, "of that, state of the optimizer"),
	MO_D(plan_stage, activations, MO_REAL, "of that, activations"),
	MO_D(plan_stage, comm, MO_REAL, "of that, buffers of communication"),
	MO_D(plan_stage, reserve, MO_REAL, "of that, what driver, runtime and allocator keep"),
};
const struct mo_desc plan_stage_desc = MO_DESC(plan_stage, stage_fields);

static const struct mo_field time_fields[] = {
	MO_D(plan_time, total, MO_REAL, "all of it"),
	MO_D(plan_time, compute, MO_REAL, "kernels of the model"),
	MO_D(plan_time, a2a, MO_REAL, "all-to-all of the experts that is not hidden"),
	MO_D(plan_time, pp, MO_REAL, "sending between stages that is not hidden"),
	MO_D(plan_time, dp, MO_REAL, "reducing gradients that is not hidden"),
	MO_D(plan_time, cp, MO_REAL, "context parallel exchange that is not hidden"),
	MO_D(plan_time, tp, MO_REAL, "tensor parallel exchange that is not hidden"),
	MO_D(plan_time, optimizer, MO_REAL, "step of the optimizer"),
	MO_D(plan_time, launch, MO_REAL, "launching kernels that is not hidden"),
};
static const struct mo_desc time_desc = MO_DESC(plan_time, time_fields);

static const struct mo_field plan_fields[] = {
	MO_D_SUB(plan, parallelism, MO_STRUCT, &parallelism_desc, "parallel sizes"),
	MO_D_SUB(plan, batch, MO_STRUCT, &batch_desc, "batch sizes"),
	MO_D(plan, recompute, MO_STR, "what is computed again in the backward pass"),
	MO_D(plan, schedule, MO_STR, "pipeline schedule"),
	MO_D_SUB(plan, memory_gb, MO_STRUCT, &memory_desc, "memory of the fullest GPU, 10^9 bytes"),
	MO_D_VEC(plan, memory_stages, &plan_stage_desc, "memory by pipeline stage"),
	MO_D(plan, fits, MO_BOOL, "that memory is there"),
	MO_D(plan, bubble, MO_REAL, "share of the step in which pipeline stages wait"),
	MO_D_SUB(plan, step_time_s, MO_STRUCT, &time_desc, "seconds of an iteration"),
	MO_D(plan, tokens_per_s_per_gpu, MO_REAL, "tokens a second of one GPU"),
	MO_D(plan, tflops_per_gpu, MO_REAL, "10^12 operations of the model a second of one GPU"),
	MO_D(plan, mfu, MO_REAL, "share of the GPUs' peak, 0 to 1"),
	MO_D(plan, error_pct, MO_REAL, "how wrong the step time may be, percent"),
	MO_D_LIST(plan, notes, MO_STRS, "what was assumed, a sentence each"),
};
const struct mo_desc plan_desc = MO_DESC(plan, plan_fields);

static const struct mo_field scale_fields[] = {
	MO_D(plan_scale, gpus, MO_INT, "GPUs"),
	MO_D(plan_scale, efficiency, MO_REAL,
	     "throughput of a GPU compared with the planned size, 1 = equal"),
	MO_D(plan_scale, step_time_s, MO_REAL, "seconds of an iteration"),
	MO_D(plan_scale, mfu, MO_REAL, "share of the GPUs' peak, 0 to 1"),
	MO_D(plan_scale, days, MO_REAL, "days for the tokens asked for", .omit = true),
	MO_D(plan_scale, note, MO_STR, "why there is no plan of this size, or what it assumes",
	     .omit = true),
};
static const struct mo_desc scale_desc = MO_DESC(plan_scale, scale_fields);

static const struct mo_field restart_fields[] = {
	MO_D(plan_restart, restart_s, MO_REAL, "seconds from a failure until training goes on"),
	MO_D(plan_restart, ettr, MO_REAL, "productive share of the time then, 0 to 1"),
	MO_D(plan_restart, gpu_hours_per_day, MO_REAL, "GPU-hours lost a day then"),
};
static const struct mo_desc restart_desc = MO_DESC(plan_restart, restart_fields);

static const struct mo_field reliability_fields[] = {
	MO_D(plan_reliability, failures_per_day, MO_REAL, "failures a day of all these GPUs"),
	MO_D(plan_reliability, checkpoint_every_s, MO_REAL, "best seconds between saves"),
	MO_D(plan_reliability, checkpoint_gb, MO_REAL,
	     "weights and optimizer states, which is what a checkpoint holds, 10^9 bytes; null: "
	     "most parameters are frozen",
	     .omit = true),
	MO_D(plan_reliability, ettr, MO_REAL, "productive share of the time, 0 to 1"),
	MO_D(plan_reliability, young_s, MO_REAL, "seconds between saves after Young's formula"),
	MO_D(plan_reliability, spare_nodes, MO_INT, "spare nodes that keep the size up"),
	MO_D(plan_reliability, spare_target, MO_REAL, "with which probability they do"),
	MO_D(plan_reliability, kept_nodes, MO_INT, "spare nodes that cluster.spares keeps",
	     .omit = true),
	MO_D(plan_reliability, kept_gpus, MO_INT, "GPUs of these", .omit = true),
	MO_D(plan_reliability, kept_share, MO_REAL,
	     "their share of the GPU-seconds that the job takes, 0 to 1", .omit = true),
	MO_D(plan_reliability, ettr_fast_restart, MO_REAL,
	     "productive share of the time with a fast restart"),
	MO_D_VEC(plan_reliability, restarts, &restart_desc, "what the time of a restart changes"),
	MO_D_LIST(plan_reliability, notes, MO_STRS, "what was assumed, a sentence each"),
};
const struct mo_desc plan_reliability_desc = MO_DESC(plan_reliability, reliability_fields);

static const struct mo_field doc_fields[] = {
	MO_D_SUB(plan_doc, model, MO_STRUCT, &model_desc, "the model"),
	MO_D_SUB(plan_doc, hardware, MO_STRUCT, &hardware_desc, "what it is planned for"),
	MO_D_VEC(plan_doc, plans, &plan_desc, "the best plans, best first"),
	MO_D_VEC(plan_doc, scaling, &scale_desc, "the best plan at other sizes"),
	MO_D_SUB(plan_doc, reliability, MO_STRUCT, &plan_reliability_desc,
		 "failures and checkpoints of the best plan"),
};
const struct mo_desc plan_doc_desc = MO_DESC(plan_doc, doc_fields);
